from dataclasses import dataclass

from generators.findings.judging import Evidence, claim
from generators.findings.outliers.clump import FEWEST_MEMBERS
from generators.findings.outliers.measure import OutliersMetrics
from generators.findings.outliers.members import ClumpMetrics

FEWEST_KNOWN = 10  # known unused tokens needed to decide what the cluster is
MOST_OF_THEM = 0.5  # share of them the cluster must hold


@dataclass(frozen=True)
class Known:
    """Tokens that are known to be unused, and how many of them are in the cluster.

    `most_often` is the largest count of any token in the cluster, None where they are known by their names.
    """

    tokens: int
    in_clump: int
    most_often: int | None = None

    @property
    def among(self) -> bool:
        """Return whether the cluster holds at least half of them."""
        return self.tokens > 0 and self.in_clump >= MOST_OF_THEM * self.tokens

    @property
    def elsewhere(self) -> bool:
        """Return whether there are enough to see that something else clusters."""
        return self.tokens >= FEWEST_KNOWN and self.in_clump < MOST_OF_THEM * self.tokens


def known(m: OutliersMetrics, clump: ClumpMetrics) -> Known | None:
    """Return which tokens are known to be unused: by counts of the training text, else by their names."""
    counted, named = m["known_unused"], clump["named_unused"]
    if counted is not None:
        return Known(counted["count"], counted["in_clump"], counted["largest_count_in_clump"])
    if named is not None and named["tokens"]:
        return Known(named["tokens"], named["in_clump"])
    return None


@claim("clump", holds=FEWEST_MEMBERS, partly=FEWEST_MEMBERS, fewest_known=FEWEST_KNOWN)
def huddle(m: OutliersMetrics) -> Evidence:
    if m["clump"] is None:
        return Evidence(None, chance=m["chance"]["clump"])
    unused = known(m, m["clump"])
    return Evidence(
        m["clump"]["size"],
        {"unused": unused},
        chance=m["chance"]["clump"],
        extra_condition_met=unused is not None and unused.among,
        partly_condition_met=unused is None or not unused.elsewhere,
    )


RULES = (huddle,)
