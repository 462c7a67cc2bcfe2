"""What is claimed of copying heads: rules, numbers and sentences."""

import numpy as np

from generators.findings.induction.measure import InductionHeadRow, InductionMetrics
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements
from generators.findings.nulls import chance

COPIES = {"holds": 0.1, "partly": 0.05}  # of attention
FED = {"holds": 0.5, "partly": 0.25}  # of the copying head's attention
NO_HEAD = "No head copies enough for what feeds it to be seen."


def best_of(metrics: InductionMetrics) -> InductionHeadRow:
    """Return the head that copies most."""
    return metrics["heads"][metrics["best"]]


def _copies(measured: Measurements[InductionMetrics]) -> Tested:
    row, metrics = best_of(measured.metrics), measured.metrics
    found = chance(metrics["other_distances"])
    beside = "" if found is None else f" At other distances, the strongest head gives {found.median:.3f}."
    return Tested(
        row["copying"],
        f"On random tokens seen twice, L{row['layer']}H{row['head']} gives the token that followed "
        f"{row['copying']:.2f} of its attention.{beside}",
        baseline=metrics["uniform"],
        chance=found,
        interval=(row["low"], row["high"]),
    )


def _fed(measured: Measurements[InductionMetrics]) -> Tested | Untested:
    row, found = best_of(measured.metrics), measured.metrics["feeding"]
    if row["copying"] < COPIES["partly"] or found is None:
        return Untested(NO_HEAD)
    if not found["others"]:
        return Untested("There is no other head in front of it to compare with.")
    return Tested(
        found["drop"],
        f"Silencing L{found['layer']}H{found['head']}, which looks most at the previous token, takes "
        f"{found['drop']:.0%} of the copying attention of L{row['layer']}H{row['head']}; silencing one of "
        f"{len(found['others'])} other heads in front of it, at most {max(found['others']):.0%} "
        f"(median {float(np.median(found['others'])):.0%}).",
        baseline=float(np.median(found["others"])),
        interval=(found["low"], found["high"]),
        also=found["drop"] > max(found["others"]),
    )


RULES = (
    Rule(
        id="some-head-copies",
        short="copies",
        statement="Some head looks at what followed the same token before.",
        value="largest mean attention to the token after the earlier occurrence, random tokens seen twice",
        holds=COPIES["holds"],
        partly=COPIES["partly"],
        unit="of attention",
        test=_copies,
    ),
    Rule(
        id="fed-by-previous-token",
        short="fed by previous token",
        statement="A previous-token head feeds the head that copies.",
        value="share of the copying attention lost while that head is silenced",
        holds=FED["holds"],
        partly=FED["partly"],
        unit="of the copying attention",
        also="more than with any other head in front of it silenced",
        test=_fed,
    ),
)
