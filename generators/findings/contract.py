"""What every finding is made of: what it needs, what it measures, what it claims, what it draws.

The ground floor of `findings/`: it knows the shape of what other rooms hand in (as protocols), not those rooms.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.architecture import Architecture
from generators.base.text import number

Weights = Mapping[str, Array]
Verdict = Literal["holds", "partly", "fails", "untested"]
VERDICTS: tuple[Verdict, ...] = ("holds", "partly", "fails", "untested")
M = TypeVar("M")
R = TypeVar("R")

# Capabilities that a finding may need or use beside roles of tensors.
TOKENS = "tokens"
FREQUENCIES = "frequencies"
RUN = "run"
CAPABILITIES = (TOKENS, FREQUENCIES, RUN)


class NotApplicableError(Exception):
    """The architecture or the weights have no such thing; the message is the sentence that says so."""


# What is handed in


@runtime_checkable
class Vocabulary(Protocol):
    """The tokens of a model by id, as far as findings look at them; `tokens/vocabulary.py` makes it."""

    @property
    def texts(self) -> tuple[bytes, ...]:
        """Return the raw bytes of every token."""

    @property
    def readable(self) -> tuple[str, ...]:
        """Return a form of every token in which each character can be seen; no two are alike."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Return what kind of text each token is."""

    @property
    def marks_space(self) -> Bool[Array, " V"]:
        """Return whether a token carries the tokenizer's space marker (WordPiece: lacks `##`)."""

    @property
    def special(self) -> Bool[Array, " V"]:
        """Return whether a token is none of the text's own."""

    def containing(self, token_id: int, limit: int) -> tuple[int, ...]:
        """Return up to `limit` longer tokens that contain this one."""

    def pair_group(self, u: int, v: int) -> str:
        """Return how two tokens differ, in one word of a short list."""


@runtime_checkable
class Frequency(Protocol):
    """How often each token occurs, as far as one source can tell; `tokens/frequency.py` makes it."""

    @property
    def source(self) -> str:
        """Return "counts", "corpus", "wordfreq" or "index"."""

    @property
    def label(self) -> str:
        """Return how a page names the source."""

    @property
    def log_frequency(self) -> Float[Array, " V"]:
        """Return log(count + 1) or the log of a relative frequency; NaN where the source can't tell."""

    @property
    def coverage(self) -> float:
        """Return the share of tokens that the source can speak about."""

    @property
    def proxy(self) -> bool:
        """Return whether it is no frequency but something that goes with it."""

    @property
    def training_counts(self) -> Int[Array, " V"] | None:
        """Return how often each token occurs in the model's own training text, None where that isn't known."""


# The model itself, as far as findings run it

PositionKind = Literal["table", "rotary", "alibi"]
# What is called with results as they come: with the first window of the batch, before it the stage or the layer where
# there are several.
SeePredictions = Callable[[int, Float[Array, "tokens V"], Int[Array, " tokens"]], None]
SeeStates = Callable[[int, int, Float[Array, "batch n d"]], None]
SeeAttention = Callable[[int, int, Float[Array, "batch heads n n"]], None]
SeeLogits = Callable[[int, Float[Array, "batch n V"]], None]


@runtime_checkable
class Text(Protocol):
    """A text in a model's tokens; `runner/texts/` has them."""

    @property
    def name(self) -> str:
        """Return what the text is, in words."""

    @property
    def sha256(self) -> str:
        """Return the digest of its content."""

    @property
    def ids(self) -> Int[Array, " tokens"]:
        """Return its tokens."""

    @property
    def before(self) -> tuple[int, ...]:
        """Return what the tokenizer puts before every piece of it."""


@runtime_checkable
class Windows(Protocol):
    """Pieces of text of one length."""

    @property
    def ids(self) -> Int[Array, "windows n"]:
        """Return their tokens."""

    @property
    def inner(self) -> tuple[int, int]:
        """Return the columns from and up to which there is text, and not the tokenizer's own tokens."""

    @property
    def mask_id(self) -> int | None:
        """Return the token that stands for a masked one."""


