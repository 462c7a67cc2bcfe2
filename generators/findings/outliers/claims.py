from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from generators.base.text import two
from generators.findings import facts
from generators.findings.judging import Evidence, claim
from generators.findings.measured import Measurements
from generators.findings.outliers.clump import FEWEST_MEMBERS, spread
from generators.findings.outliers.measure import OutliersMetrics
from generators.findings.outliers.members import ClumpMetrics, PlacedRow
from generators.findings.token_cells import TokenCells

NEVER = frozenset(f"{byte:02x}" for byte in (0xC0, 0xC1, *range(0xF5, 0x100)))  # bytes that no UTF-8 text contains
FEWEST_KNOWN = 10  # known unused tokens needed to decide what the cluster is
MOST_OF_THEM = 0.5  # share of them the cluster must hold


@dataclass(frozen=True)
class Known:
    """Tokens that are known to be unused, and how many of them are in the cluster.

    `what` they are called; `most_often` is the largest count of any token in the cluster, None without counts.
    """

    what: str
    tokens: int
    in_clump: int
    most_often: int | None = None

    @property
    def elsewhere(self) -> bool:
        return self.tokens >= FEWEST_KNOWN and self.in_clump < MOST_OF_THEM * self.tokens


def known(measured: Measurements[OutliersMetrics], clump: ClumpMetrics) -> Known | None:
    """Return which tokens are known to be unused: by counts of its text, by name, or as impossible bytes."""
    counted, named = measured.metrics["known_unused"], clump["named_unused"]
    if counted is not None:
        what = "that never occur in the training text"
        return Known(what, counted["count"], counted["in_clump"], counted["largest_count_in_clump"])
    if named is not None and named["tokens"]:
        return Known("named as unused", named["tokens"], named["in_clump"])
    inside = {row["raw_bytes"] for row in facts.rows(measured, "members", PlacedRow)} & NEVER
    if len(inside) < FEWEST_KNOWN:
        return None
    return Known("for bytes that no UTF-8 text contains", len(NEVER), len(inside))


@claim("clump", holds=FEWEST_MEMBERS, partly=FEWEST_MEMBERS, fewest_known=FEWEST_KNOWN, with_arrays=True)
def huddle(measured: Measurements[OutliersMetrics]) -> Evidence:
    m = measured.metrics
    if m["clump"] is None:
        return Evidence(None, chance=m["chance"]["clump"])
    unused = known(measured, m["clump"])
    among = unused is not None and unused.in_clump >= max(MOST_OF_THEM * unused.tokens, 1)
    return Evidence(
        m["clump"]["size"],
        {"unused": unused},
        chance=m["chance"]["clump"],
        extra_condition_met=among,
        partly_condition_met=unused is None or not unused.elsewhere,
    )


SAMPLES = (
    ("ids", "norm", "token_name"),
    ("member_ids", "member_norm", "member_name"),
    ("around_ids", "", "around_name"),
)


def tokens(found: Measurements[OutliersMetrics], count: int | None) -> Iterator[facts.Fact]:
    m, arrays = found.metrics, found.arrays
    yield facts.EntityCount(m["n_tokens"])
    for ids, norm, name in SAMPLES:
        yield facts.EntityNames(facts.by_id(arrays.get(ids), arrays.get(name)) or {})
        norms = facts.by_id(arrays.get(ids), arrays.get(norm))
        yield facts.EntityNumbers(facts.TOKEN_NORM, norms, "outlier-norms", "largest")
    yield facts.EntityNumbers("distance to the nearest other token", _nearest(found))
    if (clump := m["clump"]) is not None:
        which = f"the cluster of {len(clump['members'])} tokens (radius {two(clump['radius'])})."
        yield facts.EntityGroup(f"In {which}", f"Not in {which}", clump["members"])
        placed = [row for name in ("members", "surroundings") for row in facts.rows(found, name, PlacedRow)]
        distances = {row["id"]: row["distance"] for row in placed}
        yield facts.EntityNumbers("distance from the cluster's center", distances)
    unused = [row["id"] for row in facts.rows(found, "known_unused", TokenCells)]
    if m["known_unused"] is not None and m["known_unused"]["count"] == len(unused):
        never, some = "It never occurs in the training text.", "It occurs in the training text."
        yield facts.EntityGroup(never, some, unused)


def _nearest(found: Measurements[OutliersMetrics]) -> dict[int, float]:
    arrays, nearest = found.arrays, found.arrays.get("nearest", np.zeros(0))
    distances = facts.by_id(spread(found.metrics["n_tokens"], len(nearest)), nearest) or {}
    if "member_nearest" in arrays:
        distances |= facts.by_id(arrays["around_ids"][arrays["around_is_member"]], arrays["member_nearest"]) or {}
    return distances


FACTS = facts.Facts(entities={"token": tokens}, stories=(facts.Story("clump", "outlier-norms", 40),))
