from collections.abc import Iterator

import numpy as np

from generators.findings.facts import POSITION_STD, EntityLines, EntityNote, EntityNumbers, Fact, Facts
from generators.findings.gains.measure import GainsMetrics, Norm
from generators.findings.measured import Measurements

NORMS: dict[Norm, str] = {"ln1": "before attention", "ln2": "before the MLP"}


def channels(found: Measurements[GainsMetrics], count: int | None) -> Iterator[Fact]:
    yield EntityNumbers(POSITION_STD, found.arrays.get("position_std"), order="largest", name="position_std")
    for norm, place in NORMS.items():
        gain, layers = found.arrays.get(f"{norm}_gain"), found.arrays.get(f"{norm}_layers")
        if gain is None or layers is None:
            continue
        yield EntityLines(
            drawing="Gain in every layer",
            across="layer",
            says=f"{norm}, {place}",
            at=layers,
            values=gain.T,
            figure=f"gains-{norm}",
            usual=np.median(gain, axis=1),
            usual_says=f"{norm}, median of all channels",
            name=norm,
        )
        top = found.metrics["consistent_channel"][norm]
        if top is not None:
            says = f"{norm} gives it the largest gain in {top['layers_topped']} of {top['n_layers']} layers."
            yield EntityNote(top["channel"], says, role=norm, claim="ln2-one-channel" if norm == "ln2" else "")


FACTS = Facts(entities={"channel": channels}, teaser="ln2-one-channel")
