"""What a series of models shows: claims along it, where verdicts settle, whether seeds agree. Reads no weights."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jinja2
import numpy as np
from scipy.linalg import orthogonal_procrustes

from generators.base.plain import as_compact_json
from generators.base.sentences import listed
from generators.base.text import number
from generators.checkpoint.registry import Model, Registry, Series
from generators.compute import code
from generators.compute.judged import JudgedModel, judged_model
from generators.compute.records import ClaimRecord
from generators.compute.results import Store
from generators.drawing import along
from generators.drawing.along import Panel, Point
from generators.drawing.interactive import Curve, Rows
from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.findings.judging import Rule
from generators.site.pictures import drawn
from generators.site.staging import Staging

HELIX = "helix"
AXES = {"seed": "seed", "change": "what was changed", "step": "training step"}


@dataclass(frozen=True)
class SeriesPicture:
    """Where a drawn figure is, from the site's root, and its size in CSS pixels."""

    light: str
    dark: str
    width: int
    height: int


@dataclass(frozen=True)
class SeriesMember:
    """A model of a series that has results, judged."""

    place: int | str
    model: Model
    judged: JudgedModel

    @cached_property
    def claims(self) -> dict[str, ClaimRecord]:
        """Return its claims by id."""
        return {claim.id: claim for claim in self.judged.published().claims}


@dataclass(frozen=True)
class Along:
    """One claim in every model of a series that has results."""

    rule: Rule[Any]
    series: Series
    members: tuple[SeriesMember, ...]

    @property
    def tested(self) -> list[tuple[SeriesMember, ClaimRecord]]:
        """Return the models that can test it, with its claim."""
        known = [(member, member.claims[self.rule.id]) for member in self.members if self.rule.id in member.claims]
        return [(member, claim) for member, claim in known if claim.verdict != "untested"]

    @property
    def panel(self) -> Panel | None:
        """Return what is drawn of it, None without an effect in two models."""
        measured = [(member, claim) for member, claim in self.tested if claim.value is not None]
        if len(measured) < 2:
            return None
        thresholds = {claim.threshold for _, claim in measured}
        points = [
            Point(m.place, c.value, c.interval, c.verdict, c.chance.limit if c.chance else None)
            for m, c in measured
            if c.value is not None
        ]
        threshold = thresholds.pop() if len(thresholds) == 1 else None
        return Panel(self.rule.statement.rstrip("."), self.rule.unit, tuple(points), threshold)

    @property
    def sentence(self) -> str:
        """Return in words what the series says of it."""
        tested = self.tested
        if not tested:
            return "No model of the series can test it."
        said = {"step": self._settling, "seed": self._agreement, "change": self._changes}[self.series.along](tested)
        untested = len(self.members) - len(tested)
        return said + (f" Untested in {_of(untested, len(self.members))}." if untested else "")

    def _settling(self, tested: list[tuple[SeriesMember, ClaimRecord]]) -> str:
        last = tested[-1][1].verdict
        settled = len(tested)
        while settled and tested[settled - 1][1].verdict == last:
            settled -= 1
        first = tested[settled][0].place
        span = _span([claim.value for _, claim in (tested[0], tested[-1])])
        if settled == 0:
            return f"{_verb(last).capitalize()} from the first step looked at to the last{span}."
        if settled == len(tested) - 1:
            return f"{_verb(last).capitalize()} at the last step only, {number(first)}{span}."
        return f"{_verb(last).capitalize()} from step {number(first)} on{span}."

    def _agreement(self, tested: list[tuple[SeriesMember, ClaimRecord]]) -> str:
        verdicts = [claim.verdict for _, claim in tested]
        kinds = list(dict.fromkeys(verdicts))
        values = [claim.value for _, claim in tested if claim.value is not None]
        span = _range(values)
        if len(kinds) == 1:
            count = "The one seed tested" if len(tested) == 1 else f"All {len(tested)} seeds agree: it"
            return f"{count} {_verb(kinds[0])}{span}."
        each = ", ".join(f"{_verb(kind)} in {verdicts.count(kind)}" for kind in kinds)
        return f"Seeds differ: it {each} of {len(tested)}{span}."

    def _changes(self, tested: list[tuple[SeriesMember, ClaimRecord]]) -> str:
        first = self.members[0]
        base = {member.place: claim for member, claim in tested}.get(first.place)
        by_verdict: dict[str, list[str]] = {}
        for member, claim in tested:
            by_verdict.setdefault(claim.verdict, []).append(str(member.place))
        if base is None:
            each = "; ".join(f"{_verb(kind)} with {listed(names)}" for kind, names in by_verdict.items())
            return f"{each[0].upper()}{each[1:]}."
        same = [name for name in by_verdict[base.verdict] if name != str(first.place)]
        others = {kind: names for kind, names in by_verdict.items() if kind != base.verdict}
        said = f"{_verb(base.verdict).capitalize()} with {first.place}"
        if same:
            said += f", and still with {listed(same)}"
        for kind, names in others.items():
            said += f"; {_verb(kind)} with {listed(names)}"
        return f"{said}."