@runtime_checkable
class Loss(Protocol):
    """One number per window, measured anew each time under what is replaced or held then."""

    @property
    def unit(self) -> str:
        """Return what the number is: "nats per token", for example."""

    def per_window(self, see: SeePredictions | None = None) -> Float[Array, " windows"]:
        """Measure; `see` is shown log-probabilities and the tokens that stand there, where any are predicted."""


@runtime_checkable
class Run(Protocol):
    """The model itself, ready to be run; `runner/run.py` makes it.

    Within `replaced` and `held` it runs changed; afterwards it is what it was. Whatever it can't do is a
    `CannotRunError`, which no finding needs to catch.
    """

    @property
    def architecture(self) -> Architecture:
        """Return how the model is built."""

    @property
    def predicts(self) -> bool:
        """Return whether it has a head that predicts tokens."""

    @property
    def position_kind(self) -> PositionKind | None:
        """Return how it knows positions; None if by nothing that can be replaced."""

    @property
    def record(self) -> dict[str, str]:
        """Return with what it is run: versions, dtype, device, threads."""

    @property
    def text(self) -> Text:
        """Return the text that it is run on."""

    def windows(self, count: int, seed: int, passes: float = 1.0) -> Windows:
        """Draw windows of text; fewer than `count` where `passes` runs over all of them would take too long."""

    def affordable(self, count: int, length: int, passes: float) -> int:
        """Return how many of `count` windows of `length` tokens `passes` runs have time for."""

    def encode(self, text: str) -> tuple[int, ...]:
        """Return a piece of text as tokens, nothing put around it."""

    def loss(self, windows: Windows) -> Loss:
        """Return what is measured on windows: nats; of encoders without a head how far they move from now."""

    def logits(self, ids: Int[Array, "windows n"], see: SeeLogits) -> None:
        """Call `see` with logits."""

    def hidden_states(self, ids: Int[Array, "windows n"], see: SeeStates) -> None:
        """Call `see` with the stream before block `stage`; stage n_layer is what the model returns."""

    def attention(self, ids: Int[Array, "windows n"], see: SeeAttention) -> None:
        """Call `see` with where heads look, layer by layer."""

    def stage_means(self, ids: Int[Array, "windows n"]) -> Float[Array, "stages d"]:
        """Return every channel's mean before each block and after the last."""

    def replaced(
        self, *, rows: Float[Array, "m d"] | None = None, ids: Float[Array, " n"] | None = None
    ) -> AbstractContextManager[None]:
        """Run with other position rows (models with a table) or position ids (the others)."""

    def held(
        self, channels: Sequence[int], values: Float[Array, "stages channels"], *, last: bool = True
    ) -> AbstractContextManager[None]:
        """Run with channels of the stream held at `values[i]` before block i, and if `last` after the last block."""


@dataclass(frozen=True)
class Inputs:
    """All that a finding may measure from; of `weights` and `architecture` only what it declares is there.

    `run` is the model itself for findings that need `RUN`; None for others.
    """

    weights: Weights
    architecture: Architecture
    vocabulary: Vocabulary | None = None
    frequencies: tuple[Frequency, ...] = ()  # best first
    run: Run | None = None


def model_of(inputs: Inputs) -> Run:
    """Return the model itself.

    Raises:
        ValueError: it isn't handed in: the finding runs it without declaring that.
    """
    if inputs.run is None:
        raise ValueError("the finding runs the model without declaring it")
    return inputs.run


# What is measured


@dataclass(frozen=True)
class Table:
    """Rows under named columns; `title` says what one row is."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def named(self) -> list[dict[str, Any]]:
        """Return every row as a dict by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def column(self, name: str) -> list[Any]:
        """Return one column.

        Raises:
            ValueError: there is none of that name.
        """
        at = self.columns.index(name)
        return [row[at] for row in self.rows]


