"""What the home page shows first: the curve of positions in every model that has one, beside one of chance."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from generators.drawing import small_multiples
from generators.drawing.interactive import Rows
from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.site.learned import FIRST
from generators.site.pictures import DrawnFile, Picture, drawn
from generators.site.staging import Staging
from generators.site.view import ModelPage, Section

MOST = 7  # models that are shown; the finding's page has all
CHANCE = "chance"


@dataclass(frozen=True)
class HomeCurve:
    """One model's curve, or the curve of chance (without a model) that is as smooth as that of the model `like`."""

    picture: DrawnFile
    page: ModelPage | None
    section: Section | None
    like: ModelPage | None = None


@dataclass(frozen=True)
class HomeCurves:
    """The curves of a finding; `more` models have one and are not shown."""

    finding: Finding[object]
    curves: tuple[HomeCurve, ...]
    more: int


def home_curves(pages: Sequence[ModelPage], staging: Staging) -> HomeCurves | None:
    """Draw the curve that the first finding with one shows, of each model; None where there is none."""
    finding = next((one for one in FINDINGS if one.facts.curve is not None and one.facts.by_chance is not None), None)
    if finding is None:
        return None
    found = list(_drawn_of(finding, pages))
    made = []
    for page, section, picture in found[:MOST]:
        curve = _curve(picture, staging)
        if curve is not None:
            made.append(HomeCurve(_draw(page.name, curve, staging), page, section))
    made += _by_chance(finding, [page for page, _, _ in found], staging)
    return HomeCurves(finding, tuple(made), max(0, len(found) - MOST)) if made else None


def _drawn_of(finding: Finding[object], pages: Sequence[ModelPage]) -> Iterator[tuple[ModelPage, Section, Picture]]:
    """Yield the models with the figure of the curve; the first model before all others."""
    for page in sorted(pages, key=lambda page: page.name != FIRST):
        section = next((one for one in page.sections if one.finding.name == finding.name), None)
        if section is not None and section.record.status == "computed" and section.signature is not None:
            yield page, section, section.signature


def _curve(picture: Picture, staging: Staging) -> Rows | None:
    path = staging.folder / (picture.data or "")
    if not path.is_file():
        return None
    rows = json.loads(path.read_text("utf-8"))["rows"][0]
    return Rows("", rows["first"], np.array(rows["points"], dtype=np.float64).T)


def _by_chance(finding: Finding[object], pages: Sequence[ModelPage], staging: Staging) -> Iterator[HomeCurve]:
    for page in pages:
        if page.name == FIRST and finding.facts.by_chance is not None:
            points = np.asarray(finding.facts.by_chance(page.measured[finding.name]), dtype=np.float64)
            yield HomeCurve(_draw(CHANCE, Rows("", 1, points), staging), None, None, page)


def _draw(name: str, curve: Rows, staging: Staging) -> DrawnFile:
    made_from = curve.first, np.ascontiguousarray(curve.points).tobytes(), name == CHANCE
    draw = partial(small_multiples.draw_single, curve, grey=name == CHANCE)
    return drawn(f"figures/home/{name}", made_from, draw, staging)
