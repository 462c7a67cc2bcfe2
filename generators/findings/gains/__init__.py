"""Gains: do the norms dial the position channels down, and does ln2 single out one channel?

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights": layer-0 gains dial position channels down,
and channel 138 stands out in most LN2 layers.
"""

from generators.findings.contract import Finding
from generators.findings.gains import claims, figures, measure
from generators.findings.sizes import ENTERING
from generators.findings.wording import words_of

FINDING = Finding(
    name="gains",
    words=words_of(__name__),
    needs=("blocks.*.ln2.gain",),
    uses=("blocks.*.ln1.gain", "position_embedding", "token_embedding", *ENTERING),
    config=("n_layer",),
    metrics=measure.GainsMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="gains-ln2",
    version=3,
)
