"""Token SVD: what are the leading directions of the token embedding?

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights": the first is the mean of the embeddings, the
next two separate tokens with a leading space from those without.
"""

from generators.findings.contract import Finding
from generators.findings.inputs import TOKENS
from generators.findings.token_svd import claims, figures, measure
from generators.findings.wording import words_of

FINDING = Finding(
    name="token_svd",
    version=3,
    words=words_of(__name__),
    needs=("token_embedding",),
    uses=("position_embedding", TOKENS),
    metrics=measure.TokenSvdMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="svd-plane",
    asks_about=("outliers",),  # is the mean that of tokens in one spot?
)
