"""The page about speed: what `make bench` kept, as ratios to the plain way, to other tools and to the arithmetic."""

import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
from pydantic import Field

from generators.base.plain import canonical_json
from generators.base.text import number
from generators.compute import code
from generators.drawing import growth as drawing
from generators.drawing.ratio_bar import ratio_bar, span_of
from generators.site.evidence import Kept, validated
from generators.site.pictures import Drawing, drawn
from generators.site.staging import Staging

BENCH = "bench.json"
PAGE = "speed.md"
LIKE = 0.05  # by which a ratio may be off 1 and still count as the same
AIM_FINDINGS, AIM_FLOOR, AIM_MEMORY = 10, 1.5, 1.5  # times faster; times the floor; times E
AIM_JOBS = {"jobs": 1.8, "cluster": 1.7}  # times faster, two at a time
FEWEST_FOR_FIGURE = 2  # places along an axis
SECTIONS = {
    "findings": "all findings beside the plain way",
    "token_side": "searches among tokens",
    "others": "other tools",
    "growth": "how cost grows",
    "side_by_side": "several jobs at a time",
    "runs": "running a model",
}


class Section(Kept):
    """What a part of it was measured on; `load_before` is the machine's while it began, `clock` what is counted."""

    machine: str
    date: str
    commit: str
    load_before: float
    idle: bool
    clock: str


class Searched(Kept):
    """One search among tokens; memory in sizes of E."""

    name: str
    times_faster: float = Field(gt=0)
    memory: float
    agrees: str


class TokenSide(Section):
    """What is sought among tokens, beside the plain way and beside the bare arithmetic.

    The floor is E^T E and the scalar product of every pair, once; looks are E^T E and a look at every pair by a few
    coordinates, once for each search.
    """

    tokens: int
    d_model: int
    rows: list[Searched]
    times_faster: float = Field(gt=0)
    neighbours_over_floor: float = Field(gt=0)
    neighbours_over_looks: float = Field(gt=0)


class Ratios(Kept):
    """How many times as long the plain way takes.

    For the answers alone, when the atlas draws chance a few times only; for the answers alone against all that the
    atlas does; and for the answers and what chance gives.
    """

    times_faster_answers: float = Field(gt=0)
    times_faster_than_answers: float = Field(gt=0)
    times_faster: float = Field(gt=0)


class OfFinding(Ratios):
    """One finding beside a notebook of it; `answers` and `chance` are the plain way's seconds for both."""

    name: str
    title: str
    compared: str
    answers: float = Field(ge=0)
    chance: float = Field(ge=0)

    @property
    def plain(self) -> float:
        """Return what the plain way takes in all."""
        return self.answers + self.chance


class OfFindings(Section):
    """All findings about weights; memory in sizes of E."""

    tokens: int
    d_model: int
    layers: int
    rows: list[OfFinding] = Field(min_length=1)
    all: Ratios
    memory: float

    @property
    def dearest(self) -> OfFinding:
        """Return the finding that takes the plain way longest."""
        return max(self.rows, key=lambda row: row.plain)

    def share(self, row: OfFinding) -> float:
        """Return a finding's part of what the plain way takes for all."""
        return row.plain / (sum(each.plain for each in self.rows) or 1.0)


class Told(Kept):
    """The same where the other tool's answer to a part of it is taken over."""

    times_faster: float = Field(gt=0)


class OfTool(Kept):
    """One thing that another tool does too."""

    tool: str
    what: str
    times_faster: float = Field(gt=0)
    agrees: str
    told: Told | None = None


class Others(Section):
    """Other tools on the same matrices."""

    tokens: int
    d_model: int
    layers: int
    rows: list[OfTool]

    @property
    def faster(self) -> list[OfTool]:
        """Return where the atlas is faster, by more than is alike."""
        return [row for row in self.rows if row.times_faster > 1 + LIKE]

    @property
    def slower(self) -> list[OfTool]:
        """Return where it is slower."""
        return [row for row in self.rows if row.times_faster < 1 - LIKE]

    @property
    def alike(self) -> list[OfTool]:
        """Return where neither is."""
        return [row for row in self.rows if row not in (*self.faster, *self.slower)]


class Fitted(Kept):
    """The exponent of a power of the size: over all places, and between the last two."""

    all: float
    last: float


class Point(Kept):
    """What one size costs: seconds, and memory in MiB; `again` with nothing left to do."""

    at: float = Field(gt=0)
    seconds: float = Field(gt=0)
    memory: float = Field(gt=0)
    again: float | None = None


class Beside(Kept):
    """What stays as it is; of what grows, the first place."""

    tokens: int
    channels: int
    layers: int


