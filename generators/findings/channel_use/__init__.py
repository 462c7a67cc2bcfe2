"""Use of channels: what are the channels that stand out for?"""

from generators.findings.channel_use import claims, figures, measure
from generators.findings.contract import finding_of
from generators.findings.inputs import FREQUENCIES, RUN

FINDING = finding_of(
    measure,
    figures,
    claims,
    needs=(RUN, "token_embedding"),
    uses=("position_embedding", "blocks.*.ln2.gain", FREQUENCIES),
    config=("n_layer", "d_model", "post_norm"),
    signature="channel-cost",
    passes=measure.WINDOWS * measure.PASSES,
)
