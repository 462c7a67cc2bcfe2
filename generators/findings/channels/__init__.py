"""Channels: do the position embeddings use few channels, and do the tokens avoid them?"""

from generators.findings.channels import claims, figures, measure
from generators.findings.contract import finding_of

FINDING = finding_of(
    measure,
    figures,
    claims,
    version=3,
    needs=("position_embedding",),
    uses=("token_embedding",),
    signature="channel-histogram",
)
