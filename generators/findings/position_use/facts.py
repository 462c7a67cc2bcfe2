from generators.findings.facts import Facts, TextLoss
from generators.findings.position_use.measure import PositionUseMetrics


def loss(metrics: PositionUseMetrics) -> TextLoss:
    base, ran = metrics["base"], metrics["ran"]
    return TextLoss(ran["text"], ran["text_sha256"], metrics["unit"], base["mean"], (base["low"], base["high"]))


FACTS = Facts(teaser="exact-positions", loss=loss)
