"""Kinds of files that the atlas reads, and general ways to damage any of them: for `make fuzz`."""

import copy
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from safetensors.numpy import load_file, save_file

from generators.base.plain import as_json, content_digest
from tests.checkpoint import other_software
from tests.checkpoints import WEIGHTS, Sizes, edit_header, tensors_of, write_checkpoint

Array, Random = np.ndarray, np.random.Generator
Content = Any  # nested dicts and lists of arrays, tensors, numbers and text
SIZES = Sizes(n_layer=2, n_head=2, d_model=16, n_ctx=24, vocab_size=128)
RAW = {"DEEP": "[" * 100_000 + "]" * 100_000, "DIGITS": "9" * 5000}  # placeholders, for text that no library writes
HOSTILE = ("<script>alert(1)</script>", "\u202egnp.exe", "\x1b[2J", "{{ 7 * 7 }}", "../../etc/passwd", "a" * 5000, "")
NUMBERS = (0, -1, 1, 3, 128, 10**6, 4 * 10**8, 2**31, 2**63, 1e308, float("nan"), float("inf"), -0.5)
ANYTHING = (*NUMBERS, *HOSTILE, *RAW, True, None, "12", [], {}, [[]])
CONFIG_KEYS = ("model_type", "tie_word_embeddings", "scale_attn_weights", "rope_scaling", "quantization_config")
KEYS = (*HOSTILE, *CONFIG_KEYS, "n_inner", "licence", "group", "counts", "family", "stack", "transformer.wte.weight")


def one_of(options: Any, rng: Random) -> Any:
    return copy.deepcopy(options[int(rng.integers(len(options)))])


# What a file holds


def read_text(path: Path) -> Content:
    return {".yml": yaml.safe_load, ".json": json.loads}.get(path.suffix, str.splitlines)(path.read_text())


def write_text(content: Content, path: Path) -> None:
    if path.suffix == ".txt":
        path.write_text("\n".join(map(str, content)))
        return
    text = yaml.safe_dump(content) if path.suffix == ".yml" else json.dumps(content, default=str)
    path.write_text(re.sub('"?(DEEP|DIGITS)"?', lambda found: RAW[found[1]], text))


def write_tensors(content: Content, path: Path) -> None:
    """Write what safetensors can hold; the rest is missing."""
    arrays = {str(name): np.ascontiguousarray(value) for name, value in content.items()}
    save_file({name: array for name, array in arrays.items() if array.dtype.kind in "fiub"}, path)


FORMATS: dict[str, tuple[Callable[[Path], Content], Callable[[Content, Path], Any]]] = {
    **dict.fromkeys((".json", ".yml", ".txt"), (read_text, write_text)),
    **dict.fromkeys((".bin", ".pt"), (torch.load, torch.save)),
    ".safetensors": (load_file, write_tensors),
    ".npz": (lambda path: dict(np.load(path)), lambda content, path: np.savez_compressed(path, **content)),
    ".npy": (lambda path: [np.load(path)], lambda content, path: np.save(path, content[0] if content else [])),
}


# Ways to damage it


def damage_bytes(path: Path, rng: Random) -> None:
    """Flip, cut out, repeat, cut off, overwrite or swap bytes, or raise a number; often near the beginning."""
    data = bytearray(path.read_bytes())
    for _ in range(int(rng.integers(1, 6))):
        at, other = (int(rng.integers(max(1, min(len(data), 10 ** int(rng.choice([3, 9])))))) for _ in range(2))
        near, far, some = slice(at, at + 8), slice(other, other + 8), slice(at, at + int(rng.integers(1, 200)))
        match int(rng.integers(7)):
            case 0:
                data[near] = bytes(byte ^ 1 << int(rng.integers(8)) for byte in data[near])
            case 1:
                del data[some]
            case 2:
                data[at:at] = data[some]
            case 3:
                del data[at:]
            case 4:
                data[near] = rng.bytes(8)
            case 5:
                data[near], data[far] = data[far], data[near]
            case 6:
                data[at:] = re.sub(rb"\d+", lambda found: b"9" * len(found[0]), data[at:], count=1)
    path.write_bytes(bytes(data))


def damage_content(path: Path, rng: Random) -> None:
    """Change a few of the things that a file holds; it stays well-formed."""
    read, write = FORMATS[path.suffix]
    content = read(path)
    for _ in range(int(rng.integers(1, 4))):
        damage_tree(content, rng)
    whole = path.suffix in (".json", ".yml") and rng.random() < 0.03
    write(one_of(ANYTHING, rng) if whole else content, path)


def damage_header(path: Path, rng: Random) -> None:
    """Let the header of a safetensors file lie about its tensors."""
    edit_header(path, lambda header: damage_tree(header, rng))


