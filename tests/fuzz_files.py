"""Kinds of mutants that change which files there are, of which format, how large: for `make fuzz`.

Each takes the folder of a project (`tests.fuzz.base`) and a generator of random numbers.
"""

import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from generators.base.plain import as_json, content_digest
from tests.checkpoint import other_software
from tests.checkpoints import Sizes, tensors_of, write_checkpoint

Random = np.random.Generator
Change = Callable[[Path, Random], None]
WEIGHTS = "model.safetensors"


def damaged(path: Path, rng: Random) -> None:
    """Change some bytes of a file: flipped, cut out, doubled, cut off, or others; its beginning more often."""
    data = bytearray(path.read_bytes())
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(0, max(1, min(len(data), 4000) if rng.random() < 0.5 else len(data))))
        kind = rng.integers(0, 5)
        if kind == 0 and data:
            data[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == 1:
            del data[at : at + int(rng.integers(1, 200))]
        elif kind == 2:
            data[at:at] = data[at : at + int(rng.integers(1, 200))]
        elif kind == 3:
            del data[at:]
        else:
            data[at : at + 8] = rng.bytes(8)
    path.write_bytes(bytes(data))


def shards(place: Path, rng: Random) -> None:
    """Cut the weights into shards; change the index, lose or damage a shard, or give a tensor two names."""
    folder, count = place / "tiny", int(rng.integers(1, 5))
    tensors = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    names = [f"model-{i + 1:05}-of-{count:05}.safetensors" for i in range(count)]
    where = {name: names[i % count] for i, name in enumerate(tensors)}
    for file in names:
        save_file({name: tensors[name] for name in tensors if where[name] == file}, folder / file)
    index: dict[str, Any] = {"metadata": {}, "weight_map": where}
    some, file, kind = str(rng.choice(sorted(tensors))), folder / str(rng.choice(names)), rng.integers(0, 8)
    if kind == 0:
        where[some] = str(rng.choice(["../models.yml", "/etc/passwd", "absent.safetensors", "config.json", "", "."]))
    elif kind == 1:
        where[some] = str(rng.choice(names))
    elif kind == 2:
        index["weight_map"] = rng.choice(np.array([None, [], "x", {some: 3}, {some: None}, {}], object))
    elif kind == 3:
        file.unlink()
    elif kind == 4:
        damaged(file, rng)
    elif kind == 5:
        where[f"transformer.{some}"] = where[some]
    elif kind == 6:
        del where[some]
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index))
    if kind == 7:
        damaged(folder / f"{WEIGHTS}.index.json", rng)


def pickles(place: Path, rng: Random) -> None:
    """Write the weights as PyTorch does, with one that isn't an ordinary tensor, or with other bytes."""
    import torch

    folder = place / "tiny"
    tensors: dict[str, Any] = {name: torch.tensor(array) for name, array in load_file(folder / WEIGHTS).items()}
    (folder / WEIGHTS).unlink()
    name, path = str(rng.choice(sorted(tensors))), folder / "pytorch_model.bin"
    found = tensors[name]
    others: tuple[Callable[[], Any], ...] = (
        lambda: torch.nn.Parameter(found),
        found.to_sparse,
        lambda: found.to("meta"),
        lambda: torch.zeros(1).expand(found.shape[0], 10**9),
        lambda: torch.zeros(1).expand(found.shape),
        lambda: found.to(torch.complex64),
        lambda: found.to(torch.bfloat16),
        lambda: found.to(torch.float8_e4m3fn),
        lambda: found.T,
        lambda: torch._neg_view(found),
        lambda: torch.quantize_per_tensor(found, 0.1, 0, torch.qint8),
        lambda: torch.nested.nested_tensor([found, found]),
        lambda: [found],
        lambda: {"weight": found},
        lambda: "text",
        lambda: None,
        lambda: np.ones(3),
        lambda: found,
    )
    tensors[name] = others[int(rng.integers(len(others)))]()
    content = rng.choice(
        np.array([{"model": tensors}, tensors, [tensors], {"state_dict": {"model": tensors}}], object)
    )
    if rng.random() < 0.6:
        content = tensors
    torch.save(content, path, _use_new_zipfile_serialization=bool(rng.random() < 0.8))
    if rng.random() < 0.3:
        damaged(path, rng)


