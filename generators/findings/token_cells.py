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
