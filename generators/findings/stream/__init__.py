"""Stream: how far into the model do positions last, on what curve, and apart from what the text says?

The decomposition into means over contexts and over positions follows Song and Zhong, "Uncovering hidden geometry in
Transformers via disentangling position and context" (2023, arXiv 2310.04861).
"""

from generators.findings.contract import Finding
from generators.findings.inputs import RUN
from generators.findings.stream.claims import RULES
from generators.findings.stream.facts import FACTS
from generators.findings.stream.figures import figures
from generators.findings.stream.measure import WINDOWS, StreamMetrics, measure

FINDING = Finding(
    name="stream",
    title="Positions in the stream",
    order=130,
    needs=(RUN,),
    uses=("position_embedding",),
    config=("n_layer", "d_model"),
    metrics=StreamMetrics,
    measure=measure,
    rules=RULES,
    figures=figures,
    facts=FACTS,
    signature="stream-curves",
    passes=WINDOWS,
)
