"""Projects that the atlas works on, and kinds of their files that `make fuzz` damages."""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import torch
import yaml
from safetensors.numpy import load_file
from tokenizers import Tokenizer, models

from tests.checkpoint import other_software
from tests.checkpoint.oracle.tokenizers import of_sentencepiece
from tests.checkpoints import WEIGHTS, Sizes, tensors_of, write_checkpoint
from tests.torture import commands
from tests.torture.costs import written
from tests.torture.damage import (
    HOSTILE,
    NO_FILES,
    Random,
    absurd_numbers,
    damage_bytes,
    damage_content,
    damage_directory,
    damage_header,
    one_of,
    replace_file,
    reseal,
    write_tensors,
    write_text,
)

SIZES = Sizes(n_layer=2, n_head=2, d_model=16, n_ctx=24, vocab_size=128)
FEW = (1, 2, 3, 5, 17)
ABSURD = [Sizes(n, heads, heads * width, *rest) for n, heads, width, *rest in product((1, 3), (1, 2), FEW, FEW, FEW)]
MANY = ((200, 24, 128), (1, 10_000, 128), (1, 24, 40_000))  # layers, positions, tokens; `make large` times more
LONG = [Sizes(layers, heads, 16, *rest) for (layers, *rest), heads in product(MANY, (1, 2, 4))]
ENTRY = {"name": "tiny", "title": "Tiny", "sources": [{"folder": "tiny"}], "frequency": "counts", "notes": "Small."}
SERIES = (
    {"name": "steps", "title": "Steps", "along": "step", "question": "When?"},
    {"name": "seeds", "title": "Seeds", "along": "seed", "question": "Which?", "notes": "Two."},
    {"name": "changes", "title": "Changes", "along": "change", "question": "Why?", "seeds": "seeds"},
)
IN_SERIES = ("helix", "channels", "gains", "outliers")  # findings
TRAINING = {"held_out_loss": 3.5, "held_out_window_losses": [3.0, 4.0], "corpus": {"sha256": "0" * 64}}

# Sound projects, each beside the one before it, with stored results, and figures drawn


def one_model(place: Path) -> None:
    written(place / "tiny", SIZES)
    (place / "models.yml").write_text(yaml.safe_dump([ENTRY]))
    commands.compute_all(place, np.random.default_rng(0))


def series(place: Path) -> None:
    """Write series of two models, with a few results, and records of their training."""
    names = ["tiny-1", "tiny-2"]
    for name in names:
        shutil.copytree(place.parent / "one" / "tiny", place / name)
        write_text(TRAINING, place / name / "training.json")
    write_text([ENTRY | {"name": name, "sources": [{"folder": name}]} for name in names], place / "models.yml")
    members = [{"model": name, "at": at} for at, name in enumerate(names)]
    write_text([one | {"members": members} for one in SERIES], place / "series.yml")
    commands.compute_only(place, IN_SERIES)
    commands.render(place, np.random.default_rng(0))


def with_report(place: Path) -> None:
    shutil.copytree(place.parent / "one" / "tiny", place / "tiny")
    commands.write_report(place, np.random.default_rng(0))


PROJECTS = {"one": one_model, "series": series, "report": with_report}

# Kinds: what writes a sound file into the folder of a checkpoint


def merges(folder: Path, rng: Random) -> None:
    words = (folder / "vocab.txt").read_text().split("\n")
    write_text({word: i for i, word in enumerate(words)}, folder / "vocab.json")
    write_text(["#version: 0.2", *map(" ".join, pairwise(words))], folder / "merges.txt")
    (folder / "vocab.txt").unlink()


def tokenizer(folder: Path, rng: Random) -> None:
    vocab = {f"w{i}": i for i in range(127)}
    bpe, unigram = models.BPE(vocab, [], unk_token="w0"), models.Unigram([(word, -1.0) for word in vocab], 0)
    words = [kind(vocab, unk_token="w0") for kind in (models.WordPiece, models.WordLevel)]
    made = Tokenizer((bpe, unigram, *words)[int(rng.integers(4))])
    made.add_special_tokens(["<x>"])
    made.save(str(folder / "tokenizer.json"))


def shards(folder: Path, rng: Random) -> None:
    (folder / WEIGHTS).unlink()
    write_checkpoint(folder, sizes=SIZES, shards=int(rng.integers(2, 5)))


