"""Small random checkpoints on disk, with the names and layouts that each family's own software writes.

The names stand here a second time, apart from the tables of generators/checkpoint/families/, so that tests compare
two statements. Every tensor has values of its own: a swapped or transposed one is noticed.
"""

import json
import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

from generators.checkpoint.checkpoint import Checkpoint, open_checkpoint
from generators.checkpoint.sources import in_folder

Array = np.ndarray
DTYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class Sizes:
    n_layer: int = 2
    n_head: int = 2
    d_model: int = 24
    n_ctx: int = 64
    vocab_size: int = 50


SMALL = Sizes()
# What configs call the fields of `Sizes`.
GPT = ("n_layer", "n_head", "n_embd", "n_positions", "vocab_size")
OTHERS = ("num_hidden_layers", "num_attention_heads", "hidden_size", "max_position_embeddings", "vocab_size")
EPSILON = {"bert": {"layer_norm_eps": 1e-12}, "llama": {"rms_norm_eps": 1e-6}}


def config_of(family: str, sizes: Sizes = SMALL, **more: Any) -> dict[str, Any]:
    named = dict(zip(OTHERS if family in EPSILON else GPT, astuple(sizes), strict=True))
    return {"model_type": family, **named, **EPSILON.get(family, {"layer_norm_epsilon": 1e-5}), **more}


def tensors_of(family: str, sizes: Sizes = SMALL, seed: int = 0) -> dict[str, Array]:
    """Return every tensor of a model by its name; gains are about 1."""
    shapes = _bert(sizes) if family == "bert" else _gpt(family, sizes)
    return {name: _values(name, shape, seed) for name, shape in shapes}


def _values(name: str, shape: tuple[int, ...], seed: int) -> Array:
    noise = np.random.default_rng([seed, zlib.crc32(name.encode())]).standard_normal(shape, np.float32)
    is_gain = len(shape) == 1 and name.endswith(".weight")
    return 1 + np.float32(0.2) * noise if is_gain else np.float32(0.1) * noise


def _gpt(family: str, s: Sizes) -> Iterator[tuple[str, tuple[int, ...]]]:
    d = s.d_model
    tokens, positions = ("wte", "wpe") if family == "gpt2" else ("tokens_embed", "positions_embed")
    yield f"{tokens}.weight", (s.vocab_size, d)
    yield f"{positions}.weight", (s.n_ctx, d)
    for i in range(s.n_layer):
        yield from _pair(f"h.{i}.ln_1", (d,))
        yield from _pair(f"h.{i}.attn.c_attn", (d, 3 * d))
        yield from _pair(f"h.{i}.attn.c_proj", (d, d))
        yield from _pair(f"h.{i}.ln_2", (d,))
        yield from _pair(f"h.{i}.mlp.c_fc", (d, 4 * d))
        yield from _pair(f"h.{i}.mlp.c_proj", (4 * d, d))
    if family == "gpt2":
        yield from _pair("ln_f", (d,))


def _bert(s: Sizes) -> Iterator[tuple[str, tuple[int, ...]]]:
    d = s.d_model
    yield "embeddings.word_embeddings.weight", (s.vocab_size, d)
    yield "embeddings.position_embeddings.weight", (s.n_ctx, d)
    yield "embeddings.token_type_embeddings.weight", (2, d)
    yield from _pair("embeddings.LayerNorm", (d,))
    for i in range(s.n_layer):
        block = f"encoder.layer.{i}"
        for name in ("query", "key", "value"):
            yield from _pair(f"{block}.attention.self.{name}", (d, d))
        yield from _pair(f"{block}.attention.output.dense", (d, d))
        yield from _pair(f"{block}.attention.output.LayerNorm", (d,))
        yield from _pair(f"{block}.intermediate.dense", (4 * d, d), bias=4 * d)
        yield from _pair(f"{block}.output.dense", (d, 4 * d), bias=d)
        yield from _pair(f"{block}.output.LayerNorm", (d,))


