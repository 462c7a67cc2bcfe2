"""What a finding claims: rules with their numbers, and how a claim is judged when it is shown.

No measuring module imports this: a threshold or a sentence that changes makes nothing be computed again.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal

from generators.base.nulls_in_words import in_plain_words
from generators.base.text import in_unit, two, typeset
from generators.findings.measured import Chance, M, Measurements, StoredChance
from generators.findings.wording import ClaimWords, sentence, words_of

Verdict = Literal["holds", "partly", "fails", "untested"]
VERDICTS: tuple[Verdict, ...] = ("holds", "partly", "fails", "untested")
Sense = Literal["at least", "at most"]  # the side of a threshold that is evidence
# What an interval is over. Nothing is sampled in fixed matrices: there it says how far the value moves when blocks of
# positions, tokens or channels are left out and others counted again. A run samples text.
IntervalKind = Literal["stability range", "95 % interval"]
MARGIN = 0.2  # relative error of (limit - median) from 200 draws
CLOSE = 0.10  # relative distance to a cutoff within which a value without an interval is close
Form = str | Callable[..., str]
SAYS: Mapping[Verdict, str] = {
    "holds": "holds",
    "partly": "holds partly",
    "fails": "fails",
    "untested": "is untested",
}
MOST_DIGITS = 6  # digits in a sentence that has to distinguish the value from the cutoff


@dataclass(frozen=True)
class Evidence:
    """What a rule makes of measurements before it is judged: numbers alone.

    Args:
        value: the effect size; None fails (there is no such thing in these weights).
        said: what the sentence names beside `value`, `chance`, `verdict`, the metrics `m`, the rule's thresholds
            `holds` and `partly`, and the constants given to it.
        baseline: the value that chance gives.
        chance: the distribution that chance gives, where it was drawn.
        interval: range of the value when what it is computed from is resampled, None where it has none.
        holds_at: the threshold where the rule's is relative to chance; likewise `partly_at`.
        partly_limit: what `partly` must be beyond; the limit of `chance` if not given.
        extra_condition_met: whether the rule's `also` is true; `partly_condition_met` where `partly` asks for less.
        form: how a value is written, where not as the rule says.
        otherwise: what the same rule makes of the numbers under another choice, by that choice in words, such as "in
            the raw weights"; a claim whose verdict is another one there depends on `choice`.
        choice: what is chosen, such as "whether the norm's gain is folded in".
    """

    value: float | None
    said: Mapping[str, Any] = field(default_factory=dict)
    baseline: float | None = None
    chance: StoredChance | None = None
    interval: Sequence[float] | None = None
    holds_at: float | None = None
    partly_at: float | None = None
    partly_limit: float | None = None
    extra_condition_met: bool = True
    partly_condition_met: bool | None = None
    form: Form | None = None
    otherwise: Mapping[str, "Evidence"] = field(default_factory=dict)
    choice: str = ""

    @property
    def limit(self) -> float | None:
        return None if self.chance is None else self.chance["limit"]


@dataclass(frozen=True)
class Untested:
    """The claim can't be tested with these weights; `reason` is the name of the sentence in the finding's words."""

    reason: str
    said: Mapping[str, Any] = field(default_factory=dict)


class NotMeasuredError(Exception):
    """A needed number did not exist when the model was measured."""


@dataclass(frozen=True, kw_only=True)
class Rule(ClaimWords, Generic[M]):
    """A claim's words, where `holds` and `partly` begin, and how it is tested.

    `form` is how `answer` writes a value ("{:.0%}", or a function such as `share`). With it, the answer of a claim
    that misses a cutoff ends by saying which; what fails by its further condition must say so itself. `given` are
    constants that its words name.
    """

    id: str
    test: Callable[[Measurements[M]], Evidence | Untested]
    sense: Sense = "at least"
    holds: float | None = None
    partly: float | None = None
    form: Form = ""
    untested: Mapping[str, str] = field(default_factory=dict, hash=False)
    given: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def tested(self, measurements: Measurements[M]) -> Evidence | Untested:
        """Return what the rule makes of measurements; its sentence may name their metrics."""
        found = self.test(measurements)
        return replace(found, said={"m": measurements.metrics, **self.given, **found.said})

    def beyond(self, value: float, limit: float | None) -> bool:
        """Return whether `value` is on the right side of a limit of chance, not on it; without a limit it is."""
        if limit is None:
            return True
        return value > limit if self.sense == "at least" else value < limit

    def reached(self, value: float, threshold: float | None) -> bool:
        """Return whether `value` is on the right side of `threshold`, or on it."""
        if threshold is None:
            return False
        return value >= threshold if self.sense == "at least" else value <= threshold

    def stricter(self, threshold: float | None, limit: float | None) -> float | None:
        if limit is None or threshold is None:
            return threshold
        return max(threshold, limit) if self.sense == "at least" else min(threshold, limit)


def claim(
    id: str,
    *,
    sense: Sense = "at least",
    holds: float | None = None,
    partly: float | None = None,
    form: Form = "",
    with_arrays: bool = False,
    **given: Any,
) -> Callable[[Callable[[Any], Evidence | Untested]], Rule[Any]]:
    """Make a function of metrics the rule of a claim, whose words are in the YAML file beside it.

    With `with_arrays` it is a function of measurements, which have tables and arrays as well.
    """

    def rule(test: Callable[[Any], Evidence | Untested]) -> Rule[Any]:
        words = words_of(sys.modules[test.__module__].__package__ or "")
        if id not in words.claims:
            raise ValueError(
                f"{test.__module__} judges {id}, which has no words under `claims` in the file beside it."
            )
        constants = {"holds": holds, "partly": partly, **given}
        said = vars(words.claims[id])
        texts = {name: sentence(said[name], constants) for name in said.keys() - {"answer", "quoted"}}
        return Rule(
            **{**said, **texts},
            id=id,
            test=test if with_arrays else lambda measured: test(measured.metrics),
            sense=sense,
            holds=holds,
            partly=partly,
            form=form,
            untested=words.untested,
            given=constants,
        )

    return rule


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement, tested: its verdict, effect size, threshold and what chance gives.

    `answer` is the verdict in one sentence about this model, with its numbers. `partly_threshold` is where `partly`
    begins, chance included; None where no value of this model would be `partly`. `close` says that a cutoff lies
    inside the interval, or within a tenth of itself from a value without one, or that the verdict is another one on
    the model's own samples (`on_own_samples`; None where it was not run on them as well); where a further condition
    decides, no cutoff counts. `weak` says that what fails is beyond chance and meets the further condition: it is
    there, but short of the threshold. `depends_on` names the choice under which the verdict is another one; the
    answer gives both numbers.
    """

    id: str
    finding: str
    statement: str
    verdict: Verdict
    value: float | None = None
    interval: tuple[float, float] | None = None
    interval_kind: IntervalKind | None = None
    threshold: float | None
    partly_threshold: float | None
    baseline: float | None = None
    chance: Chance | None = None
    close: bool = False
    unit: str
    answer: str
    on_own_samples: Verdict | None = None
    weak: bool = False
    depends_on: str = ""


