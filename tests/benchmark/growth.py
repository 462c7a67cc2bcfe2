"""How cost grows with models, vocabulary, channels and layers: made-up models, all findings about weights.

Along each axis models get larger until the next would take more than the axis has time for, by how it grew so far, or
its E more memory than there is: where that cuts a range, it is said.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmark.made_up import write_model, write_models
from tests.benchmark.others import ONE_THREAD
from tests.benchmark.timing import MEBI, ROOT
from tests.benchmark.whole import command
from tests.checkpoints import Sizes

SECONDS = 120.0  # of the processor, for each axis
MOST_OF_E = 3 * 2**30  # bytes, in float32
FEWEST_FOR_SLOPE = 2
BASE = Sizes(n_layer=2, n_head=4, d_model=128, n_ctx=128, vocab_size=4000)
TINY = Sizes(n_layer=1, n_head=2, d_model=32, n_ctx=32, vocab_size=400)
Cost = dict[str, Any]


@dataclass(frozen=True)
class Axis:
    """What is made larger, from where to where, all else being as in `base`."""

    name: str
    what: str
    places: Sequence[int]
    cost: Callable[[int], Cost]
    model: Callable[[int], Sizes]


def along(name: str, what: str, field: str, places: Sequence[int], base: Sizes) -> Axis:
    """Return an axis along which one size of a model grows."""

    def sized(place: int) -> Sizes:
        return replace(base, **{field: place})

    return Axis(name, what, places, lambda place: of_one(sized(place)), sized)


def axes() -> list[Axis]:
    """Return all axes at the sizes that are told of."""
    return [
        Axis("models", "models of a registry", (1, 7, 50), of_many, lambda _: TINY),
        along("vocabulary", "tokens", "vocab_size", (10_000, 32_000, 64_000, 128_000, 256_000), BASE),
        along("channels", "channels", "d_model", (256, 512, 1024, 2048, 4096), replace(BASE, n_layer=1)),
        along("layers", "layers", "n_layer", (2, 6, 12, 24, 48), BASE),
    ]


def growth(seconds: float = SECONDS, of: Sequence[Axis] | None = None) -> dict[str, Any]:
    """Measure every axis, each for at most about so many seconds of the processor."""
    return {"seconds_an_axis": seconds, "axes": [measured(axis, seconds) for axis in of or axes()]}


def measured(axis: Axis, seconds: float) -> dict[str, Any]:
    """Return the cost at every place of an axis that there is time and memory for, and how it grows."""
    points: list[Cost] = []
    cut = None
    for place in axis.places:
        cut = _why_not(axis, place, points, seconds)
        if cut is not None:
            break
        points.append({"at": place, **axis.cost(place)})
    base = axis.model(axis.places[0])
    return {
        "name": axis.name,
        "what": axis.what,
        "upto": axis.places[-1],
        "beside": {"tokens": base.vocab_size, "channels": base.d_model, "layers": base.n_layer},
        "points": points,
        "cut": cut,
        "time": exponents(points, "seconds"),
        "memory": exponents(points, "memory"),
    }


def _why_not(axis: Axis, place: int, points: Sequence[Cost], seconds: float) -> str | None:
    """Return why a place of an axis is left out, None where it isn't."""
    sizes = axis.model(place)
    E = 4 * sizes.vocab_size * sizes.d_model
    if E > MOST_OF_E:
        return f"{place:,} {axis.what} are left out: E alone would take {E / 2**30:.1f} GiB"
    left, next_one = seconds - sum(point["seconds"] for point in points), foreseen(points, place)
    if next_one > left:
        return (
            f"{place:,} {axis.what} are left out: by the last step they would take about {next_one:.0f} s "
            f"of the processor, and {seconds:.0f} s were given to all sizes together"
        )
    return None


def foreseen(points: Sequence[Cost], place: int) -> float:
    """Return the seconds that the next place would take if cost went on to grow as in the last step."""
    if len(points) < FEWEST_FOR_SLOPE:
        return 0.0
    before, last = points[-2:]
    slope = exponent([before["at"], last["at"]], [before["seconds"], last["seconds"]])
    return float(last["seconds"] * (place / last["at"]) ** max(slope, 0.0))


def exponent(at: Sequence[float], costs: Sequence[float]) -> float:
    """Return b of cost = a at^b, by least squares of the logarithms."""
    return float(np.polyfit(np.log(at), np.log(costs), 1)[0])


def exponents(points: Sequence[Cost], of: str) -> dict[str, float] | None:
    """Return how a cost grows: over all places, and from the last but one to the last."""
    if len(points) < FEWEST_FOR_SLOPE:
        return None
    at, costs = ([point[key] for point in points] for key in ("at", of))
    return {"all": exponent(at, costs), "last": exponent(at[-2:], costs[-2:])}


def of_one(sizes: Sizes) -> Cost:
    """Return what all weight findings of one model take: seconds of the processor, and memory beyond the start."""
    with tempfile.TemporaryDirectory() as place:
        folder = write_model(Path(place, "model"), sizes)
        command = [sys.executable, "-m", "tests.benchmark.one_model", str(folder)]
        environment = {**os.environ, **ONE_THREAD}
        done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    return {
        "seconds": sum(found["findings"].values()),
        "memory": (found["peak"] - found["before"]) / MEBI,
        "E": 4 * sizes.vocab_size * sizes.d_model / MEBI,
        "findings": found["findings"],
    }


def of_many(count: int) -> Cost:
    """Return what the command takes for so many tiny models, and again with nothing left to do; its whole memory."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        write_models(place, count, TINY)
        first, again = (_command(place) for _ in range(2))
    return {"seconds": first["seconds"], "memory": first["memory"], "again": again["seconds"]}


def _command(place: Path) -> Cost:
    """Run the command for all models of a registry."""
    found = command(place, "--results", "results", "--skip-runs", **ONE_THREAD)
    return {"seconds": found["processor_seconds"], "memory": found["peak"] / MEBI}
