"""What a finding measures: numbers, tables, arrays, and what chance gives; no verdicts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

M = TypeVar("M")
R = TypeVar("R")


@dataclass(frozen=True)
class Table:
    """Rows under named columns; `title` says what one row is."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def named(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def column(self, name: str) -> list[Any]:
        at = self.columns.index(name)
        return [row[at] for row in self.rows]


def table_of(title: str, columns: Iterable[str] | type[Any], rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return a table of rows (dicts) in the order of `columns` or of a TypedDict; other keys are left out."""
    names = tuple(columns.__annotations__ if isinstance(columns, type) else columns)
    return Table(title, names, tuple(tuple(row[name] for name in names) for row in rows))


def numbers(rows: Iterable[Mapping[str, Any]], column: str) -> Float[Array, " rows"]:
    """Return a column of rows as an array; NaN where it has no number."""
    return np.array([row[column] for row in rows], np.float64)


def row_of(row: type[R], found: object, **more: Any) -> R:
    """Return a row of a type whose cells are attributes of `found`, but for those given."""
    return cast(R, {name: more[name] if name in more else getattr(found, name) for name in row.__annotations__})


@dataclass(frozen=True)
class KnownOfModel:
    """What decides claims by the architecture alone, where stored results know it.

    `tied`: its output embedding is its token embedding; `post_norm`: its blocks end with a norm; `shares_block`: one
    block is used in all layers; `causal`: no query sees a later key.
    """

    tied: bool | None = None
    post_norm: bool | None = None
    shares_block: bool = False
    causal: bool | None = None
    d_model: int | None = None


UNKNOWN = KnownOfModel()


@dataclass(frozen=True)
class Measurements(Generic[M]):
    """What a finding measured: numbers by the names of its definition, tables, and arrays for its figures.

    Nothing in it is judged; absent numbers are None.
    """

    metrics: M
    tables: dict[str, Table] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    model: KnownOfModel = UNKNOWN


class StoredChance(TypedDict):
    null: str
    median: float
    limit: float
    draws: int


Interval = list[float]  # 95 %, as it is stored among a finding's metrics: low, high


@dataclass(frozen=True)
class Chance:
    """What a null gives for a claim's value: `limit` is the percentile that `holds` has to pass, 99th or 1st."""

    null: str  # name of the null: "curves as smooth as P without features"
    median: float
    limit: float
    draws: int


def finite(value: float | np.floating[Any]) -> float | None:
    """Return a number as it is stored: a float, None where it isn't finite."""
    return float(value) if np.isfinite(value) else None
