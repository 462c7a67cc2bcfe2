"""One small SVG for light and dark pages: the same picture, said in fewer bytes."""

import io
import re

import numpy as np
import pytest

from generators.drawing import style, svg

INK, INK_DARK = (43, 47, 54), (213, 216, 222)


def drawn():
    figure = style.canvas(4, 3)
    ax = figure.add_subplot()
    rng = np.random.default_rng(0)
    ax.plot(np.linspace(0, 1, 50), rng.standard_normal(50), color=style.INK, lw=6)
    ax.plot(*rng.uniform(size=(2, 4000)), ".", color=style.COLOURS[0], alpha=0.4, rasterized=True)
    ax.set_title("A cloud")
    return figure


def points(path: str) -> list[list[float]]:
    """Return the points of a path of relative commands, from its beginning."""
    x = y = 0.0
    begin = (0.0, 0.0)
    found = []
    for command, text in re.findall(r"([mlqcz])([^mlqcz]*)", path):
        if command == "z":
            x, y = begin
            continue
        numbers = [float(number) for number in re.findall(r"-?\d*\.?\d+", text)]
        pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
        each = {"m": 1, "l": 1, "q": 2, "c": 3}[command]
        for at in range(0, len(pairs), each):
            found += [[x + dx, y + dy] for dx, dy in pairs[at : at + each]]
            x, y = found[-1]
        if command == "m":
            begin = (x, y)
    return found


@pytest.mark.parametrize(
    "path",
    [
        "M 1.234 5.678 L 10 20.555 L 9.5 20.555",
        "M 0 0 Q 10 20 30 40 Q 30 40 30 40 L 1 1 z M 5 5 L 6 6 z",
        "M -1 -2 C 1 2 3 4 5 6 C 5 6 5 6 7 8",
    ],
)
def test_a_relative_path_goes_through_the_same_points(path):
    absolute = [round(float(number), 2) for number in re.findall(r"-?\d+\.?\d*", path)]
    expected = list(zip(absolute[::2], absolute[1::2], strict=True))
    np.testing.assert_allclose(points(svg.relative(path)), expected, atol=1e-9)


def test_rounding_does_not_add_up_along_a_line():
    steps = np.arange(1000) * 0.0149
    path = "M 0 0 " + " ".join(f"L {x:.6f} 1" for x in steps)
    assert abs(points(svg.relative(path, 1))[-1][0] - steps[-1]) <= 0.05


def test_the_same_figure_gives_the_same_bytes_and_less_than_half_of_what_matplotlib_writes():
    made = svg.svg(drawn())
    assert made == svg.svg(drawn())
    drawn().savefig(theirs := io.BytesIO(), format="svg")
    assert len(made) < len(theirs.getvalue()) / 2
    assert b"#2b2f36" not in made.replace(b":root{color:#2b2f36", b"")
