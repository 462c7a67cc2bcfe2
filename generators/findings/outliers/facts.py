from collections.abc import Iterator

from generators.base.text import two
from generators.findings.facts import (
    TOKEN_NORM,
    EntityCount,
    EntityGroup,
    EntityNames,
    EntityNumbers,
    Fact,
    Facts,
    by_id,
    rows,
)
from generators.findings.measured import Measurements
from generators.findings.outliers.clump import spread
from generators.findings.outliers.measure import OutliersMetrics
from generators.findings.outliers.members import PlacedRow
from generators.findings.outliers.untrained import UnusedRow

SAMPLES = (
    ("ids", "norm", "token_name"),
    ("member_ids", "member_norm", "member_name"),
    ("around_ids", "", "around_name"),
)


def tokens(found: Measurements[OutliersMetrics], count: int | None) -> Iterator[Fact]:
    m, arrays = found.metrics, found.arrays
    yield EntityCount(m["n_tokens"])
    for ids, norm, name in SAMPLES:
        yield EntityNames(by_id(arrays.get(ids), arrays.get(name)) or {})
        yield EntityNumbers(TOKEN_NORM, by_id(arrays.get(ids), arrays.get(norm)), "outlier-norms", "largest")
    yield EntityNumbers("distance to the nearest other token", _nearest(found), "nearest-neighbours")
    if (clump := m["clump"]) is not None:
        which = f"the cluster of {len(clump['members'])} tokens (radius {two(clump['radius'])})."
        yield EntityGroup(f"In {which}", f"Not in {which}", clump["members"])
        placed = [row for name in ("members", "surroundings") for row in rows(found, name, PlacedRow)]
        distances = {row["id"]: row["distance"] for row in placed}
        yield EntityNumbers("distance from the cluster's center", distances, "clump")
    unused = [row["id"] for row in rows(found, "known_unused", UnusedRow)]
    if m["known_unused"] is not None and m["known_unused"]["count"] == len(unused):
        never, some = "It never occurs in the training text.", "It occurs in the training text."
        yield EntityGroup(never, some, unused)


def _nearest(found: Measurements[OutliersMetrics]) -> dict[int, float]:
    nearest, of_members = found.arrays.get("nearest"), found.arrays.get("member_nearest")
    around, inside = found.arrays.get("around_ids"), found.arrays.get("around_is_member")
    if nearest is None:
        return {}
    ids = spread(found.metrics["n_tokens"], len(nearest))
    distances = (by_id(ids, nearest) or {}) if len(ids) == len(nearest) else {}
    if around is not None and inside is not None and of_members is not None and inside.sum() == len(of_members):
        distances |= by_id(around[inside], of_members) or {}
    return distances


FACTS = Facts(entities={"token": tokens}, teaser="clump")
