"""Anchor: what do heads, channels and the loss owe to the first token?

Asked by Xiao et al., "Efficient streaming language models with attention sinks" (2023), and Sun et al., "Massive
activations in large language models" (2024).
"""

from generators.findings.anchor import claims, figures, measure
from generators.findings.contract import Finding
from generators.findings.inputs import RUN, TOKENS
from generators.findings.wording import words_of

FINDING = Finding(
    name="anchor",
    version=2,
    words=words_of(__name__),
    needs=(RUN,),
    uses=("position_embedding", TOKENS),
    config=("n_layer", "n_head", "d_model", "causal"),
    metrics=measure.AnchorMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="anchor-heads",
    passes=measure.PASSES,
)
