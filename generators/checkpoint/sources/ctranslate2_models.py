"""What a model.bin of CTranslate2 says of its model, in the words of transformers: Whisper's config and names."""

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from generators.base.errors import InputError
from generators.checkpoint.roles import FusedPart
from generators.checkpoint.sources.ctranslate2_files import ALIASES, NUMBERS, SPEC
from generators.checkpoint.sources.dialects import Dialect
from generators.checkpoint.sources.formats import Header

WHISPER = "WhisperSpec"
LAYER = re.compile(r"(encoder|decoder)/layer_(\d+)/")
TOKENS, OUTPUT = "decoder/embeddings/weight", "decoder/projection/weight"
ENGLISH, END_OF_TEXT = 51_864, 50_257  # tokens of Whisper in English alone; that one in many languages
# What CTranslate2 calls a module, in a layer if there is a slash -> what transformers calls its equal parts.
MODULES = {
    **{name: name for name in ("conv1", "conv2", "layer_norm")},
    "embeddings": "embed_tokens",
    "position_encodings": "embed_positions",
    "self_attention/layer_norm": "self_attn_layer_norm",
    "self_attention/linear_0": "self_attn.q_proj self_attn.k_proj self_attn.v_proj",
    "self_attention/linear_1": "self_attn.out_proj",
    "attention/layer_norm": "encoder_attn_layer_norm",
    "attention/linear_0": "encoder_attn.q_proj",
    "attention/linear_1": "encoder_attn.k_proj encoder_attn.v_proj",
    "attention/linear_2": "encoder_attn.out_proj",
    "ffn/layer_norm": "final_layer_norm",
    "ffn/linear_0": "fc1",
    "ffn/linear_1": "fc2",
}
KINDS = {"layer_norm": {"weight": "gamma", "bias": "beta"}, "position_encodings": {"weight": "encodings"}}
OTHERS = {"weight": "weight", "bias": "bias"}


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
        tensors={there: here for there, here, _ in _tensors()},
        parts={there: part for there, _, part in _tensors() if part},
        pieces=_pieces,
    )


def _sizes(numbers: Mapping[str, float], headers: Mapping[str, Header]) -> dict[str, Any]:
    layers = {match[0]: match[1] for name in headers if (match := LAYER.match(name))}
    rows = {name: header.shape for name, header in headers.items() if len(header.shape) == 2}
    config: dict[str, Any] = {"model_type": "whisper"}
    if TOKENS in rows:
        config["vocab_size"], config["d_model"] = rows[TOKENS]
    if config.get("vocab_size", 0) > ENGLISH:
        config |= dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), END_OF_TEXT)
    for half, positions in (("encoder", "max_source_positions"), ("decoder", "max_target_positions")):
        config[f"{half}_layers"] = list(layers.values()).count(half)
        if (heads := numbers.get(f"{half}/num_heads")) is not None:
            config[f"{half}_attention_heads"] = int(heads) if heads.is_integer() else heads
        if (inner := f"{half}/layer_0/ffn/linear_0/weight") in rows:
            config[f"{half}_ffn_dim"] = rows[inner][0]
        if (table := f"{half}/position_encodings/encodings") in rows:
            config[positions] = rows[table][0]
    if len(hears := headers["encoder/conv1/weight"].shape if "encoder/conv1/weight" in headers else ()) > 1:
        config["num_mel_bins"] = hears[1]
    return config


def _tensors() -> Iterator[tuple[str, str, FusedPart | None]]:
    """Yield what transformers calls a tensor, its name here, and which part of queries, keys and values it is."""
    yield "proj_out.weight", OUTPUT, None
    for half, (here, there) in product(("encoder", "decoder"), MODULES.items()):
        theirs, ours = (f"{half}.layers.{{i}}", f"{half}/layer_{{i}}") if "/" in here else (half, half)
        names, kinds = there.split(), KINDS.get(here.split("/")[-1], OTHERS)
        for (index, name), (kind, stored) in product(enumerate(names), kinds.items()):
            part = FusedPart(index, "a b b") if len(names) == 3 else None
            yield f"{theirs}.{name}.{kind}", f"{ours}/{here}/{stored}", part


def _pieces(name: str) -> tuple[str, ...]:
    """Return what transformers calls the equal parts of a tensor."""
    layer = LAYER.match(name)
    here = name if layer is None else f"{layer[1]}/layer_{{i}}/{name[layer.end() :]}"
    found = (there.format(i=layer and layer[2]) for there, ours, _ in _tensors() if ours == here)
    return tuple(there if there.startswith("proj_out") else f"model.{there}" for there in found)
