"""Channels: do the position embeddings use few channels, and do the tokens avoid them?

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights" (token/position rivalry, the bimodal
histogram; the guess is Seraphina Nix's), and James Simon, "Insights into GPT-2's positional encodings" (sparse
singular vectors).
"""

from generators.findings.channels import claims, figures, measure
from generators.findings.contract import Finding
from generators.findings.wording import words_of

FINDING = Finding(
    name="channels",
    words=words_of(__name__),
    version=3,
    needs=("position_embedding",),
    uses=("token_embedding",),
    metrics=measure.ChannelsMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="channel-histogram",
)
