"""What an interactive figure is drawn from in a browser: plain numbers, rounded, small enough for a phone.

`site_src/assets/figures.js` turns them into Plotly's traces; the house style travels along: it has one source.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Real
from numpy import ndarray as Array

from generators.drawing import style
from generators.maths.blocks import spread_ids

SIGNIFICANT_DIGITS = 4  # a screen shows no more
MOST_POINTS = 4096  # of one group; a phone still moves them


@dataclass(frozen=True)
class Rows:
    """A range of positions in its own three components, of which each has the `shares` of variance."""

    name: str
    first: int
    points: Float[Array, "rows 3"]
    shares: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Colouring:
    """A value for every position, to colour by; a cyclic one returns to where it began."""

    name: str
    values: Real[Array, " n"]
    cyclic: bool = False


@dataclass(frozen=True)
class Curve:
    """A curve to be turned: the first range and the first colouring are shown first."""

    rows: tuple[Rows, ...]
    colourings: tuple[Colouring, ...]

    def as_json(self) -> dict[str, Any]:
        """Return plain data for `figures.js`."""
        return {
            "kind": "curve",
            "style": _style(),
            "rows": [
                {
                    "name": rows.name,
                    "first": rows.first,
                    "shares": None if rows.shares is None else _rounded(rows.shares),
                    "points": [_rounded(column) for column in rows.points.T],
                }
                for rows in self.rows
            ],
            "colourings": [
                {"name": colouring.name, "cyclic": colouring.cyclic, "values": _rounded(colouring.values)}
                for colouring in self.colourings
            ],
        }


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
        """Return plain data; of more tokens than a phone can move, evenly spread ones."""
        kept = spread_ids(len(self.ids), MOST_POINTS)
        return {
            "name": self.name,
            "colour": self.colour,
            "ids": [int(self.ids[i]) for i in kept],
            "x": _rounded(self.x[kept]),
            "y": _rounded(self.y[kept]),
            "names": None if self.names is None else [str(self.names[i]) for i in kept],
        }


@dataclass(frozen=True)
class Scatter:
    """Tokens in a plane, to be pointed at and searched, out of a vocabulary of `n_tokens`.

    `diagonal` draws the line on which both coordinates are equal; `named` are points that bear their name.
    """

    x_label: str
    y_label: str
    groups: tuple[Group, ...]
    n_tokens: int
    diagonal: bool = False
    named: tuple[tuple[float, float, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return plain data for `figures.js`."""
        return {
            "kind": "scatter",
            "style": _style(),
            "x_label": self.x_label,
            "y_label": self.y_label,
            "n_tokens": self.n_tokens,
            "diagonal": self.diagonal,
            "named": [[*_rounded((x, y)), name] for x, y, name in self.named],
            "groups": [group.as_json() for group in self.groups if len(group.ids)],
        }


Interactive = Curve | Scatter


def _style() -> dict[str, Any]:
    return {
        "ink": style.INK,
        "ink_dark": style.INK_DARK,
        "page": style.PAGE,
        "page_dark": style.PAGE_DARK,
        "colours": style.COLOURS,
        "positions": style.POSITION_STOPS,
        "cycle": style.CYCLIC_STOPS,
    }


def _rounded(values: Real[Array, " n"] | Iterable[float]) -> list[float | None]:
    return [float(f"{value:.{SIGNIFICANT_DIGITS}g}") if np.isfinite(value) else None for value in values]
