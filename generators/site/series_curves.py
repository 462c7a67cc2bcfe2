"""The curves of positions along a series: small pictures of all, and what a slider over them is made from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from scipy.linalg import orthogonal_procrustes

from generators.base.plain import as_compact_json
from generators.base.text import number
from generators.checkpoint.registry import Place
from generators.drawing import small_multiples
from generators.drawing.interactive import Curve, Rows
from generators.findings import FINDINGS
from generators.findings.facts import FollowedCurve
from generators.findings.judging import NotMeasuredError
from generators.site.claims_along import SeriesMember
from generators.site.pictures import DrawnFile, drawn
from generators.site.staging import Staging

FEWEST_SHARED = 4  # positions that two curves need to have both, to be laid on one another
TURNED = ("axis 1", "axis 2", "axis 3")  # turned components are no principal ones any more


@dataclass(frozen=True)
class ShownCurves:
    """The curves of one kind on a series' page: the picture of all, where the slider's data are, who has none."""

    kind: FollowedCurve
    picture: DrawnFile
    data: str
    shown: tuple[Place, ...]
    without: tuple[Place, ...]


def shown_curves(name: str, members: Sequence[SeriesMember], axis: str, staging: Staging) -> list[ShownCurves]:
    """Draw the curves of every kind that two models of a series or more have, and write what a slider needs."""
    made = []
    for kind in (finding.facts.curve for finding in FINDINGS):
        if kind is None:
            continue
        found = [(member.place, curve) for member in members if (curve := curve_of(member, kind)) is not None]
        if len(found) < 2:
            continue
        places = tuple(place for place, _ in found)
        without = tuple(member.place for member in members if member.place not in places)
        path = f"data/series/{name}/{kind.name}.json"
        staging.write(path, as_compact_json(turned_onto_one_another(found, axis).as_json()))
        made.append(ShownCurves(kind, _picture(name, kind, found, staging), path, places, without))
    return made


def curve_of(member: SeriesMember, kind: FollowedCurve) -> Curve | None:
    """Return a model's curve as a figure of one range, None where it has none or it is a point."""
    judged = next((each for each in member.judged.findings if each.finding.facts.curve == kind), None)
    if judged is None or judged.measured is None:
        return None
    try:
        figures: Any = judged.finding.figures(judged.measured)
        made = next((figure.interactive for figure in figures if figure.name == kind.figure), None)
        curve = made() if made is not None else None
    except NotMeasuredError:
        return None
    if not isinstance(curve, Curve):
        return None
    rows = curve.rows[curve.start]
    if not np.isfinite(rows.points).all() or not np.ptp(rows.points, axis=0).any():
        return None
    return replace(curve, rows=(rows,), start=0)


def turned_onto_one_another(found: Sequence[tuple[Place, Curve]], axis: str) -> Curve:
    """Return curves with a slider over models; each is turned to lie on the one before it, if both are long.

    They may differ in length: the positions that both have decide.
    """
    rows: list[Rows] = []
    for place, curve in found:
        one = curve.rows[0]
        points = one.points - one.points.mean(axis=0)
        if rows:
            points = points @ _turn(replace(one, points=points), rows[-1])
        rows.append(replace(one, name=number(place), points=points, shares=None))
    longest = max((curve for _, curve in found), key=lambda curve: curve.rows[0].first + len(curve.rows[0].points))
    return Curve(tuple(rows), longest.colourings[:1], slider=axis.capitalize(), axes=TURNED)


def _turn(rows: Rows, onto: Rows) -> Float[Array, "3 3"]:
    begin = max(rows.first, onto.first)
    end = min(rows.first + len(rows.points), onto.first + len(onto.points))
    if end - begin < FEWEST_SHARED:
        return np.eye(3)
    ours, theirs = (each.points[begin - each.first : end - each.first] for each in (rows, onto))
    return np.asarray(orthogonal_procrustes(ours - ours.mean(axis=0), theirs - theirs.mean(axis=0))[0])


def _picture(name: str, kind: FollowedCurve, found: Sequence[tuple[Place, Curve]], staging: Staging) -> DrawnFile:
    curves = [replace(curve.rows[0], name=number(place)) for place, curve in found]
    content = [(one.name, one.first, np.ascontiguousarray(one.points).tobytes()) for one in curves]
    path = f"figures/series/{name}/{kind.name}"
    return drawn(path, content, partial(small_multiples.draw_small_multiples, curves), staging)
