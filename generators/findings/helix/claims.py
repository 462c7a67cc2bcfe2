from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.base.text import share, two
from generators.findings.facts import EntityCount, EntityNote, EntityNumbers, Fact, Facts, FollowedCurve, Story
from generators.findings.helix.measure import LATE, HelixMetrics, StoredPlane
from generators.findings.helix.trained import FEWEST, Seam, Trained
from generators.findings.judging import Evidence, Untested, beyond_chance, claim, clearly_beyond
from generators.findings.measured import Measurements, StoredChance
from generators.findings.nulls import strictest
from generators.maths.curve import FEWEST_FOR_START, OUTLIER_FACTOR, principal_scores
from generators.maths.curve_statistics import TOP_ENERGY
from generators.maths.surrogates import smooth_curve
from generators.maths.turning import JUDGED_OFFSETS

LEAST_BEYOND = 0.05  # of the way from chance to all of the variance
HELIX_BEYOND = 0.5  # the same, where the curve is a helix if it winds
FEWEST_TURNS = 1.0
STEADY = 1 / 3  # net angle over summed steps: two steps on for each one back; rows in any order have 1 / sqrt(n)
SMOOTH = 0.5  # correlation of neighbors below which rows form no curve
ALL = 1 - 1e-6  # share of the variance
EXACTLY_EVEN = 1e-5  # std/mean; norms that differ by rounding only
ROUNDED_EVEN = 1e-3  # the least that chance is taken for, where no jump differs by more than rounding
LOW_RANK, LOW_RANK_PARTLY = 0.99, 0.95  # share of energy
TIMES = 2.0  # by which the last rows are shorter or longer
JUMP = 0.10  # of norms or steps
JUMP_TIMES = 2.5  # the median of chance; the larger of two series is judged, so their 99th percentile isn't enough
UNLIKE = 0.5  # mean cosine of neighbors up to which rows are as unlike as untrained ones
LOW_RANK_FACTOR = 1.5  # multiple of the energy of Gaussian rows


@claim("three-components", form=share, least=LEAST_BEYOND, helix=HELIX_BEYOND)
def three_components(m: HelixMetrics) -> Evidence | Untested:
    chance = strictest(m["chance"]["explained_variance_3d"].values())
    if chance is None:
        return Untested("no-curves")
    ranges, kept, median = m["explained_variance_3d"], m["explained_variance_3d_kept"], chance["median"]
    needed = max(median + LEAST_BEYOND * (1 - median), clearly_beyond(chance))

    def of(value: float) -> Evidence:
        return Evidence(value, chance=chance, holds_at=needed, extra_condition_met=kept > needed)

    return replace(
        of(ranges["no_first"]),
        said={"needed": needed, "beyond": beyond_chance(ranges["no_first"], median)},
        interval=m["intervals"]["explained_variance_3d"],
        otherwise={"with row 0": of(ranges["all"])},
        choice="whether row 0 counts",
    )


def winding_planes(m: HelixMetrics) -> list[StoredPlane]:
    """Return the planes that wind more than the strongest one of a random curve does, strongest first."""
    null = strictest(m["chance"]["winding"].values())
    return [plane for plane in m["planes"] if null is None or plane["winding"] > null["limit"]]


def winds(m: HelixMetrics) -> bool:
    planes = winding_planes(m)
    return m["sines"] is not None or (m["winding"] >= FEWEST_TURNS and bool(planes) and _steady(planes[0]))


def _steady(plane: StoredPlane) -> bool:
    return plane["steadiness"] >= STEADY


@claim("winding", holds=FEWEST_TURNS, form="{:.2f}")
def winding(m: HelixMetrics) -> Evidence | Untested:
    if m["sines"] or m["by_formula"]:
        return Untested("circles" if m["sines"] else "computed-curve")
    null, interval = strictest(m["chance"]["winding"].values()), m["intervals"]["winding"]
    if not m["planes"] or null is None:
        return Evidence(0.0, {"plane": None}, chance=null, interval=interval, form="")
    plane, steady = m["planes"][0], _steady(m["planes"][0])
    return Evidence(
        m["winding"],
        {"plane": plane, "steady": steady, "others": winding_planes(m)[1:]},
        chance=null,
        interval=interval,
        partly_at=null["limit"],
        extra_condition_met=steady,
    )


@claim(
    "fraying",
    form=lambda *values: f"{two(*(100 * each for each in values))} points",
    late=LATE,
    smooth=SMOOTH,
    fewest=FEWEST_FOR_START,
)
def fraying(m: HelixMetrics) -> Evidence | Untested:
    if m["sines"] or m["by_formula"]:
        return Untested("computed-curve")
    null = strictest(m["chance"]["fraying"].values())
    if m["fraying"] is None or null is None:
        return Untested("few-positions")
    if m["explained_variance_3d"]["no_first"] >= ALL:
        return Untested("no-fraying")
    smooth = m["smoothness"]["lag_one"] >= SMOOTH
    return Evidence(
        m["fraying"],
        chance=null,
        interval=m["intervals"]["fraying"],
        holds_at=null["limit"],
        extra_condition_met=smooth,
    )


@claim("first-position", holds=OUTLIER_FACTOR, form=two)
def first_position(m: HelixMetrics) -> Evidence | Untested:
    if m["sines"] or m["by_formula"]:
        return Untested("even-steps")
    null = strictest(m["chance"]["first_position_distance"].values())
    return Evidence(m["first_position_distance"], chance=null, interval=m["intervals"]["first_position_distance"])