def replace_file(path: Path, rng: Random) -> None:
    """Put something that is no file in its place."""
    path.unlink(missing_ok=True)
    NO_FILES[one_of(list(NO_FILES), rng)](path)


def damage_tree(node: Content, rng: Random) -> None:
    """Drop, swap, add or replace something somewhere inside."""
    keys = list(node) if isinstance(node, dict) else range(len(node))
    if not keys:
        return
    key, other = one_of(keys, rng), one_of(keys, rng)
    if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.8:
        damage_tree(node[key], rng)
        return
    match int(rng.integers(8)):
        case 0:
            del node[key]
        case 1:
            node[key], node[other] = node[other], node[key]
        case 2 if isinstance(node, dict):
            node[one_of(KEYS, rng)] = node[key] if rng.random() < 0.5 else one_of(ANYTHING, rng)
        case _:
            node[key] = damaged(node[key], rng)


def damaged(value: Any, rng: Random) -> Any:
    """Return something else in the place of a number, a text, an array or a tensor."""
    if isinstance(value, torch.Tensor):
        return one_of(TENSORS, rng)(value)
    if not isinstance(value, Array):
        return one_of(ANYTHING, rng)
    if not value.size or not value.ndim or value.dtype.kind not in "fiu":
        return np.array(HOSTILE[:3])
    with np.errstate(all="ignore"):
        return one_of(ARRAYS, rng)(value, rng)


def with_one(array: Array, rng: Random) -> Array:
    changed = array.astype(np.float64)
    changed.flat[int(rng.integers(array.size))] = rng.choice([1e30, -3e38, np.inf, np.nan, 1e17, 1e-40])
    return changed.astype(array.dtype)


ARRAYS: tuple[Callable[[Array, Random], Array], ...] = (
    with_one,
    lambda array, rng: np.full_like(array, rng.choice([0, 1, 1e-30, 1e17, np.nan])),
    lambda array, rng: (array * rng.choice([1e-20, 1e10, 1e15, -1])).astype(array.dtype),
    lambda array, rng: np.sign(array),
    lambda array, rng: np.broadcast_to(array[:1], array.shape),
    lambda array, rng: rng.permutation(array),
    lambda array, rng: array[: int(rng.integers(len(array)))],
    lambda array, rng: array[..., :1],
    lambda array, rng: np.concatenate([array, array]),
    lambda array, rng: array.T,
    lambda array, rng: array.astype(rng.choice([np.float16, np.float64, np.int64, np.uint8, np.str_])),
    lambda array, rng: np.array([{}, None], object),
    lambda array, rng: np.array(HOSTILE[:3]),
)
DTYPES = ("meta", torch.complex64, torch.bfloat16, torch.float8_e4m3fn)
TENSORS: tuple[Callable[[torch.Tensor], Any], ...] = (
    torch.nn.Parameter,
    torch._neg_view,
    torch.Tensor.to_sparse,
    torch.Tensor.t,
    *(lambda tensor, to=to: tensor.to(to) for to in DTYPES),
    lambda tensor: torch.zeros(1).expand(tensor.numel(), 10**9),
    lambda tensor: torch.zeros(1).expand(tensor.shape),
    lambda tensor: torch.quantize_per_tensor(tensor, 0.1, 0, torch.qint8),
    lambda tensor: torch.nested.nested_tensor([tensor, tensor]),
    lambda tensor: [tensor],
    lambda tensor: {"weight": tensor, "array": np.ones(3)},
)
NO_FILES: dict[str, Callable[[Path], Any]] = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "dead link": lambda path: path.symlink_to(path.with_name("nowhere")),
    "circular link": lambda path: path.symlink_to(path.name),
    "folder": Path.mkdir,
    "hole": lambda path: (path.touch(), os.truncate(path, 20 * 2**30)),  # a sparse file
    "nothing": lambda path: None,
    "odd name": lambda path: path.with_name(os.fsdecode(b"\xff\x1b[31m") + path.name).touch(),
}


