"""What a model.bin of CTranslate2 says of its model, in the words of transformers: Whisper's config and names."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from generators.base.errors import InputError
from generators.checkpoint.roles import FusedPart
from generators.checkpoint.sources.ctranslate2_files import ALIASES, NUMBERS, SPEC
from generators.checkpoint.sources.dialects import Dialect
from generators.checkpoint.sources.formats import Header

WHISPER = "WhisperSpec"
LAYER = re.compile(r"(encoder|decoder)/layer_(\d+)/")
TOKENS, OUTPUT = "decoder/embeddings/weight", "decoder/projection/weight"
ROUNDED = "A quantized copy, with 8 bits per weight. All its numbers carry rounding."
LINEAR = {"self_attn.out_proj": "self_attention/linear_1", "fc1": "ffn/linear_0", "fc2": "ffn/linear_1"}
NORMS = {"self_attn_layer_norm": "self_attention/layer_norm", "final_layer_norm": "ffn/layer_norm"}
FUSED = "self_attention/linear_0"  # queries, keys and values
OF_NORMS = {"weight": "gamma", "bias": "beta"}
KINDS = ("weight", "bias")


def of_ctranslate2(said: Mapping[str, Any], headers: Mapping[str, Header], place: str) -> Dialect:
    """Return how to read a model.bin of CTranslate2. Raises InputError: it is of another model than Whisper."""
    if said[SPEC] != WHISPER:
        raise InputError(
            f"{place} is a model of CTranslate2 of the kind {said[SPEC][:60]!r}, and the atlas reads {WHISPER} in "
            "that format. Name the original that it was converted from."
        )
    return Dialect(
        "CTranslate2",
        {**_sizes(said[NUMBERS], headers), "tie_word_embeddings": said[ALIASES].get(OUTPUT) == TOKENS},
        tensors=dict(_tensors()),
        parts=dict(_parts()),
        note=ROUNDED if any(header.dtype == "I8" for header in headers.values()) else None,
    )


def _sizes(numbers: Mapping[str, float], headers: Mapping[str, Header]) -> dict[str, Any]:
    layers = {match[0]: match[1] for name in headers if (match := LAYER.match(name))}
    rows = {name: header.shape for name, header in headers.items() if len(header.shape) == 2}
    config: dict[str, Any] = {"model_type": "whisper"}
    if TOKENS in rows:
        config["vocab_size"], config["d_model"] = rows[TOKENS]
    for half, positions in (("encoder", "max_source_positions"), ("decoder", "max_target_positions")):
        config[f"{half}_layers"] = list(layers.values()).count(half)
        if (heads := numbers.get(f"{half}/num_heads")) is not None:
            config[f"{half}_attention_heads"] = int(heads)
        if (table := f"{half}/position_encodings/encodings") in rows:
            config[positions] = rows[table][0]
    return config


def _tensors() -> Iterator[tuple[str, str]]:
    """Yield what transformers calls a tensor, and its name here."""
    yield "decoder.embed_tokens.weight", TOKENS
    yield "proj_out.weight", OUTPUT
    for half in ("encoder", "decoder"):
        yield f"{half}.embed_positions.weight", f"{half}/position_encodings/encodings"
        theirs, ours = f"{half}.layers.{{i}}", f"{half}/layer_{{i}}"
        norms = {f"{theirs}.{there}": f"{ours}/{here}" for there, here in NORMS.items()}
        for there, here in {f"{half}.layer_norm": f"{half}/layer_norm", **norms}.items():
            yield from ((f"{there}.{kind}", f"{here}/{OF_NORMS[kind]}") for kind in KINDS)
        for there, here in LINEAR.items():
            yield from ((f"{theirs}.{there}.{kind}", f"{ours}/{here}/{kind}") for kind in KINDS)
        for name, kind, _ in _fused(theirs):
            yield name, f"{ours}/{FUSED}/{kind}"


def _parts() -> Iterator[tuple[str, FusedPart]]:
    for half in ("encoder", "decoder"):
        yield from ((name, part) for name, _, part in _fused(f"{half}.layers.{{i}}"))


def _fused(layer: str) -> Iterator[tuple[str, str, FusedPart]]:
    for index, matrix in enumerate("qkv"):
        for kind in KINDS:
            yield f"{layer}.self_attn.{matrix}_proj.{kind}", kind, FusedPart(index, "a b b")
