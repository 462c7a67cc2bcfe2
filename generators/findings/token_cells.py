import re

import numpy as np
from jaxtyping import Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.inputs import Vocabulary


class TokenCells(TypedDict):
    """What a row of a table says about a token; rows about tokens inherit from it."""

    id: int
    readable: str | None
    raw_bytes: str | None  # in hexadecimal


# Names of tokens that are kept for later use, as vocabularies write them.
RESERVED = (
    r"\[unused\d+\]",  # BERT
    r"madeupword\d+",  # OPT
    r"<unused\d+>",  # Gemma
    r"<\|?[^<>|]*reserved[^<>|]*\|?>",  # Llama 3 and 4, gpt-oss, Baichuan
    r"<\|unused[^<>|]*\|>",  # Granite
    r"<\|extra_\d+\|>",  # Qwen
    r"<\|(dummy_|placeholder)\d+\|>",  # Phi
    r"<SPECIAL_\d+>|\[control_\d+\]",  # Mistral
    r"\[UNUSED_TOKEN_\d+\]",  # InternLM
    r">>UNUSED_\d+<<",  # Falcon
    "<\uff5c(hy_)?place\u2581holder\u2581no\u2581\\d+\uff5c>",  # DeepSeek, Hunyuan
)
_RESERVED = re.compile("|".join(RESERVED).encode())

COLUMNS: tuple[str, ...] = tuple(TokenCells.__annotations__)


def cells(vocabulary: Vocabulary | None, token_id: int) -> TokenCells:
    if vocabulary is None:
        return {"id": token_id, "readable": None, "raw_bytes": None}
    readable, text = vocabulary.readable[token_id], vocabulary.raw_bytes[token_id]
    return {"id": token_id, "readable": readable, "raw_bytes": text.hex(" ")}


def name(token_id: int, readable: str | None) -> str:
    return f"#{token_id}" if readable is None else readable


def names(vocabulary: Vocabulary | None, ids: Int[Array, " n"], key: str = "token_name") -> dict[str, Array]:
    return {} if vocabulary is None else {key: np.array([vocabulary.readable[i] for i in ids], np.str_)}


def reserved_names(vocabulary: Vocabulary) -> set[int]:
    """Return the ids of tokens whose names say that they are kept for later use."""
    return {i for i, text in enumerate(vocabulary.raw_bytes) if _RESERVED.fullmatch(text)}
