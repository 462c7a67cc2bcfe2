"""Channels: do the position embeddings use few channels, and do the tokens avoid them?

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights" (token/position rivalry, the bimodal
histogram; the guess is Seraphina Nix's), and James Simon, "Insights into GPT-2's positional encodings" (sparse
singular vectors).
"""

from generators.findings.channels.claims import RULES
from generators.findings.channels.facts import FACTS
from generators.findings.channels.figures import figures
from generators.findings.channels.measure import ChannelsMetrics, measure
from generators.findings.contract import Finding

FINDING = Finding(
    name="channels",
    title="Channels",
    order=20,
    needs=("position_embedding",),
    uses=("token_embedding",),
    metrics=ChannelsMetrics,
    measure=measure,
    rules=RULES,
    figures=figures,
    facts=FACTS,
    signature="channel-histogram",
)
