"""What a finding claims: rules with their numbers and sentences, and how a claim is judged when it is shown.

No measuring module imports this: a threshold or a sentence that changes makes nothing be computed again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal

from generators.base.text import number
from generators.findings.measured import Chance, M, Measurements, StoredChance

Verdict = Literal["holds", "partly", "fails", "untested"]
VERDICTS: tuple[Verdict, ...] = ("holds", "partly", "fails", "untested")
Sense = Literal["at least", "at most"]  # of a threshold: on which side of it evidence lies


@dataclass(frozen=True)
class Tested:
    """What a rule makes of measurements before it is judged.

    Args:
        value: the effect size; None fails (there is no such thing in these weights).
        answers: the sentence for each verdict that can come out, or one for all; `fails` serves those not given.
        baseline: the value that chance gives.
        chance: the distribution that chance gives, where it was drawn.
        interval: 95 % interval of the value, None where it is a count that has none.
        holds_at: the threshold where the rule's is relative to chance; likewise `partly_at`.
        also: whether the rule's further condition is met; `also_partly` where `partly` asks for less.
    """

    value: float | None
    answers: Mapping[Verdict, str] | str
    baseline: float | None = None
    chance: Chance | None = None
    interval: tuple[float, float] | None = None
    holds_at: float | None = None
    partly_at: float | None = None
    also: bool = True
    also_partly: bool | None = None


@dataclass(frozen=True)
class Untested:
    """These weights can't test the claim; why, in a sentence."""

    reason: str


class NotMeasuredError(Exception):
    """A number is needed that did not exist when the model was measured; says so in a sentence."""


@dataclass(frozen=True)
class Rule(Generic[M]):
    """A claim's statement, the number that judges it, where `holds` and `partly` begin, and how it is tested.

    `value` says in words what the number is, `also` what else must be true, `holds_as` the threshold where it is
    relative to chance (`holds` is None then).
    """

    id: str
    short: str
    statement: str
    value: str
    test: Callable[[Measurements[M]], Tested | Untested]
    sense: Sense = "at least"
    holds: float | None = None
    partly: float | None = None
    unit: str = ""
    also: str = ""
    holds_as: str = ""

    def beyond(self, value: float, chance: Chance | None) -> bool:
        """Return whether `value` is on the right side of what chance gives; without a distribution it is."""
        if chance is None:
            return True
        return value > chance.limit if self.sense == "at least" else value < chance.limit

    def reached(self, value: float, threshold: float | None) -> bool:
        """Return whether `value` is on the right side of `threshold`."""
        if threshold is None:
            return False
        return value >= threshold if self.sense == "at least" else value <= threshold


@dataclass(frozen=True)
class Claim:
    """A statement, tested: its verdict, effect size, threshold and what chance gives.

    `answer` is the verdict in one sentence about this model, with its numbers.
    """

    id: str
    finding: str
    statement: str
    verdict: Verdict
    value: float | None
    interval: tuple[float, float] | None
    threshold: float | None
    baseline: float | None
    chance: Chance | None
    unit: str
    answer: str

    @property
    def close(self) -> bool:
        """Return whether what decides lies inside the interval: the threshold, or chance where it asks more."""
        if self.interval is None or self.threshold is None:
            return False
        bound = self.threshold
        if self.chance is not None:
            bound = (max if self.chance.limit >= self.chance.median else min)(bound, self.chance.limit)
        return self.interval[0] < bound < self.interval[1]


def strictest(nulls: Iterable[StoredChance], sense: Sense = "at least") -> Chance | None:
    """Return what the null gives whose limit is hardest to pass (beyond it is beyond each), None without any."""
    sign = 1 if sense == "at least" else -1
    stored = max(nulls, key=lambda null: sign * null["limit"], default=None)
    return None if stored is None else Chance(**stored)


def judge(finding: str, rule: Rule[M], measurements: Measurements[M]) -> Claim:
    """Judge one claim of a finding by its rule.

    What reaches a threshold counts only if it is beyond chance too; where chance itself reaches the threshold of
    `holds` as often as not, the claim is untested. So is one on a number that was not measured yet.
    """
    try:
        tested = rule.test(measurements)
    except NotMeasuredError as error:
        return untested(finding, rule, str(error))
    if isinstance(tested, Untested):
        return untested(finding, rule, tested.reason)
    holds_at = rule.holds if tested.holds_at is None else tested.holds_at
    if tested.chance is not None and rule.reached(tested.chance.median, holds_at):
        return untested(finding, rule, _chance_reaches(rule, tested.chance, holds_at))
    verdict = _verdict(rule, tested, holds_at)
    answers = tested.answers
    answer = answers if isinstance(answers, str) else answers.get(verdict) or answers["fails"]
    return Claim(
        rule.id,
        finding,
        rule.statement,
        verdict,
        tested.value,
        tested.interval,
        holds_at,
        tested.baseline if tested.chance is None else tested.chance.median,
        tested.chance,
        rule.unit,
        answer,
    )


def untested(finding: str, rule: Rule[Any], reason: str) -> Claim:
    """Return a claim that these weights can't test, with why."""
    return Claim(rule.id, finding, rule.statement, "untested", None, None, rule.holds, None, None, rule.unit, reason)


def _chance_reaches(rule: Rule[Any], chance: Chance, holds_at: float | None) -> str:
    """Return why a claim can't be tested that chance would fulfil."""
    return (
        f"The threshold says nothing here: {chance.null} give {number(chance.median)} themselves, "
        f"and {rule.sense} {number(holds_at)} is asked for."
    )


def _verdict(rule: Rule[Any], tested: Tested, holds_at: float | None) -> Verdict:
    if tested.value is None or not rule.beyond(tested.value, tested.chance):
        return "fails"
    partly_at = rule.partly if tested.partly_at is None else tested.partly_at
    also_partly = tested.also if tested.also_partly is None else tested.also_partly
    if rule.reached(tested.value, holds_at) and tested.also:
        return "holds"
    return "partly" if rule.reached(tested.value, partly_at) and also_partly else "fails"