def beyond_chance(value: float, by_chance: float) -> float:
    """Return how far a share lies on the way from chance (0) to all (1), one scale for all that chance gives."""
    return (value - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0


def clearly_beyond(chance: StoredChance) -> float:
    """Return the limit of a null with a margin for its own error: a percentile of 200 draws is itself drawn."""
    return chance["limit"] + MARGIN * (chance["limit"] - chance["median"])


def judge(
    finding: str, rule: Rule[M], measurements: Measurements[M], interval_kind: IntervalKind = "stability range"
) -> Claim:
    """Judge one claim of a finding by its rule; a claim on a number that was not measured yet is untested."""
    try:
        tested = rule.tested(measurements)
        if isinstance(tested, Untested):
            return untested(finding, rule, sentence(rule.untested[tested.reason], tested.said))
        return decide(finding, rule, tested, interval_kind)
    except NotMeasuredError as error:
        return untested(finding, rule, str(error))


def decide(finding: str, rule: Rule[Any], tested: Evidence, interval_kind: IntervalKind = "stability range") -> Claim:
    """Give the verdict on what a rule makes of measurements: holds, else partly, else fails.

    What reaches a threshold must be beyond chance too. Where chance reaches the threshold of `holds` as often as not,
    the claim is untested, whatever the value.
    """
    tested = _in_full(rule, tested)
    chance, value = tested.chance, tested.value
    if chance and value is not None and rule.reached(chance["median"], tested.holds_at):
        return untested(finding, rule, _chance_reaches(rule, value, chance, tested.holds_at))
    verdict = _verdict(rule, tested)
    others = {how: _in_full(rule, one) for how, one in tested.otherwise.items()}
    flips = {how: one for how, one in others.items() if _verdict(rule, one) != verdict}
    holds_from, partly_from = _cutoffs(rule, tested)
    low_to_high = None if tested.interval is None else (tested.interval[0], tested.interval[1])
    return Claim(
        **_about(finding, rule),
        verdict=verdict,
        value=value,
        interval=low_to_high,
        interval_kind=None if low_to_high is None else interval_kind,
        threshold=tested.holds_at,
        partly_threshold=partly_from,
        baseline=tested.baseline if chance is None else chance["median"],
        chance=None if chance is None else replace(Chance(**chance), null=in_plain_words(chance["null"])),
        close=any(_close(value, low_to_high, cutoff) for cutoff in (holds_from, partly_from)),
        answer=_sentences(
            _answer(rule, tested, verdict) + _needed(rule, tested, verdict) + _flipped(rule, tested, flips)
        ),
        weak=verdict == "fails" and _beyond_chance(rule, tested),
        depends_on=tested.choice if flips else "",
    )


def untested(finding: str, rule: Rule[Any], reason: str) -> Claim:
    return Claim(
        **_about(finding, rule),
        verdict="untested",
        threshold=rule.holds,
        partly_threshold=rule.partly,
        answer=_sentences(reason),
    )


def _about(finding: str, rule: Rule[Any]) -> dict[str, Any]:
    return {"id": rule.id, "finding": finding, "statement": rule.statement, "unit": rule.unit}


def _in_full(rule: Rule[Any], tested: Evidence) -> Evidence:
    """Return evidence with what it leaves to its rule, and what `partly` asks for where that is what `holds` does."""
    return replace(
        tested,
        holds_at=rule.holds if tested.holds_at is None else tested.holds_at,
        partly_at=rule.partly if tested.partly_at is None else tested.partly_at,
        partly_limit=tested.limit if tested.partly_limit is None else tested.partly_limit,
        partly_condition_met=(
            tested.extra_condition_met if tested.partly_condition_met is None else tested.partly_condition_met
        ),
        form=rule.form if tested.form is None else tested.form,
    )


def _answer(rule: Rule[Any], tested: Evidence, verdict: Verdict) -> str:
    decided = {"value": tested.value, "chance": tested.chance, "verdict": verdict}
    return sentence(rule.answer, {**decided, **tested.said})


def _sentences(said: str) -> str:
    return typeset(in_plain_words(said))


def _beyond_chance(rule: Rule[Any], tested: Evidence) -> bool:
    return (
        tested.chance is not None
        and tested.value is not None
        and tested.extra_condition_met
        and rule.beyond(tested.value, tested.limit)
    )


def _flipped(rule: Rule[Any], tested: Evidence, flips: Mapping[str, Evidence]) -> str:
    """Say what the verdict is under another choice, with its number."""
    said = ""
    for how, one in flips.items():
        form = rule.form or two
        value = "no value" if one.value is None else _written(form, one.value, *filter(None, [tested.value]))
        also = SAYS[_verdict(rule, one)]
        said += f" The verdict depends on {tested.choice}: {how}, the claim {also} ({value})."
    return said


def _chance_reaches(rule: Rule[Any], value: float, chance: StoredChance, holds_at: float | None) -> str:
    median, needed, given = (in_unit(each, rule.unit) for each in (chance["median"], holds_at or 0.0, value))
    return (
        f"By chance ({chance['null']}), at least half would pass: the median is {median} "
        f"(needed: {rule.sense} {needed}). The model itself gives {given}."
    )


def _verdict(rule: Rule[Any], tested: Evidence) -> Verdict:
    def passes(threshold: float | None, limit: float | None) -> bool:
        value = tested.value
        return value is not None and rule.reached(value, threshold) and rule.beyond(value, limit)

    if tested.extra_condition_met and passes(tested.holds_at, tested.limit):
        return "holds"
    return "partly" if tested.partly_condition_met and passes(tested.partly_at, tested.partly_limit) else "fails"


def _cutoffs(rule: Rule[Any], tested: Evidence) -> tuple[float | None, float | None]:
    """Return from where values hold and from where they are partly, chance included; None where none would be."""
    holds = rule.stricter(tested.holds_at, tested.limit) if tested.extra_condition_met else None
    partly = rule.stricter(tested.partly_at, tested.partly_limit) if tested.partly_condition_met else None
    if holds is not None and partly is not None and rule.reached(partly, holds):
        partly = None
    return holds, partly


def _needed(rule: Rule[Any], tested: Evidence, verdict: Verdict) -> str:
    form = tested.form
    if not form or tested.value is None or verdict == "holds":
        return ""
    holds, partly = _cutoffs(rule, replace(tested, extra_condition_met=True))
    wanted, limit = holds, tested.limit
    if verdict == "fails" and partly is not None:
        wanted, limit = partly, tested.partly_limit
    where = "" if wanted is None else _missed(rule, tested, wanted, limit, form)
    if holds is None or not where:
        return ""
    if wanted == holds:
        return f" The claim would hold {where}."
    side = "or above" if rule.sense == "at least" else "or below"
    return f" The claim would partly hold {where}, and hold at {_written(form, holds)} {side}."


def _missed(rule: Rule[Any], tested: Evidence, cutoff: float, limit: float | None, form: Form) -> str:
    """Return where a value would have to be that isn't there."""
    value, least = tested.value, rule.sense == "at least"
    if value is None or (rule.beyond(value, limit) and rule.reached(value, cutoff)):
        return ""
    written = _written(form, cutoff, value)
    if limit is None or cutoff != limit:
        return f"at {written} or {'above' if least else 'below'}"
    of = (
        "median" if tested.chance and limit == tested.chance["median"] else f"{'99th' if least else '1st'} percentile"
    )
    return f"{'above' if least else 'below'} {written}, the {of} of chance"


def _written(form: Form, value: float, *beside: float) -> str:
    if not isinstance(form, str):
        return form(value, *beside)
    for _ in range(MOST_DIGITS):
        text = form.format(value)
        if all(other == value or form.format(other) != text for other in beside):
            break
        form = re.sub(r"\.(\d)", lambda digits: f".{int(digits[1]) + 1}", form)
    return text


def _close(value: float | None, interval: tuple[float, float] | None, cutoff: float | None) -> bool:
    if value is None or cutoff is None:
        return False
    if interval is None:
        return abs(value - cutoff) < CLOSE * abs(cutoff)
    return interval[0] < cutoff < interval[1]
