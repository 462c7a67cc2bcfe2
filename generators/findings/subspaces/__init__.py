"""Subspaces: do tokens and positions keep apart in the residual stream?"""

from generators.findings.contract import finding_of
from generators.findings.subspaces import claims, figures, measure

FINDING = finding_of(
    measure,
    figures,
    claims,
    needs=("position_embedding", "token_embedding"),
    signature="capture",
)
