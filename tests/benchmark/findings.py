"""All weight findings of a made-up GPT-2 against the plain way, for the same answers and for what chance gives.

The atlas's time is that of the whole finding: with everything that chance gives, intervals, tables, and what figures
draw. A notebook has none of these, so its answers alone are compared with two times of ours: the whole, and what is
left of it when chance is drawn a few times only. For the rest one draw the plain way is timed and counted as often as
the atlas draws.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from generators.compute.plan import inputs
from generators.findings.contract import Finding
from tests.benchmark.made_up import GPT2, write_model
from tests.benchmark.notebook_nulls import NULLS, Null
from tests.benchmark.notebook_parts import Weights
from tests.benchmark.notebooks import NOTEBOOKS
from tests.benchmark.one_model import of_weights, opened_in
from tests.benchmark.timing import processor_seconds_of, ratio, seconds_and_peak_of
from tests.checkpoints import Sizes

FEW = 5
COUNTS = ("DRAWS", "FURTHER_DRAWS", "RESAMPLES", "TURNS", "PAIRINGS", "PERMUTATIONS")  # how often chance is drawn
FEWER = {**dict.fromkeys(COUNTS, FEW), "LEVEL": 0.5}  # so few draws have no 99th percentile, but they have a median
SEED = 0


def findings(sizes: Sizes = GPT2) -> dict[str, Any]:
    """Compare every finding on a made-up model, of GPT-2's sizes unless others are asked for.

    Memory is the most that a finding has at once, E with it, in sizes of E.
    """
    with tempfile.TemporaryDirectory() as place:
        opened = opened_in(write_model(Path(place, "model"), sizes))
        weights = {role: opened.checkpoint[role] for role in opened.checkpoint}
        rows = [compared(f, opened, weights) for f in of_weights(opened) if f.name in NOTEBOOKS]
    E = 4 * sizes.vocab_size * sizes.d_model
    sums = {name: sum(row[name] for row in rows) for name in ("answers", "chance", "ours", "ours_few")}
    return {
        "tokens": sizes.vocab_size,
        "d_model": sizes.d_model,
        "layers": sizes.n_layer,
        "rows": rows,
        "all": {**sums, **_ratios(sums)},
        "memory": max(row["peak"] for row in rows) / E,
    }


def compared(finding: Finding, opened: Any, weights: Weights) -> dict[str, Any]:
    """Return what one finding takes either way; answers that differ are an error."""
    notebook = NOTEBOOKS[finding.name]
    given = inputs(finding, opened)
    opened.checkpoint.let_go()  # what is read counts, as time and as memory
    ours, peak, measured = seconds_and_peak_of(lambda: finding.measure(given))
    with drawn_few():
        ours_few = processor_seconds_of(lambda: finding.measure(given))[0]
    answers, found = processor_seconds_of(lambda: notebook.answers(weights))
    notebook.agree(found, measured.metrics)
    took = {"answers": answers, "chance": sum(seconds_of(null, weights) for null in NULLS[finding.name])}
    took |= {"ours": ours, "ours_few": ours_few}
    return {
        "name": finding.name,
        "title": finding.title,
        "compared": notebook.compared,
        "nulls": [{"what": null.what, "draws": null.draws} for null in NULLS[finding.name]],
        **took,
        **_ratios(took),
        "peak": peak,
    }


def _ratios(took: dict[str, float]) -> dict[str, float]:
    """Return how many times as long the plain way takes: for the answers (of few draws, and of all), and for all."""
    return {
        "times_faster_answers": ratio(took["answers"], took["ours_few"]),
        "times_faster_than_answers": ratio(took["answers"], took["ours"]),
        "times_faster": ratio(took["answers"] + took["chance"], took["ours"]),
    }


def seconds_of(null: Null, weights: Weights) -> float:
    """Return what all draws of a null would take, by one; what is made once beforehand doesn't count."""
    one = null.one(weights)
    return null.draws * processor_seconds_of(lambda: one(np.random.default_rng(SEED)))[0]


@contextmanager
def drawn_few() -> Iterator[None]:
    """Let findings draw chance a few times only."""
    before = [
        (module, name, getattr(module, name))
        for path, module in list(sys.modules.items())
        if path.startswith(("generators.findings.", "generators.maths."))
        for name in FEWER
        if isinstance(getattr(module, name, None), int | float)
    ]
    try:
        for module, name, _ in before:
            setattr(module, name, FEWER[name])
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
