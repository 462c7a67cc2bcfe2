"""What is claimed of copying heads: rules, numbers and sentences."""

import numpy as np

from generators.base.sentences import first, many
from generators.findings.induction.measure import InductionHeadRow, InductionMetrics
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements
from generators.findings.nulls import chance

COPIES = {"holds": 0.1, "partly": 0.05}  # of attention
NEEDED = {"holds": 0.5, "partly": 0.25}  # of the benefit
FED = {"holds": 0.5, "partly": 0.25}  # of the copying head's attention
PREVIOUS = 0.15  # attention that a previous-token head gives the previous token at least
FEWEST_ERRORS = 3


def best_of(metrics: InductionMetrics) -> InductionHeadRow:
    """Return the head that copies most."""
    return metrics["heads"][metrics["best"]]


def _copies(measured: Measurements[InductionMetrics]) -> Tested:
    row, metrics = best_of(measured.metrics), measured.metrics
    found = chance(metrics["other_distances"])
    beside = f" A head that looks everywhere alike gives it {metrics['uniform']:.3f}."
    if found is not None:
        beside = (
            f" At other distances, the strongest head gives {found.median:.3f} in the median (99th percentile "
            f"{found.limit:.3f})."
        )
    return Tested(
        row["copying"],
        f"On random tokens seen twice, L{row['layer']}H{row['head']} gives the token that followed "
        f"{row['copying']:.2f} of its attention.{beside}",
        form="{:.2f}",
        baseline=metrics["uniform"],
        chance=found,
        interval=(row["low"], row["high"]),
    )


def _needed(measured: Measurements[InductionMetrics]) -> Tested | Untested:
    row, found = best_of(measured.metrics), measured.metrics["copying"]
    if found is None or row["copying"] < COPIES["partly"]:
        return Untested("No head copies enough for what it does to be seen.")
    benefit = found["benefit"]
    if benefit["mean"] <= FEWEST_ERRORS * benefit["standard_error"]:
        return Untested("The model predicts the second half no better than the first.")
    others = float(np.median(found["others"]))
    more = found["lost"] > others + NEEDED["partly"]
    few = found["lost"] < NEEDED["partly"] or more
    no_more = "" if few else f" It must be {NEEDED['partly']:.0%} of the benefit more than the median."
    return Tested(
        found["lost"],
        f"The second half is predicted better by {benefit['mean']:.2f} nats per token. Silencing "
        f"L{row['layer']}H{row['head']} takes {found['lost']:.0%} of that; silencing one of {len(found['others'])} "
        f"other heads, {others:.0%} in the median and {max(found['others']):.0%} at most.{no_more}",
        form="{:.0%}",
        baseline=others,
        interval=(found["low"], found["high"]),
        also=more,
    )


def _fed(measured: Measurements[InductionMetrics]) -> Tested | Untested:
    row, found = best_of(measured.metrics), measured.metrics["feeding"]
    if row["copying"] < COPIES["partly"] or found is None:
        return Untested("No head copies enough for what feeds it to be seen.")
    if found["strongest"] < PREVIOUS:
        return Untested("No head in front of it looks enough at the previous token.")
    if not found["others"]:
        return Untested("There are too few other heads in front of it to compare with.")
    names = first(found["heads"], 4)
    no_more = " It must be more than with any of these."
    return Tested(
        found["drop"],
        f"Silencing {names}, which look{'s' if len(found['heads']) == 1 else ''} most at the previous token, takes "
        f"{found['drop']:.0%} of the copying attention of L{row['layer']}H{row['head']}; silencing as many other "
        f"heads in front of it, at most {max(found['others']):.0%} (median {float(np.median(found['others'])):.0%}, "
        f"{many(len(found['others']), 'set')} of heads).{'' if found['drop'] > max(found['others']) else no_more}",
        form="{:.0%}",
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
        id="repeats-need-that-head",
        short="repeats need it",
        statement="Repeats are predicted through that head.",
        value="share of the benefit of repeats lost while it is silenced",
        holds=NEEDED["holds"],
        partly=NEEDED["partly"],
        unit="of the benefit",
        also=f"by {NEEDED['partly']:g} more than the median of other heads",
        test=_needed,
    ),
    Rule(
        id="fed-by-previous-token",
        short="fed by previous token",
        statement="Previous-token heads feed the head that copies.",
        value="share of the copying attention lost while previous-token heads in front are silenced",
        holds=FED["holds"],
        partly=FED["partly"],
        unit="of the copying attention",
        also="more than with as many other heads in front silenced, whichever they are",
        test=_fed,
    ),
)