@dataclass(frozen=True)
class SeriesPage:
    """All that a series' page is made from."""

    series: Series
    places: tuple[int | str, ...]  # of all its models
    members: tuple[SeriesMember, ...]  # of those with results
    absent: tuple[tuple[int | str, Model], ...]

    @property
    def axis(self) -> str:
        """Return what the models' places are."""
        return AXES[self.series.along]

    def claims(self, finding: Finding[Any]) -> list[Along]:
        """Return every claim of a finding."""
        return [Along(rule, self.series, self.members) for rule in finding.rules]

    def panels(self, finding: Finding[Any]) -> list[Panel]:
        """Return what is drawn of a finding."""
        return [panel for panel in (each.panel for each in self.claims(finding)) if panel is not None]

    @property
    def shown(self) -> list[Finding[Any]]:
        """Return the findings of which some claim is tested in some model."""
        return [finding for finding in FINDINGS if any(each.tested for each in self.claims(finding))]

    def curve(self) -> Curve | None:
        """Return the curves of positions with a slider over models, each turned to lie on the one before it.

        None where fewer than two have one, or they differ in length.
        """
        found = [(member.place, _curve_of(member)) for member in self.members]
        curves = [(place, curve) for place, curve in found if curve is not None]
        if len(curves) < 2 or len({curve.rows[0].points.shape for _, curve in curves}) > 1:
            return None
        rows: list[Rows] = []
        for place, curve in curves:
            first = curve.rows[0]
            points = first.points - first.points.mean(axis=0)
            if rows:
                points = points @ orthogonal_procrustes(points, rows[-1].points)[0]
            rows.append(replace(first, name=number(place), points=points))
        return Curve(tuple(rows), curves[0][1].colourings[:1], slider=self.axis.capitalize())


def write_series(
    registry: Registry, store: Store, staging: Staging, templates: jinja2.Environment, pages: Sequence[str]
) -> list[SeriesPage]:
    """Write the page of every series, with its figures, and the list of them; `pages` are models with a page."""
    found = list(series_pages(registry, store))
    for one in found:
        pictures = {finding.name: _picture(one, finding, staging) for finding in one.shown if one.panels(finding)}
        text = templates.get_template("series.md.j2").render(
            root="../../", one=one, pictures=pictures, curve=_write_curve(one, staging), with_page=set(pages)
        )
        staging.write(f"series/{one.series.name}.md", text)
    if found:
        staging.write("series/index.md", templates.get_template("all_series.md.j2").render(root="../", series=found))
    return found


def _picture(one: SeriesPage, finding: Finding[Any], staging: Staging) -> SeriesPicture:
    panels = one.panels(finding)
    key = hashlib.sha256(f"{panels}{one.places}{one.axis}{code.digest(along.__name__)}".encode()).hexdigest()[:32]
    path = f"figures/series/{one.series.name}/{finding.name}"
    return SeriesPicture(*drawn(path, key, partial(along.draw_along, panels, one.places, one.axis), staging))


def _write_curve(one: SeriesPage, staging: Staging) -> str | None:
    """Write what the curve with its slider is made from; return where."""
    curve = one.curve()
    if curve is None:
        return None
    path = f"data/series/{one.series.name}.json"
    staging.write(path, as_compact_json(curve.as_json()))
    return path


def series_pages(registry: Registry, store: Store) -> Iterator[SeriesPage]:
    """Yield what the page of every series is made from, if there are results of two of its models.

    Raises:
        InputError: what is known of a model is damaged.
    """
    for one in registry.series:
        judged = [(place, model, judged_model(store, model.name)) for place, model in registry.members(one)]
        members = tuple(SeriesMember(place, model, found) for place, model, found in judged if found is not None)
        absent = tuple((place, model) for place, model, found in judged if found is None)
        if len(members) > 1:
            yield SeriesPage(one, tuple(place for place, _, _ in judged), members, absent)


def _curve_of(member: SeriesMember) -> Curve | None:
    judged = next((each for each in member.judged.findings if each.finding.name == HELIX), None)
    if judged is None or judged.measured is None:
        return None
    figures = judged.finding.figures(judged.measured)
    made = next((figure.interactive for figure in figures if figure.name == judged.finding.signature), None)
    curve = made() if made is not None else None
    return curve if isinstance(curve, Curve) and np.isfinite(curve.rows[0].points).all() else None


def _verb(verdict: str) -> str:
    return {"holds": "holds", "partly": "partly holds", "fails": "fails"}[verdict]


def _span(values: list[float | None]) -> str:
    first, last = values
    return "" if first is None or last is None else f" (from {number(first)} at first to {number(last)} in the end)"


def _range(values: list[float]) -> str:
    if not values:
        return ""
    low, high = number(min(values)), number(max(values))
    return f" ({low})" if low == high else f" ({low} to {high})"


def _of(count: int, whole: int) -> str:
    return "all of them" if count == whole else f"{count} of {whole}"
