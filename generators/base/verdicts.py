"""How verdicts look wherever they are shown: on pages, in figures, in the terminal."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class VerdictLook:
    """Colors and signs of one verdict; `tint` is the ground under its words."""

    symbol: str
    light: str
    light_tint: str
    dark: str
    dark_tint: str
    figure: str | None  # readable on light and on dark pages; None: as all lines
    marker: str  # matplotlib's
    terminal: str | None  # typer's


# Fails is not red: that something fails is a result, and no fault of the model.
LOOKS: Mapping[str, VerdictLook] = {
    "holds": VerdictLook("✓", "#1b6e3c", "#e3f4e8", "#7fd69c", "#16351f", "#1a936f", "o", "green"),
    "partly": VerdictLook("◐", "#8a5a00", "#fdf1d4", "#f0c469", "#3a2e10", "#b98900", "D", "yellow"),
    "fails": VerdictLook("✗", "#6a3d8f", "#f1e9f8", "#d3b8ef", "#35264a", "#b8559b", "x", "magenta"),
    "untested": VerdictLook("–", "#5b6472", "#eef0f3", "#aab2bf", "#2c313b", None, "o", None),
}
WEAK = "◔"  # of what fails beyond chance
SYMBOLS = {verdict: look.symbol for verdict, look in LOOKS.items()}


def as_css() -> str:
    """Return the custom properties by which the site's styles name these colors."""
    light, dark = "", ""
    for name, look in LOOKS.items():
        light += f"--{name}:{look.light};--{name}-tint:{look.light_tint};"
        dark += f"--{name}:{look.dark};--{name}-tint:{look.dark_tint};"
    return f':root{{{light}}}\n[data-md-color-scheme="slate"]{{{dark}}}\n'
