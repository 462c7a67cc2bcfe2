"""Outliers: the longest and shortest tokens, the cluster of unused tokens, and what else looks untrained.

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights": a crowded spot in embedding space, a sort of
wastebasket for tokens that the model never saw. Candidates for under-trained tokens follow Land and Bartolo, "Fishing
for Magikarp" (2024).
"""

from generators.findings.contract import Finding
from generators.findings.inputs import FREQUENCIES, TOKENS
from generators.findings.outliers.claims import RULES
from generators.findings.outliers.facts import FACTS
from generators.findings.outliers.figures import figures
from generators.findings.outliers.measure import OutliersMetrics, measure

FINDING = Finding(
    name="outliers",
    title="Outliers",
    order=90,
    needs=("token_embedding",),
    uses=("position_embedding", TOKENS, FREQUENCIES),
    config=("tied",),
    metrics=OutliersMetrics,
    measure=measure,
    rules=RULES,
    figures=figures,
    facts=FACTS,
    signature="outlier-norms",
)
