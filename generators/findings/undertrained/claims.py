"""What is claimed of candidates for under-trained tokens: rules, numbers and sentences."""

from generators.findings.judging import Rule, Tested
from generators.findings.measured import Chance, Measurements
from generators.findings.undertrained.measure import PERCENTILE, UndertrainedMetrics

SHARE = 0.8  # of the candidates


def _unspeakable(measured: Measurements[UndertrainedMetrics]) -> Tested:
    from scipy.stats import binom, binomtest

    m = measured.metrics
    expected = PERCENTILE / 100
    found = binomtest(m["below"], m["candidates"]).proportion_ci(method="wilson")
    limit = float(binom.ppf(0.99, m["candidates"], expected)) / m["candidates"]
    return Tested(
        m["below"] / m["candidates"],
        f"Of the {m['candidates']} candidates {m['below']} get no probability above {m['threshold']:.2g} anywhere in "
        f"the text; of the {m['controls']} controls one in twenty gets none.",
        chance=Chance("controls in place of candidates (binomial)", expected, limit, m["controls"]),
        interval=(float(found.low), float(found.high)),
    )


RULES = (
    Rule(
        id="candidates-unspeakable",
        short="unspeakable",
        statement="Tokens that look under-trained are unspeakable.",
        value=f"share of candidates whose largest probability is below the controls' {PERCENTILE}th percentile",
        holds=SHARE,
        unit="of candidates",
        test=_unspeakable,
    ),
)