def pickles(folder: Path, rng: Random) -> None:
    tensors = {name: torch.tensor(array) for name, array in load_file(folder / WEIGHTS).items()}
    (folder / WEIGHTS).unlink()
    content = one_of((tensors, tensors, {"model": tensors}, [tensors], {"state_dict": {"model": tensors}}), rng)
    zipped = bool(rng.random() < 0.8)
    torch.save(content, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder)
    folder.mkdir()
    return folder


def nanogpt(folder: Path, rng: Random) -> None:
    other_software.write_nanogpt(emptied(folder), other_software.nanogpt_of(tensors_of("gpt2")))


def transformer_lens(folder: Path, rng: Random) -> None:
    write_tensors(other_software.lens_of(tensors_of("gpt2")), emptied(folder) / WEIGHTS)
    write_text(other_software.cfg_of(), folder / "cfg.json")


def gguf(folder: Path, rng: Random) -> None:
    path, tokens = emptied(folder) / "model.gguf", [f"w{i}" for i in range(40)]
    said = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": [1] * 40}
    if rng.random() < 0.3:
        other_software.write_gpt2_gguf(path)
    elif rng.random() < 0.5:
        other_software.write_gemma3_gguf(path, **said)
    else:
        other_software.write_llama_gguf(path, str(rng.choice(["F16", "F32", "Q4_0", "Q8_0"])), **said)


def ctranslate2(folder: Path, rng: Random) -> None:
    other_software.write_ctranslate2(emptied(folder) / "model.bin")
    stack = one_of(("encoder", "decoder"), rng)
    write_text([ENTRY | {"stack": stack}], folder.parent / "models.yml")


def of_sizes(options: Sequence[Sizes]) -> Callable[[Path, Random], None]:
    return lambda folder, rng: write_checkpoint(emptied(folder), sizes=one_of(options, rng))


def another_family(folder: Path, rng: Random) -> None:
    family, dtype = one_of(("bert", "openai-gpt", "gpt2"), rng), one_of(("float64", "float16", "bfloat16"), rng)
    write_checkpoint(emptied(folder), family, sizes=SIZES, dtype=dtype, prefix=one_of(("", "model."), rng))


def beside(folder: Path, rng: Random) -> None:
    """Write the small JSON files that transformers writes beside a checkpoint."""
    decoder = {"5": {"content": "w5", "special": True}, "127": {"content": "<x>", "special": True, "lstrip": False}}
    said = {"tokenizer_class": "BertTokenizer", "model_max_length": 24, "unk_token": "w0", "do_lower_case": True}
    write_text(said | {"added_tokens_decoder": decoder}, folder / "tokenizer_config.json")
    write_text(
        {"unk_token": "w0", "cls_token": {"content": "w1", "lstrip": False}}, folder / "special_tokens_map.json"
    )
    write_text({"<x>": 127}, folder / "added_tokens.json")
    write_text({"bos_token_id": 1, "eos_token_id": [2]}, folder / "generation_config.json")


def pieces(folder: Path, rng: Random) -> None:
    (folder / "vocab.txt").unlink()
    of_sentencepiece(folder)


def text(folder: Path, rng: Random) -> None:
    tokenizer(folder, rng)
    write_text([" ".join(f"w{i}" for i in rng.integers(128, size=50)) for _ in range(20)], folder.parent / "text.txt")


def request(folder: Path, rng: Random) -> None:
    path = one_of(("/", "/config.json", "/../models.yml", "/%2e%2e/models.yml", "//etc/passwd", *HOSTILE), rng)
    version = one_of(("HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2", ""), rng)
    (folder.parent / "request.txt").write_text(f"GET {path} {version}\nHost: a\nRange: bytes=0-9\nCookie: b\n\n")


def settings(folder: Path, rng: Random) -> None:
    for _ in range(2):
        os.environ[one_of(commands.SETTINGS, rng)] = commands.odd_text(rng)


@dataclass(frozen=True)
class Kind:
    """Files of a project that are damaged, what writes them if it doesn't have them, and what is asked of it then.

    Of dear kinds `one_in` so many is tried. Digests of stored results fit the damage where it is `sealed`.
    """

    files: tuple[str, ...] = ()
    write: Callable[[Path, Random], None] = lambda folder, rng: None
    ways: tuple[Callable[[Path, Random], None], ...] = (damage_bytes, damage_content, replace_file)
    use: Callable[[Path, Random], None] = commands.compute_same
    project: str = "one"
    one_in: int = 1
    sealed: bool = True


