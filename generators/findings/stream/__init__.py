"""Stream: how far into the model do positions last, on what curve, and apart from what the text says?

The decomposition into means over contexts and over positions follows Song and Zhong, "Uncovering hidden geometry in
Transformers via disentangling position and context" (2023, arXiv 2310.04861).
"""

from generators.findings.contract import Finding
from generators.findings.inputs import RUN
from generators.findings.stream import claims, facts, figures, measure

FINDING = Finding(
    name="stream",
    title="Positions in the stream",
    order=130,
    version=2,
    needs=(RUN,),
    uses=("position_embedding",),
    config=("n_layer", "d_model"),
    metrics=measure.StreamMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=facts.FACTS,
    signature="stream-curves",
    passes=measure.WINDOWS,
)