def _pair(name: str, shape: tuple[int, ...], bias: int | None = None) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", shape
    yield f"{name}.bias", (bias or shape[-1],)


def tensors_of_llama(
    d: int, f: int, vocab_size: int, layers: int = 2, kv: int | None = None, more: Mapping[str, tuple[int, ...]] = {}
) -> dict[str, Array]:
    """Return the tensors of a Llama of width `d`, with MLPs of `f`, keys of `kv` channels and more in each block."""
    heads = {"q": (d, d), "k": (kv or d, d), "v": (kv or d, d), "o": (d, d)}
    block: dict[str, tuple[int, ...]] = {f"self_attn.{name}_proj": shape for name, shape in heads.items()}
    block |= {"mlp.up_proj": (f, d), "mlp.gate_proj": (f, d), "mlp.down_proj": (d, f)}
    block |= {f"{name}_layernorm": (d,) for name in ("input", "post_attention")} | more
    shapes = {"embed_tokens": (vocab_size, d), "norm": (d,)}
    shapes |= {f"layers.{i}.{name}": shape for i in range(layers) for name, shape in block.items()}
    named = {f"model.{name}.weight": shape for name, shape in shapes.items()} | {"lm_head.weight": (vocab_size, d)}
    draw = np.random.default_rng(0)
    return {name: draw.standard_normal(shape, np.float32) for name, shape in named.items()}


def read_model(
    folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Array], family: str | None = None
) -> Checkpoint:
    """Write a model and open it, by the table of a family if one is named."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config)
    save_file(dict(tensors), folder / WEIGHTS)
    return open_checkpoint(in_folder(folder), family)


def write_checkpoint(
    folder: Path,
    family: str = "gpt2",
    *,
    sizes: Sizes = SMALL,
    seed: int = 0,
    without: Collection[str] = (),
    changed: Mapping[str, Array] | None = None,
    prefix: str = "",
    dtype: str | None = "float32",
    shards: int = 1,
    config: Mapping[str, Any] | None = None,
) -> Path:
    """Write a checkpoint into `folder` and return it.

    `without` are endings of names that are left out, `changed` tensors in place of the random ones, `config` entries
    that differ. Every name begins with `prefix`; all is stored as `dtype`, or as it is if that is None.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {**tensors_of(family, sizes, seed), **(changed or {})}
    stored = {
        prefix + name: np.asarray(tensor, None if dtype is None else DTYPES[dtype], order="C")
        for name, tensor in tensors.items()
        if not name.endswith(tuple(without))
    }
    write_json(folder / "config.json", {**config_of(family, sizes), **(config or {})})
    if shards == 1:
        save_file(stored, folder / WEIGHTS)
    else:
        _write_shards(folder, stored, shards)
    return folder


def _write_shards(folder: Path, tensors: dict[str, Array], shards: int) -> None:
    weight_map = {}
    for number, names in enumerate(np.array_split(list(tensors), shards), start=1):
        file = f"model-{number:05}-of-{shards:05}.safetensors"
        save_file({str(name): tensors[name] for name in names}, folder / file)
        weight_map |= dict.fromkeys(map(str, names), file)
    write_json(folder / f"{WEIGHTS}.index.json", {"metadata": {}, "weight_map": weight_map})


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content), "utf-8")


def read_safetensors(path: Path) -> tuple[dict[str, Any], bytes]:
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def raw_bytes(path: Path, name: str) -> bytes:
    header, data = read_safetensors(path)
    start, end = header[name]["data_offsets"]
    return data[start:end]


def edit_header(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    header, data = read_safetensors(path)
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class TouchesAFile:
    """Whoever unpickles this makes a file."""

    def __init__(self, where: Path) -> None:
        self.where = where

    def __reduce__(self) -> Any:
        return Path.touch, (self.where,)
