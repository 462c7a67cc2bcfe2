"""A checkpoint of a family that has no table: its token embedding, found by its name and size, and nothing else."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from generators.base.architecture import Architecture
from generators.checkpoint.config import MOST_LAYERS, Settings
from generators.checkpoint.roles import Family, Slot
from generators.checkpoint.sources import Files

# How the matrix that turns tokens into vectors is called, whatever stands before.
TOKEN_MATRIX = re.compile(
    r"(^|\.)(embed_tokens|wte|tokens_embed|word_embeddings|tok_embeddings|token_embedding|token_embeddings|embed_in|"
    r"embedding|embeddings|shared|embed|emb)\.weight"
)
PLAIN = re.compile(r"[\w.-]{1,60}")  # of a model_type that can stand on a page
INSIDE = ("", "text_config")
OF_ENCODERS = ("encoder_layers", "num_encoder_layers")  # of a pair the encoder is told of: both read the matrix
OF_DECODERS = ("decoder_layers", "num_decoder_layers")
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", *OF_ENCODERS, *OF_DECODERS)
HEADS = (
    "num_attention_heads",
    "n_head",
    "num_heads",
    "n_heads",
    "encoder_attention_heads",
    "decoder_attention_heads",
)
SHARED = re.compile(r"(^|\.)shared\.weight")  # what is tied under several names


class Nothing(Mapping[str, str]):
    """Why there is none of any role that one may ask for; it holds no role itself."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __getitem__(self, role: str) -> str:
        return self._reason

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def without_a_table(files: Files, config: Mapping[str, Any]) -> tuple[Family, Architecture] | None:
    """Return a family that has a token embedding only, where one matrix alone has the name and size of one.

    A matrix that halves of a model share may be stored once for each: the shared one is read.

    Raises:
        InputError: the weights are damaged.
    """
    kind = config.get("model_type")
    settings = next((s for s in (Settings(config, at) for at in INSIDE) if _whole(s.get("vocab_size"))), None)
    if not isinstance(kind, str) or not PLAIN.fullmatch(kind) or settings is None:
        return None
    size = settings.size("vocab_size")
    names = [name for name in files.names() if TOKEN_MATRIX.search(name)]
    fitting = [(name, shape) for name in names if len(shape := files.header(name).shape) == 2 and shape[0] == size]
    fitting = [found for found in fitting if SHARED.search(found[0])] or fitting
    layers = _first(settings, LAYERS)
    if len(fitting) != 1 or layers is None:
        return None
    name, (_, d_model) = fitting[0]
    return _family(kind, name), _architecture(settings, kind, layers, d_model)


def _family(kind: str, tensor: str) -> Family:
    reason = (
        f"The atlas has no table for models of type {kind}: only their token embedding is read, found by its name "
        "and size."
    )
    return Family(
        name=f"{kind} (read without a table)",
        model_types=(kind,),
        prefixes=("",),
        config={},
        slots={"token_embedding": Slot(tensor, "V d")},
        block_slots={},
        positions="none",
        without=Nothing(reason),
    )


def _architecture(settings: Settings, kind: str, layers: int, d_model: int) -> Architecture:
    heads = _first(settings, HEADS) or 0
    return Architecture(
        family=f"{kind} (read without a table)",
        n_layer=min(layers, MOST_LAYERS),
        n_head=heads,
        d_model=d_model,
        n_ctx=None,
        vocab_size=settings.size("vocab_size"),
        d_head=d_model // (heads or 1),
        norm_eps=0.0,
        causal=True,
        post_norm=False,
        tied=settings.get("tie_word_embeddings") is True,
        positions="none",
    )


def _first(settings: Settings, keys: tuple[str, ...]) -> int | None:
    return next((settings.size(key) for key in keys if _whole(settings.get(key))), None)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
