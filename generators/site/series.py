"""What a series of models shows: claims along it, where verdicts settle, whether seeds agree. Reads no weights."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jinja2

from generators.checkpoint.registry import Model, Place, Registry, Series
from generators.compute.judged import judged_model
from generators.compute.results import Store
from generators.drawing import along
from generators.drawing.along import EffectPanel, EffectPoint, VerdictLine
from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.site.claims_along import Along, Change, FinalVerdict, SeriesMember, change
from generators.site.held_out import Losses, losses
from generators.site.pictures import DrawnFile, drawn
from generators.site.series_curves import shown_curves
from generators.site.staging import Staging
from generators.site.view import ModelPage

AXES = {"seed": "seed", "change": "change", "step": "training step"}


@dataclass(frozen=True)
class SeriesPage:
    series: Series
    places: tuple[Place, ...]  # of all its models
    members: tuple[SeriesMember, ...]  # of those with results
    absent: tuple[tuple[Place, Model], ...]
    losses: Losses | None = None
    seeds: tuple[SeriesMember, ...] = ()  # of the series that it takes for seeds of its reference

    @property
    def axis(self) -> str:
        return AXES[self.series.along]

    @cached_property
    def _by_finding(self) -> dict[str, list[Along]]:
        return {
            finding.name: [Along(rule, self.series, self.members) for rule in finding.rules] for finding in FINDINGS
        }

    def claims(self, finding: Finding[Any]) -> list[Along]:
        return self._by_finding[finding.name]

    @cached_property
    def rows(self) -> list[Along]:
        return [row for rows in self._by_finding.values() for row in rows if row.tested]

    def panels(self, finding: Finding[Any]) -> list[EffectPanel]:
        return [panel for panel in (each.panel for each in self.claims(finding)) if panel is not None]

    @cached_property
    def shown(self) -> list[Finding[Any]]:
        """Return the findings of which some claim is tested in some model."""
        return [finding for finding in FINDINGS if any(each.tested for each in self.claims(finding))]

    @property
    def changes(self) -> list[Change]:
        """Return what each change does to the claims; nothing without results of the reference."""
        reference = self.series.reference
        if reference is None or reference not in [member.place for member in self.members]:
            return []
        return [change(self.rows, reference, one.place) for one in self.members if one.place != reference]

    @cached_property
    def seed_changes(self) -> list[Change]:
        """Return what another seed alone does to the claims, for each but the reference's own."""
        base = next((one for one in self.members if one.place == self.series.reference), None)
        if base is None:
            return []
        others = [
            SeriesMember(f"another seed ({one.place})", one.model, one.judged)
            for one in self.seeds
            if one.model.name != base.model.name
        ]
        rows = [Along(rule, self.series, (base, *others)) for finding in FINDINGS for rule in finding.rules]
        return [change(rows, base.place, one.place) for one in others]

    @property
    def comparable(self) -> list[Along]:
        return [row for row in self.rows if len(row.tested) > 1]

    @property
    def ends(self) -> bool:
        """Return whether its first place and its last have results: where a training starts, and what it comes to."""
        return [self.members[0].place, self.members[-1].place] == [self.places[0], self.places[-1]]

    @property
    def half_fallen(self) -> Place | None:
        """Return the first step by which half of the loss's fall is done, None where that isn't known."""
        if self.losses is None or not self.ends:
            return None
        first, last = self.losses.rows[0].mean, self.losses.rows[-1].mean
        fallen = (row.place for row in self.losses.rows if row.mean <= (first + last) / 2)
        return next(fallen, None) if first > last else None

    @property
    def emergence(self) -> dict[str, list[Along]]:
        """Return the claims that hold at the last step, by since when they have done so without interruption.

        `always` from the first step on; `late` at every step that can test them, which the first can't; the others
        since `before` the step by which half of the loss's fall is done, or since that or `after`. And those that
        hold at no step that can test them, `never`.
        """
        found: dict[str, list[Along]] = {
            kind: [] for kind in ("always", "late", "before", "after", "unknown", "never")
        }
        for row in self.rows:
            if row.never_holds:
                found["never"].append(row)
            if row.final_verdict is not None and row.final_verdict.verdict == "holds" and row.final_verdict.at_end:
                found[self._since(row.final_verdict)].append(row)
        return found

    def _since(self, final: FinalVerdict) -> str:
        if final.throughout:
            return "always" if final.from_start else "late"
        if self.half_fallen is None:
            return "unknown"
        return "before" if self.places.index(final.place) < self.places.index(self.half_fallen) else "after"


