"""General ways to damage any file that the atlas reads: for `make fuzz`."""

import copy
import hashlib
import json
import os
import re
import shutil
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import gguf
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


def read_gguf(path: Path) -> Content:
    reader = gguf.GGUFReader(path)
    said = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    return said | {"": {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in reader.tensors}}


def write_gguf(content: Content, path: Path) -> None:
    """Write what the library takes; the rest is missing."""
    tensors, writer = content.pop("", None), gguf.GGUFWriter(path, str(content.pop("general.architecture", "")))
    for name, value in content.items():
        with suppress(TypeError, ValueError, OverflowError, struct.error):
            kind = gguf.GGUFValueType.get_type(value)
            writer._pack_val(value, kind, True)
            writer.add_key_value(str(name), value, kind)
    for name, array in tensors.items() if isinstance(tensors, dict) else ():
        with suppress(AttributeError, TypeError, ValueError):
            writer.add_tensor(str(name), np.array(array))
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        step()
    writer.close()


FORMATS: dict[str, tuple[Callable[[Path], Content], Callable[[Content, Path], Any]]] = {
    **dict.fromkeys((".json", ".yml", ".txt"), (read_text, write_text)),
    **dict.fromkeys((".bin", ".pt"), (torch.load, torch.save)),
    ".safetensors": (load_file, write_tensors),
    ".gguf": (read_gguf, write_gguf),
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
    edit_header(path, lambda header: damage_tree(header, rng))


def damage_directory(path: Path, rng: Random) -> None:
    """Change the directory at the end of a zip file: names, sizes, offsets and ways of packing."""
    records, mark, directory = path.read_bytes().partition(b"PK\1\2")
    path.write_bytes(mark + directory)
    damage_bytes(path, rng)
    path.write_bytes(records + path.read_bytes())


def absurd_numbers(path: Path, rng: Random) -> None:
    """Change all tensors of one kind, or all there are."""
    change, part = one_of(NUMBERS_OF_ARRAYS, rng), one_of(("", "wte", "wpe", "attn", "mlp", "ln_", "bias"), rng)
    with np.errstate(all="ignore"):
        tensors = {name: change(array, rng) if part in name else array for name, array in load_file(path).items()}
    write_tensors(tensors, path)


def replace_file(path: Path, rng: Random, kind: str | None = None) -> None:
    """Put something that is no file in its place."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    NO_FILES[kind or one_of(list(NO_FILES), rng)](path)


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
        with suppress(RuntimeError):  # a tensor that is damaged already can't be damaged in every way
            return one_of(TENSORS, rng)(value)
        return [value]
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


NUMBERS_OF_ARRAYS: tuple[Callable[[Array, Random], Array], ...] = (
    with_one,
    lambda array, rng: np.full_like(array, rng.choice([0, 1, 1e-30, 1e17, np.nan])),
    lambda array, rng: (array * rng.choice([1e-20, 1e10, 1e15, -1])).astype(array.dtype),
    lambda array, rng: np.sign(array),
    lambda array, rng: np.broadcast_to(array[:1], array.shape),
    lambda array, rng: rng.permutation(array),
    lambda array, rng: np.round(array),
)
ARRAYS = (
    *NUMBERS_OF_ARRAYS,
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


def reseal(path: Path, **changed: Any) -> None:
    """Make the digests of a stored result fit what it holds now, as a forger would, if it can be read."""
    record = path.with_name(f"{path.name.split('.')[0]}.json")
    with suppress(Exception):
        content = json.loads(record.read_text()) | changed
        del content["sha256"]
        if path.suffix == ".npz":
            content["arrays_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        record.write_text(as_json({**content, "sha256": content_digest(content)}))
