from generators.base.text import share
from generators.findings.judging import Rule, Tested
from generators.findings.measured import Chance, Measurements
from generators.findings.undertrained.measure import SPEAKABLE, UndertrainedMetrics

SHARE = 0.8  # share of the candidates


def _unspeakable(measured: Measurements[UndertrainedMetrics]) -> Tested:
    from scipy.stats import binom, binomtest

    m = measured.metrics
    expected = m["others_unspeakable"] / m["others"]
    found = binomtest(m["unspeakable"], m["candidates"]).proportion_ci(method="wilson")
    limit = float(binom.ppf(0.99, m["candidates"], expected)) / m["candidates"]
    return Tested(
        m["unspeakable"] / m["candidates"],
        f"{m['unspeakable']} of {m['candidates']} candidates never reach a probability of {SPEAKABLE:.0%}; the "
        f"same is true of {m['others_unspeakable']} of {m['others']} random other tokens.",
        form=share,
        chance=Chance("other tokens in place of candidates (binomial)", expected, limit, m["others"]),
        interval=(float(found.low), float(found.high)),
    )


RULES = (
    Rule(
        id="candidates-unspeakable",
        short="unspeakable",
        statement="Tokens that look under-trained are unspeakable.",
        value=f"share of candidates whose largest probability stays below {SPEAKABLE:.0%}",
        holds=SHARE,
        unit="of candidates",
        over="over candidates",
        test=_unspeakable,
    ),
)
