"""What long checks of the atlas itself found, kept beside the results with date and commit: shown on About."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from generators.base.errors import InputError
from generators.checkpoint.registry import explain
from generators.findings.judging import Verdict

NULLS = "nulls.json"
PLANTED = "planted.json"
ORACLE = "oracle.json"
MANY = "many.json"
FUZZ, CRASH, REPRODUCIBLE = "fuzz.json", "crash.json", "reproducible.json"
LIGHTHOUSE = "lighthouse.json"


class Kept(BaseModel):
    """What a long check left in a file: it can't be changed."""

    model_config = ConfigDict(frozen=True)


K = TypeVar("K", bound=Kept)


class Held(Kept):
    """In how many draws a claim holds, of how many in which it is tested."""

    holds: int
    tested: int


@dataclass(frozen=True)
class OnNulls:
    """One claim over all nulls: on how many it is tested, and where it holds most often.

    Nulls that keep what the claim speaks of are named by themselves, each with the draws in which it holds and why.
    """

    tested: int
    most: Held | None
    nulls: tuple[str, ...]
    kept_by: tuple[tuple[str, Held, str], ...]


class Nulls(Kept):
    """How often each claim holds where there is nothing to find; written by `make nulls`."""

    date: str
    commit: str
    draws: int
    sizes: dict[str, int]
    nulls: dict[str, dict[str, Held]]
    renewed: dict[str, str] = {}  # finding -> the commit at which it was measured anew
    not_opposite: dict[str, dict[str, str]] = {}  # claim -> null -> why it is no opposite of the claim

    @property
    def claims(self) -> list[str]:
        """Return every claim that some null speaks about, in the order met."""
        return list(dict.fromkeys(claim for held in self.nulls.values() for claim in held))

    def of(self, claim: str) -> OnNulls:
        """Return what is told of a claim in one line."""
        excused = self.not_opposite.get(claim, {})
        tested = {null: held[claim] for null, held in self.nulls.items() if claim in held and held[claim].tested}
        opposite = {null: one for null, one in tested.items() if null not in excused}
        most = max((one.holds for one in opposite.values()), default=0)
        where = tuple(null for null, one in opposite.items() if most and one.holds == most)
        kept = tuple((null, tested[null], why) for null, why in excused.items() if null in tested)
        return OnNulls(len(opposite), opposite[where[0]] if where else None, where, kept)


class Strength(Kept):
    """One strength of what is planted, and the worst verdict of several draws."""

    strength: float
    verdict: Verdict


class Planting(Kept):
    """What is planted for a claim, strongest first."""

    claim: str
    what: str
    scale: list[Strength]

    def last(self, verdict: Verdict) -> float | None:
        """Return the weakest strength with a verdict, None without any."""
        return next((one.strength for one in reversed(self.scale) if one.verdict == verdict), None)

    @property
    def fails_from(self) -> float | None:
        """Return the strongest planting with which the claim fails, None if it never does."""
        return next((one.strength for one in self.scale if one.verdict == "fails"), None)


class Planted(Kept):
    """Where each claim switches when its structure is planted ever more weakly; written by `make planted`."""

    date: str
    commit: str
    draws: int
    plantings: list[Planting]
    renewed: dict[str, str] = {}  # finding -> the commit at which it was measured anew


class Tried(Kept):
    """What came of everything that was tried, by kind and outcome."""

    date: str
    commit: str
    kinds: dict[str, dict[str, int]]

    @property
    def count(self) -> int:
        """Return how many were tried."""
        return sum(sum(count.values()) for count in self.kinds.values())

    def came_to(self, what: str) -> int:
        """Return how many had an outcome."""
        return sum(count.get(what, 0) for count in self.kinds.values())


class Limits(Kept):
    """What a process may take: seconds of the processor, and bytes of memory."""

    seconds: float
    bytes: int


class Fuzz(Tried):
    """Damaged, hostile and absurd files; written by `make fuzz`."""

    limits: Limits


class Costs(Kept):
    """What the site of many models takes: cold, of that MkDocs alone, from the cache, and where little changed."""

    cold: float
    mkdocs: float
    from_cache: float
    one_changed: float
    unchanged_render: float
    unchanged_build: float


class Many(Kept):
    """What a site of many made-up models weighs and costs; written by `make many`.

    `seconds` are of the processor, `clock` by the clock.
    """

    date: str
    commit: str
    models: int
    seconds: Costs
    clock: Costs
    sizes: dict[str, float]


class Looks(Kept):
    """What a browser asked for when it opened every page, and what their policies kept out."""

    pages: int
    requests: int
    elsewhere: int
    kept_out: int


