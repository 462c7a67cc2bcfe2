from collections.abc import Iterator

import numpy as np

from generators.base.text import two
from generators.findings.facts import POSITION_STD, EntityLines, EntityNote, EntityNumbers, Fact, Facts, Story
from generators.findings.gains.measure import SMALLEST_RATIO, GainsMetrics, Norm
from generators.findings.judging import Evidence, Untested, claim
from generators.findings.measured import Measurements
from generators.maths.channels import MUTED

# The channel must top at least so many layers, and at least one layer in so many.
LAYERS = {"holds": (3, 2), "partly": (2, 4)}


def _layers(*values: float) -> str:
    return f"{two(*values)} layers"


@claim("ln1-dials-down", sense="at most", holds=-0.50, partly=-0.25, form="{:.2f}", with_arrays=True)
def dials_down(measured: Measurements[GainsMetrics]) -> Evidence | Untested:
    m = measured.metrics
    if "0" not in m["correlation"]["ln1"]:
        return Untested("no-ln1")
    value = m["correlation"]["ln1"]["0"]
    if value is None:
        row = next(row for row in measured.tables["norms"].named() if (row["norm"], row["layer"]) == ("ln1", 0))
        return Untested("equal-ln1" if row["top_channels"] is None else "no-positions")
    return Evidence(value, chance=m["chance"]["dials_down"], interval=m["intervals"]["dials_down"])


@claim("ln2-one-channel", form=_layers, least=LAYERS, ratio=SMALLEST_RATIO)
def one_channel(m: GainsMetrics) -> Evidence | Untested:
    top = m["consistent_channel"]["ln2"]
    if top is None:
        return Untested("equal-ln2" if m["correlation"]["ln2"] else "no-ln2")
    if top["n_layers"] == 1:
        return Untested("one-ln2")
    median = float(np.median(top["ratios"])) if top["ratios"] else None
    clear = median is not None and median >= SMALLEST_RATIO
    return Evidence(
        top["layers_topped"],
        {"top": top, "median": median},
        chance=m["chance"]["layers_topped"],
        holds_at=_least("holds", top["n_layers"]),
        partly_at=_least("partly", top["n_layers"]),
        extra_condition_met=clear and len(top["tied"]) == 1,
        partly_condition_met=clear,
    )


@claim("ln2-mutes-channel", form=_layers, least=LAYERS, muted=MUTED)
def mutes_channel(m: GainsMetrics) -> Evidence | Untested:
    found = m["muted_channel"]
    if found is None:
        return Untested("equal-ln2" if m["correlation"]["ln2"] else "no-ln2")
    if found["n_layers"] == 1:
        return Untested("one-ln2")
    return Evidence(
        len(found["layers"]),
        {"found": found},
        chance=m["chance"]["layers_muted"],
        holds_at=_least("holds", found["n_layers"]),
        partly_at=_least("partly", found["n_layers"]),
        extra_condition_met=len(found["tied"]) == 1,
        partly_condition_met=True,
    )


def _least(verdict: str, layers: int) -> float:
    fewest, one_in = LAYERS[verdict]
    return max(fewest, layers / one_in)


NORMS: dict[Norm, str] = {"ln1": "before attention", "ln2": "before the MLP"}


def channels(found: Measurements[GainsMetrics], count: int | None) -> Iterator[Fact]:
    yield EntityNumbers(POSITION_STD, found.arrays.get("position_std"), order="largest", name="position_std")
    for norm, place in NORMS.items():
        gain = found.arrays.get(f"{norm}_gain")
        if gain is None:
            continue
        yield EntityLines(
            drawing="Gain in every layer",
            across="layer",
            says=f"{norm}, {place}",
            at=found.arrays[f"{norm}_layers"],
            values=gain.T,
            figure="gains-ln2" if norm == "ln2" else None,
            usual=np.median(gain, axis=1),
            usual_says=f"{norm}, median of all channels",
            name=norm,
        )
        top = found.metrics["consistent_channel"][norm]
        if top is not None:
            says = f"{norm} gives it the largest gain in {top['layers_topped']} of {top['n_layers']} layers."
            yield EntityNote(top["channel"], says, role=norm, claim="ln2-one-channel" if norm == "ln2" else "")


FACTS = Facts(entities={"channel": channels}, stories=(Story("ln2-one-channel", "gains-ln2", 50),))
