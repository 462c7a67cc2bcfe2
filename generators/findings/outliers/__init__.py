"""Outliers: the longest and shortest tokens, the cluster of unused tokens, and what else looks untrained."""

from generators.findings.contract import finding_of
from generators.findings.inputs import FREQUENCIES, TOKENS
from generators.findings.outliers import claims, figures, measure

FINDING = finding_of(
    measure,
    figures,
    claims,
    needs=("token_embedding",),
    uses=("position_embedding", TOKENS, FREQUENCIES),
    config=("tied",),
    signature="outlier-norms",
    version=2,
)
