from functools import partial
from typing import Any

from generators.drawing import style
from generators.findings.contract import Figure
from generators.findings.measured import Measurements, numbers
from generators.findings.rotation_check.measure import RotationCheckMetrics

OF_THETA = ("theta / 10", "theta × 10")
LINEAR_TO = 0.1  # added loss


def figures(measured: Measurements[RotationCheckMetrics]) -> list[Figure]:
    return [Figure("rotation-check", "Loss with other rotations", partial(draw, measured.metrics))]


def draw(m: RotationCheckMetrics) -> Any:
    """Draw what settings add to the loss: three thetas, and the others beside them."""
    figure, ax = style.plot()
    theta, others = (
        [row for row in m["settings"] if (row["setting"] in OF_THETA) == wanted] for wanted in (True, False)
    )
    ax.plot(1, 0.0, "o", ms=5, color=style.COLOURS[0])
    for places, rows, colour in (((0, 2), theta, style.COLOURS[0]), (range(3, 5), others, style.COLOURS[1])):
        added, low, high = (numbers(rows, name) for name in ("added", "low", "high"))
        spread = [added - low, high - added]
        ax.errorbar(places[: len(rows)], added, spread, fmt="o", ms=5, capsize=3, color=colour)
    ax.axhline(0, color=style.INK, lw=0.8, ls=":")
    ax.set_yscale("symlog", linthresh=LINEAR_TO)
    ax.margins(y=0.1)
    ax.set_xticks(range(3 + len(others)), [*_of_theta(m["thetas"]), *(_broken(row["setting"]) for row in others)])
    ax.set_ylabel(f"added loss ({m['unit']},\nlogarithmic from {LINEAR_TO} on)")
    return figure


def _of_theta(thetas: list[float]) -> list[str]:
    if len(thetas) != 1:
        return [_broken(OF_THETA[0]), "as in the\nconfig", _broken(OF_THETA[1])]
    below, own, above = (f"theta\n{factor * thetas[0]:,.0f}" for factor in (0.1, 1, 10))
    return [below, f"{own}\n(config)", above]


def _broken(words: str) -> str:
    return words.replace(" ", "\n", 1)