@claim("constant-norms", sense="at most", holds=0.05, partly=0.10, form=share)
def constant_norms(m: HelixMetrics) -> Evidence | Untested:
    if m["sines"] or m["by_formula"]:
        return Untested("computed-curve")
    value, null = m["norm_cv"], strictest(m["chance"]["norm_cv"].values(), "at most")
    if m["explained_variance_3d"]["late"] is None and m["n_positions"] >= FEWEST_FOR_START:
        return Untested("equal")
    if null is None or value <= EXACTLY_EVEN:
        return Evidence(value, form="")
    return Evidence(value, chance=null, interval=m["intervals"]["norm_cv"])


@claim("look-back", holds=0.5, partly=0.25, form=lambda *values: f"a reduction of {share(*values)}")
def look_back(m: HelixMetrics) -> Evidence | Untested:
    value, null = m["median_gain"], strictest(m["chance"]["median_gain"].values())
    if value is None or null is None:
        return Untested("short-run")
    looks = [look for look in m["look_back"] if look["k"] in JUDGED_OFFSETS]
    signs = {value >= 0, *(look["gain"] >= 0 for look in looks)}
    said = {"looks": looks, "signs": signs, "most": max(look["translation_gain"] for look in looks)}
    return Evidence(value, said, chance=null, interval=m["intervals"]["median_gain"])


@claim("low-rank", holds=LOW_RANK, partly=LOW_RANK_PARTLY, form=share, top=TOP_ENERGY, factor=LOW_RANK_FACTOR)
def low_rank(m: HelixMetrics) -> Evidence | Untested:
    null = strictest(m["chance"]["energy_top30"].values())
    least = LOW_RANK_FACTOR * (0.0 if null is None else null["median"])
    if least > 1:
        return Untested("no-room", {"chance": null})
    needed = max(LOW_RANK, least)
    return Evidence(
        m["energy_top30"],
        {"smooth_is_enough": m["beside"]["energy_top30_smooth"] >= min(needed, m["energy_top30"])},
        chance=null,
        interval=m["intervals"]["energy_top30"],
        holds_at=needed,
        partly_at=max(LOW_RANK_PARTLY, least),
    )


def _trained(m: HelixMetrics) -> Trained | Untested:
    """Return what breaks off in a learned curve; in rows as unlike each other as untrained ones nothing can."""
    found = m["trained"]
    if m["sines"] or m["by_formula"]:
        return Untested("computed")
    if found is None:
        return Untested("no-breaks")
    return found if found["tail"]["usual_cosine"] > UNLIKE else Untested("rough")


@claim("untrained-rows", holds=TIMES, partly=TIMES, form=two, unlike=UNLIKE, fewest=FEWEST)
def untrained_rows(m: HelixMetrics) -> Evidence | Untested:
    found = _trained(m)
    if isinstance(found, Untested):
        return found
    tail, count = found["tail"], m["n_positions"] - found["tail"]["first"]
    return Evidence(
        tail["factor"],
        {"tail": tail, "rows": count},
        chance=tail["chance"],
        extra_condition_met=tail["cosine"] <= UNLIKE,
        partly_condition_met=True,
    )


@claim("seam", form=share, jump=JUMP, times=JUMP_TIMES, fewest=FEWEST)
def seam(m: HelixMetrics) -> Evidence | Untested:
    found = _trained(m)
    if isinstance(found, Untested):
        return found
    clearest = max(found["seams"], key=lambda one: one["beyond"] / max(_by_chance(one)["limit"], ROUNDED_EVEN))
    null = _by_chance(clearest)
    return Evidence(clearest["beyond"], {"seam": clearest}, chance=null, holds_at=_least_jump(null))


def _by_chance(one: Seam) -> StoredChance:
    return max(one["chance"].values(), key=lambda null: null["limit"])


def _least_jump(null: StoredChance) -> float:
    return max(JUMP, JUMP_TIMES * null["median"])


def breaks(m: HelixMetrics) -> list[tuple[int, str]]:
    """Return the rows at which something breaks off beyond chance, each with what does."""
    found = _trained(m)
    if isinstance(found, Untested):
        return []
    nulls = [(one, _by_chance(one)) for one in found["seams"]]
    seams = [one for one, null in nulls if one["beyond"] > max(_least_jump(null), null["limit"])]
    at = [(one["at"], f"{one['series']} jump") for one in seams]
    tail = found["tail"]
    return [*at, (tail["first"], "last rows")] if tail["factor"] > max(TIMES, tail["chance"]["limit"]) else at


SEED = 0  # seed of the random curve shown for comparison


def positions(found: Measurements[HelixMetrics], count: int | None) -> Iterator[Fact]:
    yield EntityCount(found.metrics["n_positions"])
    yield EntityNumbers("norm of its embedding", found.arrays["norms"], "helix", "largest")
    steps = dict(enumerate(found.arrays["steps"].tolist()))
    yield EntityNumbers("distance to the next position", steps, order="largest")
    for position in found.metrics["outlier_positions"]:
        yield EntityNote(position, "It is far from the curve of the other positions.")


def by_chance(metrics: HelixMetrics) -> Float[Array, "n 3"]:
    """Return the leading components of smoothed noise whose neighbors correlate as those of P do."""
    noise = smooth_curve(metrics["n_positions"], metrics["smoothness"]["width"], np.random.default_rng(SEED))
    return principal_scores(noise, 3).values


FACTS = Facts(
    entities={"position": positions},
    stories=(Story("winding", "helix", 10), Story("untrained-rows", "norms", 20)),
    by_chance=by_chance,
    curve=FollowedCurve("curve", "helix", "The curve of P", "Position embeddings in three principal components"),
)
