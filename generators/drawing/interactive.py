"""What an interactive figure is drawn from in a browser: plain numbers, rounded, small enough for a phone.

`site_src/assets/figures.js` draws them, each kind in a file of its own; the house style travels along: it has one
source.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Real
from numpy import ndarray as Array

from generators.drawing import style
from generators.maths.blocks import spread_ids

SIGNIFICANT_DIGITS = 4  # as many as a screen shows
MOST_POINTS = 4096  # points per group: a phone can still rotate them


@dataclass(frozen=True)
class Rows:
    """A range of positions in its own three components, of which each has the `shares` of variance.

    `numbers` are shown beside it: what each is, and the number in words.
    """

    name: str
    first: int
    points: Float[Array, "rows 3"]
    shares: tuple[float, ...] | None = None
    numbers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Colouring:
    """A value per position for coloring; a cyclic one ends where it began."""

    name: str
    values: Real[Array, " n"]
    cyclic: bool = False


@dataclass(frozen=True)
class Curve:
    """A curve to be turned: the range `start` and the first colouring are shown first.

    Ranges that follow one another, as layers do, are chosen with a slider, which `slider` names. `axes` are the names
    of the axes where they are not principal components.
    """

    rows: tuple[Rows, ...]
    colourings: tuple[Colouring, ...]
    slider: str | None = None
    axes: tuple[str, ...] | None = None
    start: int = 0

    def as_json(self) -> dict[str, Any]:
        rows = [
            {
                **vars(rows),
                "shares": None if rows.shares is None else rounded(rows.shares),
                "points": [rounded(column) for column in rows.points.T],
            }
            for rows in self.rows
        ]
        colourings = [{**vars(one), "values": rounded(one.values)} for one in self.colourings]
        return {"kind": "curve", "style": house_style(), **vars(self), "rows": rows, "colourings": colourings}


@dataclass(frozen=True)
class Group:
    """Tokens of one colour (its index in the palette); without a vocabulary they have no names."""

    name: str
    colour: int
    ids: Int[Array, " tokens"]
    x: Real[Array, " tokens"]
    y: Real[Array, " tokens"]
    names: Sequence[str] | Array | None = None

    def as_json(self) -> dict[str, Any]:
        """Return plain data, with evenly spread tokens if there are more than a phone can handle."""
        chosen = spread_ids(len(self.ids), MOST_POINTS)
        return {
            **vars(self),
            "ids": [int(self.ids[i]) for i in chosen],
            "x": placed(self.x[chosen]),
            "y": placed(self.y[chosen]),
            "names": None if self.names is None else [str(self.names[i]) for i in chosen],
        }


@dataclass(frozen=True)
class Scatter:
    """Tokens in a plane, to be pointed at and searched, out of a vocabulary of `n_tokens`.

    `diagonal` draws the line on which both coordinates are equal, `origin` a plus where both are 0; `named` are
    points that bear their name, as far as names don't cover one another.
    """

    x_label: str
    y_label: str
    groups: tuple[Group, ...]
    n_tokens: int
    diagonal: bool = False
    origin: bool = False
    named: tuple[tuple[float, float, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": "scatter",
            "style": house_style(),
            **vars(self),
            "named": [[*rounded((x, y)), name] for x, y, name in self.named],
            "groups": [group.as_json() for group in self.groups if len(group.ids)],
        }


def house_style() -> dict[str, Any]:
    return {
        "ink": style.INK,
        "ink_dark": style.INK_DARK,
        "page": style.PAGE,
        "page_dark": style.PAGE_DARK,
        "colours": style.COLOURS,
        "positions": style.POSITION_STOPS,
        "cycle": style.CYCLIC_STOPS,
    }


def placed(values: Real[Array, " n"], digits: int = SIGNIFICANT_DIGITS) -> list[float | None]:
    """Round numbers on a linear scale so that their range has `digits` significant digits."""
    array = np.asarray(values, dtype=np.float64)
    finite = array[np.isfinite(array)]
    width = float(np.ptp(finite)) or float(np.abs(finite).max()) if len(finite) else 0.0
    decimals = digits - 1 - math.floor(math.log10(width)) if width else 0
    return [round(float(value), decimals) if np.isfinite(value) else None for value in array]


def rounded(values: Real[Array, " n"] | Iterable[float], digits: int = SIGNIFICANT_DIGITS) -> list[float | None]:
    """Round to the significant digits shown; None where not finite."""
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values]
