from dataclasses import dataclass

from generators.base.sentences import many
from generators.base.text import two
from generators.findings.judging import Rule, Tested
from generators.findings.measured import Measurements
from generators.findings.nulls import chance
from generators.findings.outliers.clump import FEWEST_MEMBERS
from generators.findings.outliers.measure import OutliersMetrics
from generators.findings.outliers.members import ClumpMetrics

FEWEST_KNOWN = 10  # known unused tokens needed to decide what the cluster is
MOST_OF_THEM = 0.5  # share of them the cluster must hold


@dataclass(frozen=True)
class Known:
    """Tokens that are known to be unused, how many of them are in the cluster, and how they are known."""

    tokens: int
    in_clump: int
    how: str
    most_often: int | None = None  # largest count of any token in the cluster, if counted

    @property
    def among(self) -> bool:
        """Return whether the cluster holds at least half of them."""
        return self.tokens > 0 and self.in_clump >= MOST_OF_THEM * self.tokens

    @property
    def elsewhere(self) -> bool:
        """Return whether there are enough to see that something else clusters."""
        return self.tokens >= FEWEST_KNOWN and self.in_clump < MOST_OF_THEM * self.tokens


def known(metrics: OutliersMetrics, clump: ClumpMetrics) -> Known | None:
    """Return which tokens are known to be unused: by counts of the training text, else by their names."""
    counted, named = metrics["known_unused"], clump["named_unused"]
    if counted is not None:
        never = "that never occur in the training text"
        return Known(counted["count"], counted["in_clump"], never, counted["largest_count_in_clump"])
    if named is not None and named["tokens"]:
        return Known(named["tokens"], named["in_clump"], "named as unused")
    return None


def _huddle(measured: Measurements[OutliersMetrics]) -> Tested:
    m = measured.metrics
    clump, null = m["clump"], chance(m["chance"]["clump"])
    if clump is None:
        crowded = many(m["crowded"], "token") if m["crowded"] else "no token"
        answer = (
            f"There is no cluster of {FEWEST_MEMBERS} tokens: {crowded} {'have' if m['crowded'] > 1 else 'has'} nine "
            f"others within {two(m['typical_distance'] / 2)}, which is half the typical distance from a token to its "
            f"nearest neighbor."
        )
        return Tested(None, answer, chance=null)
    sure = known(m, clump)
    answer = (
        f"{clump['size']:,} tokens lie within {two(clump['radius'])} of one spot; a token's nearest neighbor is "
        f"typically {two(m['typical_distance'])} away. {_what_is_known(clump['size'], sure)}. At least "
        f"{FEWEST_MEMBERS} tokens are needed."
    )
    return Tested(
        clump["size"],
        answer,
        chance=null,
        extra_condition_met=sure is not None and sure.among,
        partly_condition_met=sure is None or not sure.elsewhere,
    )


def _what_is_known(size: int, sure: Known | None) -> str:
    if sure is None:
        return "Nothing shows whether they are unused, so the claim holds partly at most"
    if not sure.tokens:
        return f"The training text contains every token, none of these more than {many(sure.most_often or 0, 'time')}"
    of_them = "All" if sure.in_clump == sure.tokens else f"{sure.in_clump} of the"
    found = f"{of_them} {sure.tokens} tokens {sure.how} are among them"
    if sure.elsewhere:
        return f"Only {found}, so the cluster is something else"
    rest = size - sure.in_clump
    if not rest:
        return f"{found}, and no other"
    if sure.most_often is not None:
        times = "once" if sure.most_often == 1 else many(sure.most_often, "time")
        if rest == 1:
            return f"{found}; the one other member occurs {times}"
        return f"{found}; the other {rest} occur {'' if times == 'once' else 'at most '}{times} each"
    return f"{found}; their location suggests that the other {rest} were hardly trained either"


RULES = (
    Rule(
        id="clump",
        short="cluster",
        statement="Unused tokens form a cluster.",
        value="tokens in the cluster",
        holds=FEWEST_MEMBERS,
        partly=FEWEST_MEMBERS,
        unit="tokens",
        also="and at least half of the tokens known to be unused; partly where none are known, or fewer than "
        f"{FEWEST_KNOWN} and most of them elsewhere",
        test=_huddle,
    ),
)
