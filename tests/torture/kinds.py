"""A project that the atlas works on, and kinds of its files that `make fuzz` damages."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import load_file

from tests.checkpoint import other_software
from tests.checkpoint.oracle.tokenizers import ROWS, TOKENIZERS
from tests.checkpoints import WEIGHTS, Sizes, tensors_of, write_checkpoint
from tests.synthetic import realistic_embedding, winding_positions
from tests.torture import commands
from tests.torture.damage import (
    HOSTILE,
    Random,
    damage_bytes,
    damage_content,
    damage_header,
    one_of,
    replace_file,
    reseal,
    write_tensors,
    write_text,
)

SIZES = Sizes(n_layer=2, n_head=2, d_model=16, n_ctx=24, vocab_size=ROWS)
SAID_IN_GGUF = ("embedding_length", "attention.head_count", "rope.freq_base", "tokenizer.ggml.tokens")
ENTRY = {"name": "tiny", "title": "Tiny", "sources": [{"folder": "tiny"}], "frequency": "counts", "notes": "Small."}
SERIES = {"name": "steps", "title": "Steps", "along": "step", "question": "When?", "notes": "Two."}


def write_project(place: Path) -> None:
    """Write a project with a model, its stored results and drawn figures."""
    rng = np.random.default_rng(0)
    tables = {
        "wte.weight": realistic_embedding(SIZES.vocab_size, SIZES.d_model, rng),
        "wpe.weight": winding_positions(SIZES.n_ctx, SIZES.d_model, rng),
    }
    folder = write_checkpoint(place / "tiny", sizes=SIZES, changed=tables)
    TOKENIZERS["WordPiece"](folder)
    np.save(folder / "token_counts.npy", np.arange(SIZES.vocab_size)[::-1])
    write_text([ENTRY], place / "models.yml")
    commands.compute_all(place, rng)


# Kinds: what writes a sound file into the folder of a checkpoint


def in_series(folder: Path, rng: Random) -> None:
    members = [{"model": "tiny", "at": at} for at in range(2)]
    write_text([SERIES | {"members": members}], folder.parent / "series.yml")


def tokenizer(kind: str, folder: Path, rng: Random) -> None:
    (folder / "vocab.txt").unlink()
    TOKENIZERS[kind](folder)


def shards(folder: Path, rng: Random) -> None:
    (folder / WEIGHTS).unlink()
    write_checkpoint(folder, sizes=SIZES, shards=int(rng.integers(2, 5)))


def pickles(folder: Path, rng: Random) -> None:
    tensors = {name: torch.tensor(array) for name, array in load_file(folder / WEIGHTS).items()}
    (folder / WEIGHTS).unlink()
    content = one_of((tensors, {"model": tensors}, [tensors]), rng)
    torch.save(content, folder / "pytorch_model.bin", _use_new_zipfile_serialization=bool(rng.random() < 0.8))


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
    """Write a GGUF file, every other one with something hostile in the place of what it says."""
    tokens = [f"w{i}" for i in range(40)]
    said = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": [1] * 40}
    if rng.random() < 0.5:
        said[one_of(SAID_IN_GGUF, rng)] = one_of((0, 2**31, float("nan"), *HOSTILE, list(HOSTILE), [-1]), rng)
    llama = partial(other_software.write_llama_gguf, kind=str(rng.choice(["F16", "Q4_0", "Q8_0"])))
    write = one_of((other_software.write_gpt2_gguf, other_software.write_gemma3_gguf, llama), rng)
    write(emptied(folder) / "model.gguf", **said)


def ctranslate2(folder: Path, rng: Random) -> None:
    other_software.write_ctranslate2(emptied(folder) / "model.bin")
    stack = one_of(("encoder", "decoder"), rng)
    write_text([ENTRY | {"stack": stack}], folder.parent / "models.yml")


def another_family(folder: Path, rng: Random) -> None:
    family, dtype = one_of(("bert", "openai-gpt", "gpt2"), rng), one_of(("float64", "float16", "bfloat16"), rng)
    write_checkpoint(emptied(folder), family, sizes=SIZES, dtype=dtype, prefix=one_of(("", "model."), rng))


@dataclass(frozen=True)
class Kind:
    """Files of a project that are damaged, what writes them if it doesn't have them, and what is asked of it then.

    Digests of stored results fit the damage where it is `sealed`.
    """

    files: tuple[str, ...]
    write: Callable[[Path, Random], None] = lambda folder, rng: None
    ways: tuple[Callable[[Path, Random], None], ...] = (damage_bytes, damage_content, replace_file)
    use: Callable[[Path, Random], None] = commands.compute
    sealed: bool = True


OF_TOKENIZER = ("tiny/*token*.json", "tiny/vocab.*", "tiny/merges.txt", "tiny/tokenizer.model")
RESULTS = ("results/tiny/*.json", "results/tiny/*.npz", "results/tiny/.settled")
KINDS = {
    "weights": Kind((f"tiny/{WEIGHTS}",), ways=(damage_bytes, damage_content, damage_header, replace_file)),
    "config": Kind(("tiny/config.json",), another_family),
    "token counts": Kind(("tiny/token_counts.npy",)),
    "registry": Kind(("models.yml", "series.yml"), in_series),
    "shards": Kind((f"tiny/{WEIGHTS}.index.json", "tiny/model-*"), shards),
    "pickles": Kind(("tiny/pytorch_model.bin",), pickles),
    "nanoGPT": Kind(("tiny/ckpt.pt",), nanogpt),
    "TransformerLens": Kind((f"tiny/{WEIGHTS}", "tiny/cfg.json"), transformer_lens),
    "GGUF": Kind(("tiny/model.gguf",), gguf),
    "CTranslate2": Kind(("tiny/model.bin",), ctranslate2, ways=(damage_bytes, replace_file)),
    "stored results": Kind(RESULTS[:2], use=commands.compute_all),
    "figures": Kind((".cache/figures/*",), use=commands.compute_all),
    "results to adopt": Kind(RESULTS, use=commands.take_over, sealed=False),
    **{kind: Kind(OF_TOKENIZER, partial(tokenizer, kind)) for kind in TOKENIZERS},
}


def mutate(place: Path, kind: Kind, rng: Random, way: int | None = None) -> None:
    """Turn a sound project into a mutant: with one of the kind's files damaged, in one of its ways."""
    kind.write(place / "tiny", rng)
    if kind.use == commands.compute and rng.random() < 0.5:
        shutil.rmtree(place / "results")
    path = one_of(sorted({path for name in kind.files for path in place.glob(name)}), rng)
    (one_of(kind.ways, rng) if way is None else kind.ways[way])(path, rng)
    if path.is_file() and kind.sealed:
        reseal(path)
