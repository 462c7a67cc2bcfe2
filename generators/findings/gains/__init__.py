"""Gains: do the norms dial the position channels down, and does ln2 single out one channel?

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights": layer-0 gains dial position channels down,
and channel 138 stands out in most LN2 layers.
"""

from generators.findings.contract import Finding
from generators.findings.gains.claims import RULES
from generators.findings.gains.facts import FACTS
from generators.findings.gains.figures import figures
from generators.findings.gains.measure import GainsMetrics, measure

FINDING = Finding(
    name="gains",
    title="Gains",
    order=30,
    needs=("blocks.*.ln2.gain",),
    uses=("blocks.*.ln1.gain", "position_embedding", "token_embedding"),
    config=("n_layer",),
    metrics=GainsMetrics,
    measure=measure,
    rules=RULES,
    figures=figures,
    facts=FACTS,
    signature="gains-ln2",
)