def reseal(path: Path) -> None:
    """Make the digests of a stored result fit what it holds now, as a forger would, if it can be read."""
    record = path.with_name(f"{path.name.split('.')[0]}.json")
    with suppress(Exception):
        content = json.loads(record.read_text())
        del content["sha256"]
        if path.suffix == ".npz":
            content["arrays_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        record.write_text(as_json({**content, "sha256": content_digest(content)}))


# Kinds: what writes a sound file into the folder of a checkpoint


def merges(folder: Path, rng: Random) -> None:
    words = (folder / "vocab.txt").read_text().split("\n")
    write_text({word: i for i, word in enumerate(words)}, folder / "vocab.json")
    write_text(["#version: 0.2", *map(" ".join, pairwise(words))], folder / "merges.txt")
    (folder / "vocab.txt").unlink()


def tokenizer(folder: Path, rng: Random) -> None:
    kind, vocab = one_of(("BPE", "WordPiece", "WordLevel", "Unigram"), rng), {f"w{i}": i for i in range(128)}
    model: Content = {"type": kind, "vocab": vocab, "merges": [], "unk_token": "w0"}
    if kind == "Unigram":
        model["vocab"] = [[word, -1.0] for word in vocab]
    if kind == "WordPiece":
        model |= {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = [{"id": 127, "content": "<x>", "special": True, **flags}]
    content = {"version": "1.0", "model": model, "added_tokens": added, "normalizer": None}
    write_text(content, folder / "tokenizer.json")


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
    other_software.write_nanogpt(torch, emptied(folder), other_software.nanogpt_of(tensors_of("gpt2")))


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


def absurd_sizes(folder: Path, rng: Random) -> None:
    few = (1, 2, 3, 5, 17)
    layers, heads, width, positions, tokens = (one_of(options, rng) for options in ((1, 3), (1, 2), few, few, few))
    write_checkpoint(emptied(folder), sizes=Sizes(layers, heads, heads * width, positions, tokens))


def long_and_deep(folder: Path, rng: Random) -> None:
    """Write many layers, positions or tokens. `make large` times more than this."""
    layers, positions, tokens = one_of(((200, 24, 128), (1, 10_000, 128), (1, 24, 40_000)), rng)
    write_checkpoint(emptied(folder), sizes=Sizes(layers, one_of((1, 2, 4), rng), 16, positions, tokens))


@dataclass(frozen=True)
class Kind:
    """Files of a project that are damaged, and what writes them if the sound project doesn't have them."""

    files: tuple[str, ...]
    write: Callable[[Path, Random], None] = lambda folder, rng: None
    ways: tuple[Callable[[Path, Random], None], ...] = (damage_bytes, damage_content, replace_file)


KINDS = {
    "weights": Kind((f"tiny/{WEIGHTS}",), ways=(damage_bytes, damage_content, replace_file, damage_header)),
    "config": Kind(("tiny/config.json",)),
    "vocabulary": Kind(("tiny/vocab.txt",)),
    "merges": Kind(("tiny/vocab.json", "tiny/merges.txt"), merges),
    "tokenizer.json": Kind(("tiny/tokenizer.json",), tokenizer),
    "token counts": Kind(("tiny/token_counts.npy",)),
    "registry": Kind(("models.yml",)),
    "stored results": Kind(("results/tiny/*.json",)),
    "stored arrays": Kind(("results/tiny/*.npz",)),
    "shards": Kind((f"tiny/{WEIGHTS}.index.json", "tiny/model-*"), shards),
    "pickles": Kind(("tiny/pytorch_model.bin",), pickles),
    "nanoGPT": Kind(("tiny/ckpt.pt",), nanogpt),
    "TransformerLens": Kind((f"tiny/{WEIGHTS}", "tiny/cfg.json"), transformer_lens),
    "GGUF": Kind(("tiny/model.gguf",), gguf, (damage_bytes, replace_file)),
    "CTranslate2": Kind(("tiny/model.bin",), ctranslate2, (damage_bytes, replace_file)),
    "pipes and devices": Kind(("tiny/*", "results/tiny/*", "tiny/training.json"), ways=(replace_file,)),
    "absurd sizes": Kind((), absurd_sizes),
    "long and deep models": Kind((), long_and_deep),
}


def mutate(place: Path, kind: Kind, rng: Random, way: int | None = None) -> None:
    """Turn a sound project into a mutant: with one of the kind's files damaged, in one of its ways."""
    kind.write(place / "tiny", rng)
    if not any(name.startswith("results") for name in kind.files) and rng.random() < 0.5:
        shutil.rmtree(place / "results")
    files = sorted({path for name in kind.files for path in (place.glob(name) if "*" in name else [place / name])})
    if not files:
        return
    path = one_of(files, rng)
    (one_of(kind.ways, rng) if way is None else kind.ways[way])(path, rng)
    if path.is_file():
        reseal(path)


def edited(pattern: str, name: str, change: Callable[[Array], Array]) -> Callable[[Path], None]:
    """Return what changes one array of a file in a project."""

    def edit(place: Path) -> None:
        (path,) = place.glob(pattern)
        read, write = FORMATS[path.suffix]
        arrays = read(path)
        arrays[name] = change(arrays[name])
        write(arrays, path)
        reseal(path)

    return edit


STORED = "results/tiny/channels.*.npz"
BROKE = {  # the atlas, once
    "a matrix of zeros": edited(f"tiny/{WEIGHTS}", "h.0.mlp.c_fc.weight", np.zeros_like),
    "a histogram of one bin": edited(STORED, "channel_histograms", lambda array: array[:, :1]),
    "text for channels": edited(STORED, "strong_channels", lambda array: np.array(HOSTILE[:3])),
}
