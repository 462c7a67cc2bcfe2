"""Helix: do the position embeddings lie on a curve that winds?"""

from generators.findings.contract import finding_of
from generators.findings.helix import claims, figures, measure

FINDING = finding_of(
    measure,
    figures,
    claims,
    needs=("position_embedding",),
    uses=("token_embedding",),
    config=("positions",),
    signature="helix",
    version=3,
)
