"""Helix: do the position embeddings lie on a curve that winds?

Observed by Adam Yedidia, "GPT-2's positional embedding matrix is a helix" (LessWrong, 2023); low rank by James
Simon, "Insights into GPT-2's positional encodings" (2024).
"""

from generators.findings.contract import Finding
from generators.findings.helix import claims, figures, measure
from generators.findings.wording import words_of

FINDING = Finding(
    name="helix",
    words=words_of(__name__),
    needs=("position_embedding",),
    uses=("token_embedding",),
    config=("positions",),
    metrics=measure.HelixMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="helix",
    version=3,
)