class Reproducible(Kept):
    """How many files two builds of the site have, and which differ; written by `make reproducible`."""

    date: str
    commit: str
    files: int
    differ: list[str]
    looks: Looks | None = None


class Looked(Kept):
    """What Lighthouse found of one page: scores out of 100, times in milliseconds, and what misses the budget."""

    page: str
    scores: dict[str, float]
    times: dict[str, float]
    missed: list[str]


class Required(Kept):
    """What Lighthouse must find: scores of at least, milliseconds of at most."""

    least: dict[str, float]
    most: dict[str, float]


class Lighthouse(Kept):
    """One page of every kind as Lighthouse sees it; written by `make lighthouse`.

    `speed` is the machine's while it looked, by Lighthouse's own measure.
    """

    date: str
    commit: str
    lighthouse: str
    looks: int
    speed: float
    budget: Required
    pages: dict[str, Looked]

    @property
    def missed(self) -> int:
        """Return how many kinds of pages miss the budget."""
        return sum(bool(page.missed) for page in self.pages.values())


@dataclass(frozen=True)
class Robustness:
    """What was tried to break the atlas, each None where that isn't kept."""

    fuzz: Fuzz | None
    crash: Tried | None
    reproducible: Reproducible | None


@dataclass(frozen=True)
class OracleRow:
    """Types of models that one family's table reads: what was compared with torch, and whether it agrees."""

    family: str
    types: tuple[str, ...]
    agrees: dict[str, bool | None]


@dataclass(frozen=True)
class Oracle:
    """The families' tables against torch and transformers."""

    torch: str
    transformers: str
    tolerance: float
    columns: tuple[str, ...]
    rows: tuple[OracleRow, ...]


def nulls(folder: Path) -> Nulls | None:
    """Read how often claims hold on nulls, None where that isn't kept.

    Raises:
        InputError: it is there but damaged.
    """
    return validated(folder / NULLS, Nulls, "make nulls")


def planted(folder: Path) -> Planted | None:
    """Read where claims switch, None where that isn't kept.

    Raises:
        InputError: it is there but damaged.
    """
    return validated(folder / PLANTED, Planted, "make planted")


def robustness(folder: Path) -> Robustness | None:
    """Read what was tried to break the atlas, None where none of it is kept.

    Raises:
        InputError: some of it is there but damaged.
    """
    found = Robustness(
        validated(folder / FUZZ, Fuzz, "make fuzz"),
        validated(folder / CRASH, Tried, "make crash"),
        validated(folder / REPRODUCIBLE, Reproducible, "make reproducible"),
    )
    return found if any((found.fuzz, found.crash, found.reproducible)) else None


def lighthouse(folder: Path) -> Lighthouse | None:
    """Read how fast and accessible pages are, None where that isn't kept.

    Raises:
        InputError: it is there but damaged.
    """
    return validated(folder / LIGHTHOUSE, Lighthouse, "make lighthouse")


def many(folder: Path) -> Many | None:
    """Read what a site of many models weighs and costs, None where that isn't kept.

    Raises:
        InputError: it is there but damaged.
    """
    return validated(folder / MANY, Many, "make many")


def oracle(folder: Path) -> Oracle | None:
    """Read what the comparison with torch gave, by family; None where that isn't kept.

    Raises:
        InputError: it is there but damaged.
    """
    content = _read(folder / ORACLE)
    if content is None:
        return None
    try:
        columns = tuple(content["columns"])
        rows: dict[str, list[dict[str, Any]]] = {}
        for row in content["rows"]:
            rows.setdefault(row["family"], []).append(row)
        found = tuple(_oracle_row(family, of_family, columns) for family, of_family in rows.items())
        return Oracle(content["torch"], content["transformers"], content["tolerance"], columns, found)
    except (KeyError, TypeError) as error:
        raise InputError(f"{folder / ORACLE} is damaged: it lacks {error}.") from error


def _oracle_row(family: str, rows: list[dict[str, Any]], columns: tuple[str, ...]) -> OracleRow:
    agrees: dict[str, bool | None] = {}
    for column in columns:
        said = [row[column] for row in rows if row.get(column) is not None]
        agrees[column] = all(said) if said else None
    return OracleRow(family, tuple(dict.fromkeys(row["model_type"] for row in rows)), agrees)


def validated(path: Path, kind: type[K], made_by: str) -> K | None:
    """Read what a command left, None where it isn't kept.

    Raises:
        InputError: it is there but damaged.
    """
    content = _read(path)
    if content is None:
        return None
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{path} is damaged ({explain(error)}); make it anew with: {made_by}") from error


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} can't be read: {error}.") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} is damaged: it holds no JSON object.")
    return content
