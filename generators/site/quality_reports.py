"""What long checks of the atlas itself found, stored beside the results with date and commit: shown on Methods."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from generators.base.errors import InputError
from generators.base.files import read_limited
from generators.checkpoint.registry import explain
from generators.findings.judging import Verdict

LARGEST = 2**26  # bytes of a report


class StoredPart(BaseModel):
    model_config = ConfigDict(frozen=True)


class QualityReport(StoredPart):
    date: str
    commit: str


class Held(StoredPart):
    """In how many draws a claim holds, of how many in which it is tested."""

    holds: int
    tested: int


@dataclass(frozen=True)
class OnNulls:
    """One claim over all nulls: on how many it is tested, and where it holds most often.

    `excused` are the nulls that keep what the claim speaks of, each with the draws in which it holds and why.
    """

    tested: int
    most: Held | None
    excused: tuple[tuple[str, Held, str], ...]


class NullDraws(QualityReport):
    """How often each claim holds where there is nothing to find."""

    draws: int
    sizes: dict[str, int]
    nulls: dict[str, dict[str, Held]]
    not_opposite: dict[str, dict[str, str]] = {}  # claim -> null -> why it is no opposite of the claim

    @property
    def claims(self) -> list[str]:
        return list(dict.fromkeys(claim for held in self.nulls.values() for claim in held))

    def of(self, claim: str) -> OnNulls:
        excused = self.not_opposite.get(claim, {})
        tested = {null: held[claim] for null, held in self.nulls.items() if claim in held and held[claim].tested}
        opposite = {null: one for null, one in tested.items() if null not in excused}
        most = max((one for one in opposite.values() if one.holds), key=lambda one: one.holds, default=None)
        without = tuple((null, tested[null], why) for null, why in excused.items() if null in tested)
        return OnNulls(len(opposite), most, without)


class Strength(StoredPart):
    strength: float
    verdict: Verdict


class PlantedScale(StoredPart):
    """What is planted for a claim, strongest first."""

    claim: str
    what: str
    scale: list[Strength]

    def last(self, verdict: Verdict) -> float | None:
        """Return the weakest strength with a verdict, None without any."""
        return next((one.strength for one in reversed(self.scale) if one.verdict == verdict), None)


class Planted(QualityReport):
    """Where each claim switches when its structure is planted ever more weakly."""

    draws: int
    plantings: list[PlantedScale]


class Tried(QualityReport):
    """What came of everything that was tried, by kind and outcome."""

    kinds: dict[str, dict[str, int]]

    @property
    def count(self) -> int:
        return sum(sum(count.values()) for count in self.kinds.values())

    def came_to(self, what: str) -> int:
        return sum(count.get(what, 0) for count in self.kinds.values())


class Limits(StoredPart):
    seconds: float
    bytes: int


class Fuzz(Tried):
    limits: Limits


class OracleRow(StoredPart):
    """One type of model, and of each thing that was compared whether it agrees; None where it has no such thing."""

    model_config = ConfigDict(frozen=True, extra="allow")
    family: str
    model_type: str

    @property
    def agrees(self) -> bool:
        """Return whether nothing that was compared differs."""
        return all(found is not False for found in (self.model_extra or {}).values())


class Oracle(StoredPart):
    """The families' tables against torch and transformers."""

    torch: str
    transformers: str
    tolerance: float
    columns: tuple[str, ...]
    rows: tuple[OracleRow, ...] = Field(min_length=1)

    @property
    def families(self) -> dict[str, list[OracleRow]]:
        return {row.family: [one for one in self.rows if one.family == row.family] for row in self.rows}

    @property
    def differing(self) -> list[str]:
        return [name for name, rows in self.families.items() if any(not one.agrees for one in rows)]


# Name -> what it holds: `make <name>` writes it to `results/<name>.json`.
REPORTS: dict[str, type[StoredPart]] = {
    "nulls": NullDraws,
    "planted": Planted,
    "oracle": Oracle,
    "fuzz": Fuzz,
    "crash": Tried,
}


def read(folder: Path, name: str) -> Any:
    """Read one report from a folder of results, None where there is none.

    Raises:
        InputError: it is there but damaged.
    """
    path = folder / f"{name}.json"
    try:
        return REPORTS[name].model_validate(json.loads(read_limited(path, LARGEST)))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise InputError(f"{path} is damaged ({explain(error)}); make it anew with: make {name}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} can't be read: {error}.") from error


def read_all(folder: Path) -> dict[str, Any]:
    """Read every report by its name. Raises InputError: one is there but damaged."""
    return {name: read(folder, name) for name in REPORTS}
