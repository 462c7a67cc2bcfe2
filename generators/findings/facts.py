"""What the rest of the site takes from a finding, beside its section on a model's page and its own page.

That is what it says of single channels, heads, tokens and positions, its loss, and so on. `site/` collects this and
knows no finding by name. Measuring code doesn't import it, so no change here makes anything be computed again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, cast

from numpy import ndarray as Array

from generators.findings.measured import M, Measurements

EntityKind = Literal["channel", "head", "position", "token"]
Order = Literal["largest", "strongest"]  # by value, or by size whatever the sign
R = TypeVar("R")

# Numbers that several findings know: facts in the same words are put together.
POSITION_STD = "standard deviation over positions (P)"
TOKEN_NORM = "norm of its embedding"


@dataclass(frozen=True)
class EntityNumbers:
    """A number for each entity in turn, or by index for some; None where there are none after all.

    `figure` is the name of the figure that shows it, `order` says how entities are ranked by it (None: not at all),
    `leads` of which kind the entities are that the values name, `name` is what `in-short.js` knows it by.
    """

    says: str
    values: Sequence[Any] | Array | Mapping[int, Any] | None
    figure: str | None = None
    order: Order | None = None
    leads: EntityKind | None = None
    name: str | None = None


@dataclass(frozen=True)
class EntityLines:
    """Numbers of each entity, a row of `values` for each, at the same places; those of one `drawing` share axes.

    `usual` is drawn beside each of them to compare: `usual_says` says what it is.
    """

    drawing: str
    across: str
    says: str
    at: Array
    values: Array
    figure: str | None = None
    usual: Array | None = None
    usual_says: str = ""
    name: str | None = None


def attention_by_offset(
    says: str, at: Array, values: Array, figure: str | None, usual: Array | None = None, usual_says: str = ""
) -> EntityLines:
    """Return the mean attention of each head by offset; findings that measure it share axes."""
    drawing, across = "Mean attention by offset", "offset: tokens back from the query"
    return EntityLines(drawing, across, says, at, values, figure, usual, usual_says)


@dataclass(frozen=True)
class EntityNote:
    """A sentence on one entity; `named` says whether pages list the entity for it.

    `role` names what the entity is where a model has one such at most: panels lead from one model's to the others'.
    `claim` is the claim that there is such an entity.
    """

    index: int
    says: str
    named: bool = True
    role: str = ""
    claim: str = ""


@dataclass(frozen=True)
class EntityGroup:
    """A sentence on the entities with these `ids`, and one on all others."""

    says: str
    otherwise: str
    ids: list[int]


@dataclass(frozen=True)
class EntityNames:
    names: Mapping[int, str]


@dataclass(frozen=True)
class EntityCount:
    count: int


Fact = EntityNumbers | EntityLines | EntityNote | EntityGroup | EntityNames | EntityCount
# From measurements, and from how many entities there are as far as is known, to what they say of them.
Says = Callable[[Measurements[M], int | None], Iterator[Fact]]


@dataclass(frozen=True)
class FollowedCurve:
    """A figure's curve that pages of series show for every model; `name` is its address there."""

    name: str
    figure: str
    title: str
    what: str


@dataclass(frozen=True)
class TextLoss:
    """How well a model predicts a text: mean with its 95 % interval, in which unit, on which text."""

    text: str
    text_sha256: str
    unit: str
    mean: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Story:
    """A claim that the home page may tell with a figure; stories of smaller `rank` come first."""

    claim: str
    figure: str
    rank: int


@dataclass(frozen=True, eq=False)
class Facts(Generic[M]):
    """What a finding tells the rest of the site.

    Args:
        entities: what it says of single channels, heads, positions and tokens, by kind.
        stories: what the home page may tell of it; its template has the words, `headline` and `story`.
        curve: the curve that pages of series and the home page show.
        by_chance: such a curve as chance makes it, in three columns, as smooth as that of the model.
        loss: the model's loss on a text.
    """

    entities: Mapping[EntityKind, Says[M]] = field(default_factory=dict)
    stories: tuple[Story, ...] = ()
    curve: FollowedCurve | None = None
    by_chance: Callable[[M], Array] | None = None
    loss: Callable[[M], TextLoss] | None = None


def rows(found: Measurements[Any], table: str, row: type[R]) -> list[R]:
    """Return the rows of a table, typed as what they were made from; none where there is no such table.

    A column that the table has not is None.
    """
    there = found.tables.get(table)
    absent = dict.fromkeys(row.__annotations__)
    return [] if there is None else [cast(R, {**absent, **each}) for each in there.named()]


def by_id(ids: Array | None, values: Array | None) -> dict[int, Any] | None:
    """Return values by the index of what they belong to, None where either array is absent."""
    return None if ids is None or values is None else dict(zip(ids.tolist(), values.tolist(), strict=True))
