"""What is claimed of candidates for under-trained tokens: rules, numbers and sentences."""

from generators.findings.contract import Chance, Measurements, Rule, Tested
from generators.findings.undertrained.measure import PERCENTILE, Metrics

SHARE = 0.8  # of the candidates


def _unspeakable(measured: Measurements[Metrics]) -> Tested:
    from scipy.stats import binom, binomtest

    m = measured.metrics
    expected = PERCENTILE / 100
    found = binomtest(m["below"], m["candidates"]).proportion_ci(method="wilson")
    limit = float(binom.ppf(0.99, m["candidates"], expected)) / m["candidates"]
    return Tested(
        m["below"] / m["candidates"],
        f"{m['below']} of {m['candidates']} candidates never get a probability above {m['threshold']:.2g}, which "
        f"19 in 20 of the {m['controls']} controls do somewhere.",
        chance=Chance("as many controls in place of candidates", expected, limit, m["controls"]),
        interval=(float(found.low), float(found.high)),
    )


RULES = (
    Rule(
        id="candidates-unspeakable",
        short="unspeakable",
        statement="Tokens that look under-trained are unspeakable.",
        value=f"share of candidates whose largest probability is below the controls' {PERCENTILE}th percentile",
        sense="at least",
        holds=SHARE,
        unit="of candidates",
        test=_unspeakable,
    ),
)
