import numpy as np

from generators.base.sentences import first, many
from generators.base.text import share, two
from generators.findings.induction.measure import InductionHeadRow, InductionMetrics
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements
from generators.findings.nulls import chance

COPIES = {"holds": 0.1, "partly": 0.05}  # share of attention
NEEDED = {"holds": 0.5, "partly": 0.25}  # share of the benefit
FED = {"holds": 0.5, "partly": 0.25}  # share of the copying head's attention
PREVIOUS = 0.15  # smallest attention of a previous-token head to the previous token
FEWEST_ERRORS = 3


def best_of(metrics: InductionMetrics) -> InductionHeadRow:
    return metrics["heads"][metrics["best"]]


def _copies(measured: Measurements[InductionMetrics]) -> Tested:
    row, metrics = best_of(measured.metrics), measured.metrics
    found = chance(metrics["other_distances"])
    beside = f" Uniform attention gives it {share(metrics['uniform'])}."
    if found is not None:
        beside = (
            f" At other distances, the strongest head gives {share(found.median)} in the median (99th percentile "
            f"{share(found.limit)})."
        )
    return Tested(
        row["copying"],
        f"On random tokens read twice, L{row['layer']}H{row['head']} gives {share(row['copying'])} of its attention "
        f"to the token that followed.{beside}",
        form=share,
        baseline=metrics["uniform"],
        chance=found,
        interval=(row["low"], row["high"]),
    )


def _needed(measured: Measurements[InductionMetrics]) -> Tested | Untested:
    row, found = best_of(measured.metrics), measured.metrics["copying"]
    if found is None or row["copying"] < COPIES["partly"]:
        return Untested("No head copies enough to measure its effect.")
    benefit = found["benefit"]
    if benefit["mean"] <= FEWEST_ERRORS * benefit["standard_error"]:
        return Untested("The model predicts the second half no better than the first.")
    others = float(np.median(found["others"]))
    more = found["lost"] > others + NEEDED["partly"]
    few = found["lost"] < NEEDED["partly"] or more
    no_more = "" if few else f" It must exceed the median by {NEEDED['partly']:.0%} of the benefit."
    return Tested(
        found["lost"],
        f"The second half is predicted better by {two(benefit['mean'])} nats per token. Silencing "
        f"L{row['layer']}H{row['head']} removes {share(found['lost'])} of that benefit; silencing one of "
        f"{len(found['others'])} other heads removes {share(others)} in the median and at most "
        f"{share(max(found['others']))}.{no_more}",
        form=share,
        baseline=others,
        interval=(found["low"], found["high"]),
        extra_condition_met=more,
    )


def _fed(measured: Measurements[InductionMetrics]) -> Tested | Untested:
    row, found = best_of(measured.metrics), measured.metrics["feeding"]
    if row["copying"] < COPIES["partly"] or found is None:
        return Untested("No head copies enough to measure what feeds it.")
    if found["strongest"] < PREVIOUS:
        return Untested("No earlier head attends enough to the previous token.")
    if not found["others"]:
        return Untested("There are too few other earlier heads to compare with.")
    names = first(found["heads"], 4)
    no_more = " It must exceed all of these."
    return Tested(
        found["drop"],
        f"Silencing the previous-token head{'' if len(found['heads']) == 1 else 's'} in earlier layers ({names}) "
        f"removes {share(found['drop'])} of the copying attention of L{row['layer']}H{row['head']}; silencing as "
        f"many other earlier heads removes {share(float(np.median(found['others'])))} in the median and at most "
        f"{share(max(found['others']))} ({many(len(found['others']), 'set')} of heads)."
        f"{'' if found['drop'] > max(found['others']) else no_more}",
        form=share,
        baseline=float(np.median(found["others"])),
        interval=(found["low"], found["high"]),
        extra_condition_met=found["drop"] > max(found["others"]),
    )


RULES = (
    Rule(
        id="some-head-copies",
        short="copies",
        statement="Some head attends to what followed the same token before.",
        value="largest mean attention to the token after the earlier occurrence, random tokens read twice",
        holds=COPIES["holds"],
        partly=COPIES["partly"],
        unit="of attention",
        test=_copies,
    ),
    Rule(
        id="repeats-need-that-head",
        short="repeats need it",
        statement="The model predicts repeats through that head.",
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
        value="share of the copying attention lost while earlier previous-token heads are silenced",
        holds=FED["holds"],
        partly=FED["partly"],
        unit="of the copying attention",
        also="more than with any set of as many other earlier heads silenced",
        test=_fed,
    ),
)
