"""A model of a type that no table knows: its token embedding, found by its name and size."""

import re
from collections.abc import Mapping
from typing import Any

from generators.base.architecture import Architecture
from generators.base.errors import InputError
from generators.checkpoint.config import MOST_LAYERS, ModelConfig
from generators.checkpoint.families import NoRoles, UnknownFamilyError
from generators.checkpoint.roles import Family, Slot
from generators.checkpoint.sources import Files

# What the matrix that turns tokens into vectors is called, after any prefix.
TOKEN_MATRIX = re.compile(
    r"(^|\.)(embed_tokens|wte|tokens_embed|word_embeddings|tok_embeddings|token_embedding|token_embeddings|embed_in|"
    r"embedding|embeddings|shared|embed|emb)\.weight"
)
IN_LAYER = re.compile(r"\.\d+\.")
PLAIN = re.compile(r"[\w.-]{1,60}")  # a model_type that can be shown on a page
INSIDE = ("", "text_config")
TOKENS = ("vocab_size", "padded_vocab_size", "n_vocab", "num_embeddings")
LAYERS = (
    *("num_hidden_layers", "n_layer", "num_layers", "n_layers", "num_transformer_layers"),
    *("encoder_layers", "num_encoder_layers"),  # for a pair, the encoder: both read the matrix
    *("decoder_layers", "num_decoder_layers"),
)
HEADS = (
    *("num_attention_heads", "n_head", "num_heads", "n_heads"),
    *("encoder_attention_heads", "decoder_attention_heads"),
)
CONTEXTS = (
    *("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length"),
    *("n_ctx", "seq_length", "context_length"),
)
SHARED = re.compile(r"(^|\.)shared\.weight")  # the name of a matrix that several parts share


def only_tokens(
    files: Files, config: Mapping[str, Any], unknown: UnknownFamilyError
) -> tuple[Family, Architecture] | None:
    """Return a family with nothing but a token embedding, if one matrix alone has the name and size of one.

    A matrix that both halves of a model share may be stored once for each; then the shared one is read. Copies are
    one matrix, and layers store none of their own but copies.

    Raises InputError: none or several fit; says which condition failed.
    """
    kind = config.get("model_type")
    if not isinstance(kind, str) or not PLAIN.fullmatch(kind):
        return None
    places = (ModelConfig(config, at) for at in INSIDE)
    sized = next(((settings, size) for settings in places if (size := _first(settings, TOKENS))), None)
    if sized is None:
        raise _no_tokens(unknown, "config.json doesn't say how many tokens it has (vocab_size)")
    settings, size = sized
    if size == 1:
        return None  # a model of no tokens, on the frame of one that has them (Decision Transformer)
    names = [name for name in files.names() if TOKEN_MATRIX.search(name) and not IN_LAYER.search(name)]
    fitting = [name for name in names if _rows(files, name) == size]
    fitting = [name for name in fitting if SHARED.search(name)] or fitting
    if not fitting:
        found = f"its rows are {_rows(files, names[0])}" if names else "no matrix has such a name"
        raise _no_tokens(unknown, f"config.json says that there are {size} tokens, and {found}")
    if len(fitting) > 1 and len({files.digest(name) for name in fitting}) > 1:
        raise _no_tokens(unknown, f"{len(fitting)} different matrices have such a name and size ({fitting[0]}, ...)")
    family = _family_of_tokens(kind, fitting[0])
    return family, _architecture_of_tokens(settings, family, size, files.header(fitting[0]).shape[1])


def _no_tokens(unknown: UnknownFamilyError, why: str) -> InputError:
    return InputError(f"{unknown} Without a table only its token embedding could be read, but {why}.")


def _rows(files: Files, name: str) -> int:
    shape = files.header(name).shape
    return shape[0] if len(shape) == 2 else 0


def _family_of_tokens(kind: str, tensor: str) -> Family:
    return Family(
        name=f"{kind} (read without a table)",
        model_types=(kind,),
        prefixes=("",),
        config={},
        slots={"token_embedding": Slot(tensor, "V d")},
        block_slots={},
        positions="none",
        without=NoRoles(
            f"The atlas has no table for models of type {kind}: only their token embedding is read, found by its "
            "name and size."
        ),
    )


def _architecture_of_tokens(settings: ModelConfig, family: Family, size: int, d_model: int) -> Architecture:
    """Return what the config says; it isn't known how positions and masks work, so no finding reads these fields."""
    heads = _first(settings, HEADS) or 0
    return Architecture(
        family=family.name,
        n_layer=min(_first(settings, LAYERS) or 0, MOST_LAYERS),
        n_head=heads,
        d_model=d_model,
        n_ctx=_first(settings, CONTEXTS),
        vocab_size=size,
        d_head=_first(settings, ("head_dim",)) or d_model // (heads or 1),
        norm_eps=0.0,
        causal=True,
        post_norm=False,
        tied=settings.get("tie_word_embeddings") is True,
        positions=family.positions,
    )


def _first(settings: ModelConfig, keys: tuple[str, ...]) -> int | None:
    given = (key for key in keys if type(settings.get(key)) is int and settings.get(key) > 0)
    return next((settings.size(key) for key in given), None)
