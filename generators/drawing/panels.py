from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing.interactive import house_style, rounded


@dataclass(frozen=True)
class Panel:
    """Values with their intervals; `names` say in words what each amount is, `label` what the axis of amounts is."""

    label: str
    names: tuple[str, ...]
    amounts: Float[Array, " points"]
    values: Float[Array, " points"]
    low: Float[Array, " points"]
    high: Float[Array, " points"]


@dataclass(frozen=True)
class Panels:
    """Panels that share an axis of values: linear up to `linear_up_to`, logarithmic beyond it.

    `value` is what a value is called, `y_label` what stands beside the axis, `marks` are values with a line across.
    """

    value: str
    y_label: str
    linear_up_to: float
    marks: tuple[float, ...]
    panels: tuple[Panel, ...]

    def as_json(self) -> dict[str, Any]:
        panels = [
            {name: rounded(of) if isinstance(of, Array) else of for name, of in vars(panel).items()}
            for panel in self.panels
        ]
        return {"kind": "panels", "style": house_style(), **vars(self), "panels": panels}
