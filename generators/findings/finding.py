"""What every finding is made of: what it needs, what it gives, what it claims."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from numpy import ndarray as Array

from generators.tokens.frequency import Frequency
from generators.drawing.interactive import Interactive
from generators.tokens.vocabulary import Vocabulary
from generators.base.architecture import Architecture

Weights = Mapping[str, Array]
Status = Literal["computed", "missing", "not_applicable", "failed"]
Verdict = Literal["holds", "partly", "fails", "untested"]


class NotApplicableError(Exception):
    """The architecture or the weights have no such thing; the message is the sentence that says so."""


@dataclass(frozen=True)
class TokenFacts:
    """What is known of a model's tokens beside their embeddings; without a tokenizer, nothing."""

    vocabulary: Vocabulary | None = None
    frequencies: tuple[Frequency, ...] = ()  # best first


NO_TOKENS = TokenFacts()


@dataclass(frozen=True)
class Table:
    """Rows under named columns; `title` says what one row is."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Result:
    """What a finding computed: numbers by the names of its definition, tables, and arrays for its figures."""

    metrics: dict[str, Any]
    tables: dict[str, Table] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """A statement, tested: its verdict, effect size, threshold and chance baseline.

    `answer` is the verdict in one sentence about this model, with its numbers.
    """

    id: str
    finding: str
    statement: str
    verdict: Verdict
    value: float | None
    threshold: float | None
    baseline: float | None
    unit: str
    answer: str


@dataclass(frozen=True)
class Figure:
    """A picture of a result: what it is called, how to read it, what it shows for this model, and its drawing.

    `draw` returns a matplotlib figure and is called only when the picture is needed; `interactive` returns what a
    browser needs to make the picture one that can be turned or searched.
    """

    name: str
    title: str
    how_to_read: str
    alt: str
    draw: Callable[[], Any]
    interactive: Callable[[], Interactive] | None = None


@dataclass(frozen=True)
class Finding:
    """One finding. `needs` and `uses` are roles; `*` in a role stands for every layer.

    `reads_vocabulary` and `reads_frequencies` say which token facts its results depend on.
    """

    name: str
    title: str
    version: int
    needs: tuple[str, ...]
    uses: tuple[str, ...]
    parameters: Mapping[str, float]
    compute: Callable[[Weights, Architecture, TokenFacts], Result]
    claims: Callable[[Result], list[Claim]]
    figures: Callable[[Result], list[Figure]]
    signature: str  # the figure that the finding's own page shows for every model
    reads_vocabulary: bool = False
    reads_frequencies: bool = False

    def roles(self, patterns: tuple[str, ...], n_layer: int) -> list[str]:
        """Return the roles that patterns mean in a model of `n_layer` layers."""
        return [
            role
            for pattern in patterns
            for role in ([pattern.replace("*", str(i)) for i in range(n_layer)] if "*" in pattern else [pattern])
        ]
