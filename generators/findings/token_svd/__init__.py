"""Token SVD: what are the leading directions of the token embedding?"""

from generators.findings.contract import finding_of
from generators.findings.inputs import TOKENS
from generators.findings.token_svd import claims, figures, measure

FINDING = finding_of(
    measure,
    figures,
    claims,
    version=3,
    needs=("token_embedding",),
    uses=("position_embedding", TOKENS),
    signature="svd-plane",
    asks_about=("outliers",),  # is the mean that of tokens in one spot?
)
