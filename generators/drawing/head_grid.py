from dataclasses import dataclass
from typing import Any

from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.drawing.interactive import house_style, rounded

DIGITS = 3  # digits per weight; models have up to a thousand heads


@dataclass(frozen=True)
class Grid:
    """One number per head, from 0 to 1, that colors the grid."""

    name: str
    values: Float[Array, "layers heads"]


@dataclass(frozen=True)
class ByOffset:
    """Mean attention of every head, layer by layer, by how many tokens the key is behind the query."""

    name: str
    offsets: Int[Array, " offsets"]
    weights: Float[Array, "all_heads offsets"]

    def within(self, first: int, last: int) -> "ByOffset":
        shown = (self.offsets >= first) & (self.offsets <= last)
        return ByOffset(self.name, self.offsets[shown], self.weights[:, shown])


@dataclass(frozen=True)
class HeadGrid:
    """Every head of a model: grids to choose from, and lines of the head that is chosen; colours mean `label`."""

    label: str
    grids: tuple[Grid, ...]
    lines: tuple[ByOffset, ...]

    def as_json(self) -> dict[str, Any]:
        grids = [{"name": grid.name, "values": [rounded(row, DIGITS) for row in grid.values]} for grid in self.grids]
        lines = [
            {
                "name": line.name,
                "offsets": line.offsets.tolist(),
                "weights": [rounded(row, DIGITS) for row in line.weights],
            }
            for line in self.lines
        ]
        return {"kind": "heads", "style": house_style(), "label": self.label, "grids": grids, "lines": lines}
