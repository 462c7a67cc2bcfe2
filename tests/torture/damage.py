"""General ways to damage any file that the atlas reads: for `make fuzz`."""

import copy
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from safetensors.numpy import load_file, save_file

from generators.base.plain import as_json, content_digest
from tests.checkpoints import edit_header

Array, Random = np.ndarray, np.random.Generator
Content = Any  # nested dicts and lists of arrays, tensors, numbers and text
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
    """Flip bits, cut the rest off, or raise a number; often near the beginning."""
    data = bytearray(path.read_bytes())
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(max(1, min(len(data), 10 ** int(rng.choice([3, 9]))))))
        match int(rng.integers(3)):
            case 0:
                data[at : at + 8] = bytes(byte ^ 1 << int(rng.integers(8)) for byte in data[at : at + 8])
            case 1:
                del data[at:]
            case 2:
                data[at:] = re.sub(rb"\d+", lambda found: b"9" * len(found[0]), data[at:], count=1)
    path.write_bytes(bytes(data))


def damage_content(path: Path, rng: Random) -> None:
    """Change a few of the things that a file holds, which stays well-formed; bytes of what can't be written here."""
    if path.suffix not in FORMATS:
        damage_bytes(path, rng)
        return
    read, write = FORMATS[path.suffix]
    content = read(path)
    for _ in range(int(rng.integers(1, 4))):
        damage_tree(content, rng)
    whole = path.suffix in (".json", ".yml") and rng.random() < 0.03
    write(one_of(ANYTHING, rng) if whole else content, path)


def damage_header(path: Path, rng: Random) -> None:
    edit_header(path, lambda header: damage_tree(header, rng))


def replace_file(path: Path, rng: Random) -> None:
    """Put something that is no file in its place."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    one_of(NO_FILES, rng)(path)


def damage_tree(node: Content, rng: Random) -> None:
    """Drop, add or replace something somewhere inside."""
    keys = list(node) if isinstance(node, dict) else range(len(node))
    if not keys:
        return
    key, what = one_of(keys, rng), int(rng.integers(8))
    if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.8:
        damage_tree(node[key], rng)
    elif what == 0:
        del node[key]
    elif what == 1 and isinstance(node, dict):
        node[one_of(KEYS, rng)] = one_of((node[key], *ANYTHING), rng)
    else:
        node[key] = damaged(node[key], rng)


def damaged(value: Any, rng: Random) -> Any:
    """Return something else in the place of a number, a text or an array."""
    if not isinstance(value, Array):
        return one_of(ANYTHING, rng)
    if not value.size or not value.ndim or value.dtype.kind not in "fiu":
        return np.array(HOSTILE[:3])
    with np.errstate(all="ignore"):
        return one_of(ARRAYS, rng)(value, rng)


ARRAYS: tuple[Callable[[Array, Random], Array], ...] = (
    lambda array, rng: np.full_like(array, rng.choice([0, 1e-30, 1e17, np.inf, np.nan])),
    lambda array, rng: (array * rng.choice([1e-20, 1e10, 1e15, -1])).astype(array.dtype),
    lambda array, rng: np.broadcast_to(array[:1], array.shape),
    lambda array, rng: array[: int(rng.integers(len(array)))],
    lambda array, rng: array.T,
    lambda array, rng: array.astype(rng.choice([np.float16, np.float64, np.int64, np.uint8, np.str_])),
    lambda array, rng: np.array([{}, None], object),
    lambda array, rng: np.array(HOSTILE[:3]),
)
NO_FILES: tuple[Callable[[Path], Any], ...] = (
    os.mkfifo,
    lambda path: path.symlink_to("/dev/zero"),
    lambda path: path.symlink_to(path.with_name("nowhere")),
    lambda path: path.symlink_to(path.name),
    Path.mkdir,
    lambda path: (path.touch(), os.truncate(path, 20 * 2**30)),  # a sparse file
    lambda path: None,
    lambda path: path.with_name(os.fsdecode(b"\xff\x1b[31m") + path.name).touch(),
)


def reseal(path: Path, **changed: Any) -> None:
    """Make the digests of a stored result fit what it holds now, as a forger would, if it can be read."""
    record = path.with_name(f"{path.name.split('.')[0]}.json")
    with suppress(Exception):
        content = json.loads(record.read_text()) | changed
        del content["sha256"]
        if path.suffix == ".npz":
            content["arrays_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        record.write_text(as_json({**content, "sha256": content_digest(content)}))
