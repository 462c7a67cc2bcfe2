"""What is claimed of outliers: one rule, and its sentences."""

from generators.findings.contract import Measurements, Rule, Tested
from generators.findings.outliers.clump import FEWEST_MEMBERS
from generators.findings.outliers.measure import Metrics
from generators.findings.outliers.members import ClumpMetrics


def _huddle(measured: Measurements[Metrics]) -> Tested:
    m = measured.metrics
    clump = m["clump"]
    if clump is None:
        answer = (
            f"No ten tokens huddle apart from the rest: {m['crowded']} of {m['n_tokens']} have nine others within "
            f"half the typical distance to the nearest, {m['typical_distance']:.3g}."
        )
        return Tested(None, answer, baseline=0.0)
    answer = (
        f"{clump['size']} tokens lie within {clump['radius']:.3g} of one spot, where a token's nearest neighbour is "
        f"typically {m['typical_distance']:.3g} away{_named_there(clump)}."
    )
    return Tested(clump["size"], answer, baseline=0.0)


def _named_there(clump: ClumpMetrics) -> str:
    named = clump["named_unused"]
    if not named or not named["tokens"]:
        return ""
    return f"; {named['in_clump']} of the {named['tokens']} tokens named as unused are among them"


RULES = (
    Rule(
        id="clump",
        short="clump",
        statement="Unused tokens huddle.",
        value="clump.size",
        sense="at least",
        holds=FEWEST_MEMBERS,
        unit="tokens",
        test=_huddle,
    ),
)
