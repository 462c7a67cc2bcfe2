"""One table per architecture family: role -> tensor. Adding a family is adding a file to this folder.

Every module here that holds `FAMILIES`, a tuple of tables, is found by listing the folder. Where no table knows a
model, its token embedding is found by name and size (`without_a_table`).
"""

import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from generators.base.architecture import Architecture
from generators.base.errors import InputError
from generators.base.nearest import nearest
from generators.checkpoint.config import MOST_LAYERS, ModelConfig
from generators.checkpoint.roles import Family, Slot
from generators.checkpoint.sources import Files

FIRST_NAMED = ("gpt2", "openai-gpt", "bert", "llama")  # named first in sentences: best known
ADD_ONE = "`Add a model` on the site, or CONTRIBUTING.md, says how to add a table"

# What the matrix that turns tokens into vectors is called, after any prefix.
TOKEN_MATRIX = re.compile(
    r"(^|\.)(embed_tokens|wte|tokens_embed|word_embeddings|tok_embeddings|token_embedding|token_embeddings|embed_in|"
    r"embedding|embeddings|shared|embed|emb)\.weight"
)
PLAIN = re.compile(r"[\w.-]{1,60}")  # a model_type that can be shown on a page
INSIDE = ("", "text_config")
OF_ENCODERS = ("encoder_layers", "num_encoder_layers")  # for a pair, the encoder: both read the matrix
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
CONTEXTS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "max_sequence_length",
    "n_ctx",
    "seq_length",
    "context_length",
)
SHARED = re.compile(r"(^|\.)shared\.weight")  # the name of a matrix that several parts share


class UnknownFamilyError(InputError):
    """No table knows this type of model."""


@cache
def families() -> tuple[Family, ...]:
    found: list[Family] = []
    for module in pkgutil.iter_modules(__path__):
        found += getattr(import_module(f"{__name__}.{module.name}"), "FAMILIES", ())
    return tuple(found)


def choose_family(config: Mapping[str, Any], family: str | None, stack: str | None = None) -> Family:
    """Return the family called `family`, or the one that config.json's `model_type` names.

    Args:
        stack: which half of a pair is meant (`encoder`, `decoder`, `text`, `vision`).
    """
    wanted = family or config.get("model_type")
    named = [known for known in families() if wanted == known.name]
    typed = [known for known in families() if isinstance(wanted, str) and wanted in known.model_types]
    fitting = named or typed
    if not fitting and family is not None:
        raise InputError(_no_table_called(family))
    if not fitting:
        raise UnknownFamilyError(_unknown(wanted))
    if stack is None and len(fitting) > 1:
        halves = " or ".join(f"--{known.stack}" for known in fitting)
        raise InputError(f"A model of type {wanted!r} is several models in one: name one by its ending, {halves}.")
    for known in fitting:
        if stack in (None, known.stack):
            return known
    raise InputError(f"A model of type {wanted!r} has no {stack} of its own.")


def _unknown(wanted: object) -> str:
    if wanted is None:
        return f"config.json has no model_type; the atlas knows the families {_first_names()}."
    return (
        f"The architecture family {wanted!r} is unknown; the atlas knows {_first_names()}. Without a table, only the "
        f"token embedding can be measured, and only if exactly one matrix has its name and size. {ADD_ONE}. "
        "If one of these families is built the same, --family NAME reads the model by its table."
    )


def _no_table_called(family: str) -> str:
    near = nearest(family, [known.name for known in families()])
    return f"There is no family {family!r}{near}; the atlas knows {_first_names()}."


def _first_names() -> str:
    names = [known.name for known in families()]
    more = len(names) - len(FIRST_NAMED)
    first = ", ".join(name for name in FIRST_NAMED if name in names)
    return f"{first} and {more} more" if more > 0 else first


# Without a table


def has_table(family: Family) -> bool:
    """Return whether a full table describes the family, not only its token embedding."""
    return not isinstance(family.without, NoRoles)


class NoRoles(Mapping[str, str]):
    """Has no roles, and gives the same reason for each."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __getitem__(self, role: str) -> str:
        return self._reason

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def without_a_table(files: Files, config: Mapping[str, Any]) -> tuple[Family, Architecture] | None:
    """Return a family with nothing but a token embedding, if exactly one matrix has the name and size of one.

    A matrix that both halves of a model share may be stored once for each; then the shared one is read.
    """
    kind = config.get("model_type")
    settings = next((s for s in (ModelConfig(config, at) for at in INSIDE) if _whole(s.get("vocab_size"))), None)
    if not isinstance(kind, str) or not PLAIN.fullmatch(kind) or settings is None:
        return None
    size = settings.size("vocab_size")
    if size == 1:
        return None  # a model of no tokens, on the frame of one that has them (Decision Transformer)
    names = [name for name in files.names() if TOKEN_MATRIX.search(name)]
    fitting = [(name, shape) for name in names if len(shape := files.header(name).shape) == 2 and shape[0] == size]
    fitting = [found for found in fitting if SHARED.search(found[0])] or fitting
    layers = _first(settings, LAYERS)
    if len(fitting) != 1 or layers is None:
        return None
    name, (_, d_model) = fitting[0]
    return _family_of_tokens(kind, name), _architecture_of_tokens(settings, kind, layers, d_model)


def _family_of_tokens(kind: str, tensor: str) -> Family:
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
        without=NoRoles(reason),
    )


def _architecture_of_tokens(settings: ModelConfig, kind: str, layers: int, d_model: int) -> Architecture:
    """Return what the config says; it isn't known how positions and masks work, so no finding reads these fields."""
    heads = _first(settings, HEADS) or 0
    return Architecture(
        family=f"{kind} (read without a table)",
        n_layer=min(layers, MOST_LAYERS),
        n_head=heads,
        d_model=d_model,
        n_ctx=_first(settings, CONTEXTS),
        vocab_size=settings.size("vocab_size"),
        d_head=_first(settings, ("head_dim",)) or d_model // (heads or 1),
        norm_eps=0.0,
        causal=True,
        post_norm=False,
        tied=settings.get("tie_word_embeddings") is True,
        positions="none",
    )


def _first(settings: ModelConfig, keys: tuple[str, ...]) -> int | None:
    return next((settings.size(key) for key in keys if _whole(settings.get(key))), None)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