def table_of(title: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return a table of rows given as dicts (a TypedDict's), in the order of `columns`; other keys are left out."""
    return Table(title, tuple(columns), tuple(tuple(row[column] for column in columns) for row in rows))


@dataclass(frozen=True)
class Measurements(Generic[M]):
    """What a finding measured: numbers by the names of its definition, tables, and arrays for its figures.

    Nothing in it is judged; absent numbers are None.
    """

    metrics: M
    tables: dict[str, Table] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)


# What is claimed


class StoredChance(TypedDict):
    """A `Chance` among a finding's metrics."""

    null: str
    median: float
    limit: float
    draws: int


Interval = list[float]  # 95 %, as it is stored among a finding's metrics: low, high


@dataclass(frozen=True)
class Chance:
    """What a null gives for a claim's value: `limit` is the percentile that `holds` has to pass, 99th or 1st."""

    null: str  # what was drawn, in words: "curves as smooth as P without features"
    median: float
    limit: float
    draws: int


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
    sense: Literal["at least", "at most"]
    test: Callable[[Measurements[M]], Tested | Untested]
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


def judge(finding: str, rule: Rule[M], measurements: Measurements[M]) -> Claim:
    """Judge one claim of a finding by its rule.

    What reaches a threshold counts only if it is beyond chance too; where chance itself reaches the threshold of
    `holds` as often as not, the claim is untested.
    """
    tested = rule.test(measurements)
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


# What is drawn


@dataclass(frozen=True)
class Figure:
    """A picture of measurements. Its caption and its text for those who can't see it stand in the finding's template.

    `draw` returns a matplotlib figure and is called only when the picture is needed; `interactive` returns what a
    browser needs to make the picture one that can be turned or searched (an object with `as_json`).
    """

    name: str
    title: str
    draw: Callable[[], Any]
    interactive: Callable[[], Any] | None = None


# The finding itself


@dataclass(frozen=True)
class Finding(Generic[M]):
    """One finding, in a folder of its own.

    `needs` and `uses` are roles of tensors (`*` in a role stands for every layer) or capabilities (`TOKENS`,
    `FREQUENCIES`, `RUN`); without what it needs a finding is missing, without what it uses a part of it is None.
    `config` names the fields of `Architecture` that it reads. `metrics` is the type of its metrics, by which stored
    ones are checked. `order` is its place on pages. `passes` is how many windows of text a finding that runs the
    model would run it on, each as often as it is run: by it findings share the time that a model has.
    """

    name: str
    title: str
    order: int
    needs: tuple[str, ...]
    metrics: type[M]
    measure: Callable[[Inputs], Measurements[M]]
    rules: tuple[Rule[M], ...]
    figures: Callable[[Measurements[M]], list[Figure]]
    signature: str  # the figure that the finding's own page shows for every model
    uses: tuple[str, ...] = ()
    config: tuple[str, ...] = ()
    passes: float = 0

    def claims(self, measurements: Measurements[M]) -> list[Claim]:
        """Return every claim of the finding, judged now."""
        return [judge(self.name, rule, measurements) for rule in self.rules]

    def untested(self, reason: str) -> list[Claim]:
        """Return every claim of the finding as one that can't be tested."""
        return [untested(self.name, rule, reason) for rule in self.rules]

    def can_use(self, capability: str) -> bool:
        """Return whether the finding needs or uses a capability."""
        return capability in self.needs or capability in self.uses


def roles(patterns: Iterable[str], n_layer: int) -> list[str]:
    """Return the roles of tensors that patterns mean in a model of `n_layer` layers; capabilities are left out."""
    found: list[str] = []
    for pattern in patterns:
        if "*" in pattern:
            found += [pattern.replace("*", str(i)) for i in range(n_layer)]
        elif pattern not in CAPABILITIES:
            found.append(pattern)
    return found


def finite(value: float | np.floating[Any]) -> float | None:
    """Return a number as it is stored: a float, None where it isn't finite."""
    return float(value) if np.isfinite(value) else None
