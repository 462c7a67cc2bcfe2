"""Outliers: the longest and shortest tokens, the cluster of unused tokens, and what else looks untrained.

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights": a crowded spot in embedding space, a sort of
wastebasket for tokens that the model never saw. Candidates for under-trained tokens follow Land and Bartolo, "Fishing
for Magikarp" (2024).
"""

from generators.findings.contract import Finding
from generators.findings.inputs import FREQUENCIES, TOKENS
from generators.findings.outliers import claims, figures, measure
from generators.findings.wording import words_of

FINDING = Finding(
    name="outliers",
    words=words_of(__name__),
    needs=("token_embedding",),
    uses=("position_embedding", TOKENS, FREQUENCIES),
    config=("tied",),
    metrics=measure.OutliersMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="outlier-norms",
    version=2,
)