def write_series(
    registry: Registry,
    store: Store,
    staging: Staging,
    templates: jinja2.Environment,
    pages: Sequence[ModelPage],
    shown_here: Sequence[ModelPage],
) -> list[SeriesPage]:
    """Write the page of every series, with its figures, and the list of them.

    `pages` are models with a page of their own, `shown_here` those that are shown on the page of a series.
    """
    found = list(series_pages(registry, store))
    by_name = {page.name: page for page in (*pages, *shown_here)}
    for one in found:
        name = one.series.name
        drawn_in = [] if one.series.along == "step" else one.shown
        text = templates.get_template("series.md.j2").render(
            root="../../",
            one=one,
            pictures={each.name: _effects(one, each, staging) for each in drawn_in if one.panels(each)},
            curves=shown_curves(name, one.members, one.axis, staging),
            emergence=_emergence(one, staging),
            losses=_losses(one, staging),
            with_page={page.name for page in pages},
            shown=[by_name[each.model.name] for each in one.members if each.model.name in by_name],
        )
        staging.write(f"series/{name}.md", text)
    return found


def _effects(one: SeriesPage, finding: Finding[Any], staging: Staging) -> DrawnFile:
    return _drawn_along(one, finding.name, one.panels(finding), staging)


def _drawn_along(one: SeriesPage, name: str, panels: Sequence[EffectPanel], staging: Staging) -> DrawnFile:
    drawn = {point.place for panel in panels for point in panel.points}
    places = [place for place in one.places if place in drawn]
    return _drawn(one, name, along.draw_along, (panels, places, one.axis), staging)


def _losses(one: SeriesPage, staging: Staging) -> DrawnFile | None:
    if one.losses is None or one.series.along == "step":  # those are above when verdicts settle
        return None
    points = [EffectPoint(row.place, row.mean, row.interval, "", None) for row in one.losses.rows]
    panel = EffectPanel("", one.losses.unit, tuple(points), None)  # the page says what it is
    return _drawn_along(one, "losses", [panel], staging)


def _emergence(one: SeriesPage, staging: Staging) -> DrawnFile | None:
    if one.series.along != "step" or not one.ends:
        return None
    named = [_line(row, finding) for finding in one.shown for row in one.claims(finding) if row.tested]
    lines = [line for line in named if line is not None]
    if not lines:
        return None
    fall = [(row.place, row.mean) for row in one.losses.rows] if one.losses else []
    unit = one.losses.unit if one.losses else ""
    return _drawn(one, "emergence", along.draw_emergence, (lines, fall, unit), staging)


def _line(row: Along, finding: Finding[Any]) -> VerdictLine | None:
    if row.final_verdict is None or not isinstance(row.final_verdict.place, int):
        return None
    verdicts = tuple((member.place, claim.verdict) for member, claim in row.tested if isinstance(member.place, int))
    return VerdictLine(f"{finding.title}: {row.rule.short}", row.final_verdict.place, verdicts)


def _drawn(one: SeriesPage, name: str, draw: Any, drawn_from: tuple[Any, ...], staging: Staging) -> DrawnFile:
    return drawn(f"figures/series/{one.series.name}/{name}", (name, drawn_from), partial(draw, *drawn_from), staging)


def series_pages(registry: Registry, store: Store) -> Iterator[SeriesPage]:
    """Yield what the page of every series is made from, if there are results of two of its models.

    Raises InputError: what is known of a model is damaged.
    """
    for one in registry.series:
        members, absent = _members(registry, one, store)
        if len(members) < 2:
            continue
        everyone = registry.members(one)
        of_seeds = registry.find_series(one.seeds) if one.seeds else None
        seeds = _members(registry, of_seeds, store)[0] if of_seeds else ()
        places = tuple(place for place, _ in everyone)
        yield SeriesPage(one, places, members, absent, losses(everyone, members), seeds)


def series_of(model: Model, registry: Registry, store: Store) -> list[Series]:
    """Return the series with a page that a model of `models.yml` is in.

    Raises InputError: what is known of a model is damaged.
    """
    named = [one for one in registry.series if model.name in [member.model for member in one.members]]
    return [
        one for one in named if sum(store.model(other.name) is not None for _, other in registry.members(one)) > 1
    ]


def _members(
    registry: Registry, series: Series, store: Store
) -> tuple[tuple[SeriesMember, ...], tuple[tuple[Place, Model], ...]]:
    judged = [(place, model, judged_model(store, model.name)) for place, model in registry.members(series)]
    members = tuple(SeriesMember(place, model, found) for place, model, found in judged if found is not None)
    return members, tuple((place, model) for place, model, found in judged if found is None)