def token_ids(place: Path, rng: Random) -> None:
    """Write a tokenizer.json whose ids have gaps, repeat, are negative, or are far beyond the embedding."""
    folder, n = place / "tiny", 128
    ids = list(range(n))
    for _ in range(int(rng.integers(1, 5))):
        ids[int(rng.integers(n))] = int(rng.choice([-1, 0, 127, 128, 1000, 10**6, 4 * 10**8, 2**31, 2**32, 2**62]))
    vocab: Any = {f"w{i}": number for i, number in enumerate(ids)}
    kind = str(rng.choice(["BPE", "WordPiece", "WordLevel", "Unigram"]))
    if kind == "Unigram":
        vocab = [[word, float(rng.choice([-1.0, 0.0, 1e30]))] for word in vocab]
    added = int(rng.choice([5, 128, 200, 2_000_000, 4 * 10**8, 2**31, -1]))
    content = {
        "version": "1.0",
        "model": {"type": kind, "vocab": vocab, "merges": [], "unk_token": str(rng.choice(["w0", "[UNK]"]))},
        "added_tokens": [
            {"id": added, "content": "<x>", "special": True, "single_word": False, "lstrip": False, "rstrip": False}
            | {"normalized": False}
        ][: int(rng.integers(0, 2))],
        "normalizer": None,
    }
    if kind == "WordPiece":
        content["model"] |= {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    (folder / "tokenizer.json").write_text(json.dumps(content))


def npz(place: Path, rng: Random) -> None:
    """Put other arrays in the place of stored ones, with a digest that fits."""
    paths = sorted((place / "results" / "tiny").glob("*.npz"))
    path = paths[int(rng.integers(len(paths)))]
    path.write_bytes(_forged(path.read_bytes(), rng))
    record = path.with_name(f"{path.name.split('.')[0]}.json")
    content = json.loads(record.read_text())
    del content["sha256"]
    content["arrays_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    record.write_text(as_json({**content, "sha256": content_digest(content)}))


def _forged(data: bytes, rng: Random) -> bytes:
    with np.load(io.BytesIO(data)) as file:
        arrays: dict[str, Any] = {name: file[name] for name in file.files}
    name, kind = str(rng.choice(sorted(arrays))), rng.integers(0, 9)
    if kind == 0:
        return b"no zip"
    if kind == 1:
        arrays[name] = np.array([{}, None], object)
    elif kind == 2:
        arrays[name] = np.array(["\u202e<script>alert(1)</script>"] * 3)
    elif kind == 3:
        del arrays[name]
    elif kind == 4:
        arrays[name] = arrays[name].astype(str)
    elif kind == 5:
        arrays[name] = arrays[name][..., :1]
    elif kind == 6:
        arrays[name] = np.full_like(arrays[name], np.nan) if arrays[name].dtype.kind == "f" else arrays[name]
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    if kind < 7:
        return buffer.getvalue()
    shape = "(1099511627776,)" if kind == 7 else f"({2**30},)"
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    member = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    zipped = zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with zipped, zipped.open(f"{name}.npy", "w", force_zip64=True) as opened:
        opened.write(member)
        for _ in range(600 if kind == 8 else 1):  # MiB
            opened.write(bytes(2**20))
    return buffer.getvalue()


def no_files(place: Path, rng: Random) -> None:
    """Put a pipe, a device, a dead or circular link, a folder or a huge hole in the place of a file."""
    folders = [place / "tiny", place / "results" / "tiny"]
    files = [path for folder in folders for path in sorted(folder.iterdir())]
    files += [place / "models.yml", place / "tiny" / "training.json", place / "tiny" / "tokenizer.json"]
    path, kind = files[int(rng.integers(len(files)))], rng.integers(0, 6)
    path.unlink(missing_ok=True)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.symlink_to("/dev/zero")
    elif kind == 2:
        path.symlink_to(path.with_name("nowhere"))
    elif kind == 3:
        path.symlink_to(path.name)
    elif kind == 4:
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(20 * 2**30)


def long_and_deep(place: Path, rng: Random) -> None:
    """Write a model with thousands of positions, hundreds of layers, or tens of thousands of tokens.

    All are sound, so they are measured in full: more positions than this take longer, and `tests.large` times them.
    """
    shutil.rmtree(place / "tiny")
    kind = rng.integers(0, 3)
    sizes = Sizes(
        n_layer=int(rng.integers(50, 250)) if kind == 0 else 1,
        n_head=int(rng.choice([1, 2, 4])),
        d_model=16 if kind == 0 else 32,
        n_ctx=int(rng.integers(2000, 10_000)) if kind == 1 else 24,
        vocab_size=int(rng.integers(5000, 40_000)) if kind == 2 else 128,
    )
    write_checkpoint(place / "tiny", sizes=sizes, seed=int(rng.integers(1000)))


def _in_place_of_weights(place: Path) -> Path:
    folder = place / "tiny"
    shutil.rmtree(folder)
    folder.mkdir()
    return folder


def nanogpt(place: Path, rng: Random) -> None:
    """Write a checkpoint of nanoGPT with other sizes, settings or bytes."""
    import torch

    folder, args = _in_place_of_weights(place), {}
    if rng.random() < 0.6:
        args[str(rng.choice(["n_layer", "n_head", "n_embd", "block_size", "vocab_size", "bias"]))] = _absurd(rng)
    other_software.write_nanogpt(torch, folder, other_software.nanogpt_of(tensors_of("gpt2")), **args)
    if rng.random() < 0.5:
        damaged(folder / "ckpt.pt", rng)


def transformer_lens(place: Path, rng: Random) -> None:
    """Write a model of TransformerLens with other shapes, settings or bytes."""
    folder, cfg = _in_place_of_weights(place), other_software.cfg_of()
    state = other_software.lens_of(tensors_of("gpt2"))
    for _ in range(int(rng.integers(0, 3))):
        cfg[str(rng.choice(sorted(cfg)))] = _absurd(rng)
    if rng.random() < 0.5:
        name = str(rng.choice(sorted(state)))
        state[name] = np.atleast_1d(state[name])[: int(rng.integers(0, 3))]
    save_file({name: np.ascontiguousarray(array) for name, array in state.items()}, folder / WEIGHTS)
    (folder / "cfg.json").write_text(json.dumps(cfg, default=str))
    if rng.random() < 0.4:
        damaged(folder / str(rng.choice([WEIGHTS, "cfg.json"])), rng)


def gguf(place: Path, rng: Random) -> None:
    """Write a GGUF file with other bytes."""
    folder = _in_place_of_weights(place)
    path = folder / "model.gguf"
    if rng.random() < 0.5:
        other_software.write_llama_gguf(path, str(rng.choice(["F16", "F32"])))
    else:
        other_software.write_gpt2_gguf(path)
    if rng.random() < 0.9:
        damaged(path, rng)


def _absurd(rng: Random) -> Any:
    return rng.choice(np.array([0, -1, 3, 2**31, 2**62, 1e308, True, None, "12", [], {}, "<script>"], object))


AFTER_COMPUTING = (npz, no_files)  # they need stored results
KINDS: dict[str, Change] = {
    "shards": shards,
    "pickles": pickles,
    "tokenizer ids": token_ids,
    "stored arrays": npz,
    "pipes and devices": no_files,
    "long and deep models": long_and_deep,
    "nanoGPT": nanogpt,
    "TransformerLens": transformer_lens,
    "GGUF": gguf,
}