BYTES = (damage_bytes, replace_file)
RESULTS = ("results/tiny/*.json", "results/tiny/*.npz", "results/tiny/.settled")
KINDS = {
    "weights": Kind((f"tiny/{WEIGHTS}",)),
    "headers": Kind((f"tiny/{WEIGHTS}",), ways=(damage_header,)),
    "absurd numbers": Kind((f"tiny/{WEIGHTS}",), ways=(absurd_numbers,)),
    "config": Kind(("tiny/config.json",)),
    "other families": Kind(("tiny/config.json", f"tiny/{WEIGHTS}"), another_family),
    "files beside": Kind(("tiny/*_config.json", "tiny/*_tokens*.json"), beside),
    "vocabulary": Kind(("tiny/vocab.txt",)),
    "merges": Kind(("tiny/vocab.json", "tiny/merges.txt"), merges),
    "tokenizer.json": Kind(("tiny/tokenizer.json",), tokenizer),
    "SentencePiece": Kind(("tiny/tokenizer.model",), pieces, BYTES),
    "token counts": Kind(("tiny/token_counts.npy",)),
    "registry": Kind(("models.yml",)),
    "shards": Kind((f"tiny/{WEIGHTS}.index.json", "tiny/model-*"), shards),
    "pickles": Kind(("tiny/pytorch_model.bin",), pickles),
    "zip directories": Kind(("tiny/pytorch_model.bin",), pickles, (damage_directory,)),
    "nanoGPT": Kind(("tiny/ckpt.pt",), nanogpt),
    "TransformerLens": Kind((f"tiny/{WEIGHTS}", "tiny/cfg.json"), transformer_lens),
    "GGUF": Kind(("tiny/model.gguf",), gguf, BYTES),
    "GGUF's content": Kind(("tiny/model.gguf",), gguf, (damage_content,)),
    "CTranslate2": Kind(("tiny/model.bin",), ctranslate2, BYTES),
    "absurd sizes": Kind((), of_sizes(ABSURD)),
    "long and deep models": Kind((), of_sizes(LONG), one_in=10),
    "pipes and devices": Kind(
        ("tiny/*", "results/tiny/*", "tiny/training.json"),
        ways=tuple(partial(replace_file, kind=kind) for kind in NO_FILES),
        use=commands.compute_all,
    ),
    "stored results": Kind(("results/tiny/*.json",), use=commands.compute_all),
    "stored arrays": Kind(
        ("results/tiny/*.npz",), ways=(*BYTES, damage_content, damage_directory), use=commands.compute_all
    ),
    "figures": Kind((".cache/figures/*",), ways=BYTES, use=commands.compute_all),
    "results to verify": Kind(RESULTS, ways=BYTES, use=commands.verify, sealed=False),
    "results to adopt": Kind(RESULTS, ways=BYTES, use=commands.adopt, sealed=False),
    "forged results to adopt": Kind(RESULTS[:1], ways=(damage_content,), use=commands.adopt_forged),
    "reports": Kind(("report/*", "report/.results/tiny/*"), ways=BYTES, use=commands.write_report, project="report"),
    "series": Kind(("series.yml",), use=commands.render, project="series"),
    "registries of series": Kind(("models.yml",), use=commands.render, project="series"),
    "records of training": Kind(("tiny-*/training.json",), use=commands.render, project="series", one_in=4),
    "results in series": Kind(("results/tiny-1/*.json",), use=commands.render, project="series", one_in=4),
    "requests": Kind(("request.txt",), request, (damage_bytes, damage_content), commands.serve),
    "texts": Kind(("text.txt",), text, (damage_bytes, damage_content), commands.count),
    "options": Kind(use=commands.ask),
    "settings": Kind(write=settings, use=commands.ask),
    "settings of the hub": Kind(use=commands.ask_hub, one_in=10),
}


def mutate(place: Path, kind: Kind, rng: Random, way: int | None = None) -> None:
    """Turn a sound project into a mutant: with one of the kind's files damaged, in one of its ways."""
    kind.write(place / "tiny", rng)
    if kind.use == commands.compute_same and rng.random() < 0.5:
        shutil.rmtree(place / "results")
    files = sorted({path for name in kind.files for path in (place.glob(name) if "*" in name else [place / name])})
    if not files:
        return
    path = one_of(files, rng)
    (one_of(kind.ways, rng) if way is None else kind.ways[way])(path, rng)
    if path.is_file() and kind.sealed:
        reseal(path)