class Axis(Kept):
    """One thing that gets larger, up to where it was to go, and why it was cut before, if it was."""

    name: str
    what: str
    upto: float
    beside: Beside
    points: list[Point]
    cut: str | None
    time: Fitted | None
    memory: Fitted | None

    @property
    def still(self) -> str:
        """Return what stays as it is, in words."""
        sizes = {"vocabulary": (self.beside.tokens, "tokens"), "channels": (self.beside.channels, "channels")}
        sizes["layers"] = (self.beside.layers, "layer" if self.beside.layers == 1 else "layers")
        return ", ".join(f"{number(size)} {unit}" for name, (size, unit) in sizes.items() if name != self.name)


class Growth(Section):
    """How cost grows."""

    axes: list[Axis]


class Way(Kept):
    """One way to do several models."""

    times_faster: float = Field(gt=0)


class SideBySide(Section):
    """Several models one after another, by `--jobs`, and by a cluster on the same machine.

    `apart` is what as many commands get that share nothing: all that the machine has to give.
    """

    models: int
    jobs: int
    ways: dict[str, Way]
    apart: Way


class OfRunner(Kept):
    """Running a model as another library runs it."""

    name: str
    times_faster: float = Field(gt=0)


class Runs(Section):
    """Running a model many times over."""

    windows: int
    tables: int
    rows: list[OfRunner]


class Speed(Kept):
    """What `make bench` kept; a section that was not measured is None."""

    findings: OfFindings | None = None
    token_side: TokenSide | None = None
    others: Others | None = None
    growth: Growth | None = None
    side_by_side: SideBySide | None = None
    runs: Runs | None = None

    @property
    def sections(self) -> list[tuple[str, Section]]:
        """Return what was measured, by what it is."""
        found = ((words, getattr(self, name)) for name, words in SECTIONS.items())
        return [(words, section) for words, section in found if section is not None]

    @property
    def unmeasured(self) -> list[str]:
        """Return in words what was not measured."""
        return [words for name, words in SECTIONS.items() if getattr(self, name) is None]

    @property
    def span(self) -> tuple[float, float]:
        """Return from where to where all ratios of the page go."""
        return span_of(self._ratios())

    def _ratios(self) -> Iterator[float]:
        if self.findings:
            yield from (row.times_faster for row in self.findings.rows)
            yield from (row.times_faster_answers for row in self.findings.rows)
        for section in (self.token_side, self.others, self.runs):
            if section:
                yield from (row.times_faster for row in section.rows)


def speed(results: Path) -> Speed | None:
    """Read what was measured, None where it isn't kept or holds no section.

    Raises:
        InputError: it is there but damaged.
    """
    found = validated(results / BENCH, Speed, 'make bench BENCH_ARGS="--write"')
    return found if found is not None and found.sections else None


def write_speed(results: Path, staging: Staging, templates: jinja2.Environment) -> bool:
    """Write the page with its figures; return whether there is anything to tell."""
    found = speed(results)
    if found is None:
        return False
    text = templates.get_template("speed.md.j2").render(
        root="../",
        speed=found,
        time=_picture(found.growth, "seconds", "seconds of the processor", staging),
        memory=_picture(found.growth, "memory", "memory (MiB)", staging),
        bar=partial(ratio_bar, span=found.span),
        times=times,
        how_fast=how_fast,
        aims={"findings": AIM_FINDINGS, "floor": AIM_FLOOR, "memory": AIM_MEMORY, "jobs": AIM_JOBS},
    )
    staging.write(PAGE, text)
    return True


def times(ratio: float) -> str:
    """Return a ratio in few signs: two digits, all below 1 as what it is one over."""
    return f"{_rounded(ratio)} ×" if ratio >= 1 else f"1/{_rounded(1 / ratio)} ×"


def how_fast(ratio: float) -> str:
    """Return in words how long the atlas takes where the other way takes `ratio` times as long."""
    if abs(ratio - 1) <= LIKE:
        return "as fast"
    if ratio > 1:
        return f"{_rounded(ratio)} times as fast"
    return f"slower: it takes {_rounded(1 / ratio)} times as long"


def _rounded(ratio: float) -> str:
    return number(float(f"{ratio:.2g}")) if ratio < 100 else number(round(ratio))


def _picture(growth: Growth | None, of: str, unit: str, staging: Staging) -> Drawing | None:
    shown = [axis for axis in growth.axes if len(axis.points) >= FEWEST_FOR_FIGURE] if growth else []
    if not shown:
        return None
    grown = [_grown(axis, of) for axis in shown]
    parts = canonical_json([one.__dict__ for one in grown]) + unit + code.digest(drawing.__name__)
    key = hashlib.sha256(parts.encode()).hexdigest()[:32]
    return drawn(f"figures/speed/{of}", key, partial(drawing.draw_growth, grown, unit), staging)


def _grown(axis: Axis, of: str) -> drawing.Grown:
    fitted: Any = axis.time if of == "seconds" else axis.memory
    at, costs = (tuple(getattr(point, name) for point in axis.points) for name in ("at", of))
    return drawing.Grown(axis.what, at, costs, None if fitted is None else fitted.all)
