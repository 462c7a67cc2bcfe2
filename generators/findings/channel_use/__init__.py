"""Use of channels: what are the channels that stand out for?

Adam Scherlis, "An exploration of GPT-2's embedding weights", guesses that channel 138 holds a zeroth-order guess of
the next token, by frequency.
"""

from generators.findings.channel_use.claims import RULES
from generators.findings.channel_use.facts import FACTS
from generators.findings.channel_use.figures import figures
from generators.findings.channel_use.measure import PASSES, WINDOWS, ChannelUseMetrics, measure
from generators.findings.contract import Finding
from generators.findings.inputs import FREQUENCIES, RUN

FINDING = Finding(
    name="channel_use",
    title="Use of channels",
    order=140,
    needs=(RUN, "token_embedding"),
    uses=("position_embedding", "blocks.*.ln2.gain", FREQUENCIES),
    config=("n_layer", "d_model", "post_norm"),
    metrics=ChannelUseMetrics,
    measure=measure,
    rules=RULES,
    figures=figures,
    facts=FACTS,
    signature="channel-cost",
    passes=WINDOWS * PASSES,
)
