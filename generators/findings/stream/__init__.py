"""Stream: how far into the model do positions last, on what curve, and apart from what the text says?

The decomposition into means over contexts and over positions follows Song and Zhong, "Uncovering hidden geometry in
Transformers via disentangling position and context" (2023, arXiv 2310.04861).
"""

from generators.findings.contract import Finding
from generators.findings.facts import Facts, FollowedCurve
from generators.findings.inputs import RUN
from generators.findings.stream import claims, figures, measure
from generators.findings.wording import words_of

FINDING = Finding(
    name="stream",
    words=words_of(__name__),
    version=4,
    needs=(RUN,),
    uses=("position_embedding",),
    config=("n_layer", "d_model"),
    metrics=measure.StreamMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=Facts(
        curve=FollowedCurve(
            "stream-curve",
            "stream-curves",
            "The curve in the stream",
            "The mean hidden state at every position, half way through the model, in its three principal components",
        ),
    ),
    signature="stream-curves",
    passes=measure.WINDOWS,
)
