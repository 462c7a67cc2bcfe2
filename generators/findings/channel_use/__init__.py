"""Use of channels: what are the channels that stand out for?

Adam Scherlis, "An exploration of GPT-2's embedding weights", guesses that channel 138 holds a zeroth-order guess of
the next token, by frequency.
"""

from generators.findings.channel_use import claims, figures, measure
from generators.findings.contract import Finding
from generators.findings.inputs import FREQUENCIES, RUN
from generators.findings.wording import words_of

FINDING = Finding(
    name="channel_use",
    words=words_of(__name__),
    needs=(RUN, "token_embedding"),
    uses=("position_embedding", "blocks.*.ln2.gain", FREQUENCIES),
    config=("n_layer", "d_model", "post_norm"),
    metrics=measure.ChannelUseMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="channel-cost",
    passes=measure.WINDOWS * measure.PASSES,
)
