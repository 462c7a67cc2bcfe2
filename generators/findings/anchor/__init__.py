"""Anchor: what do heads, channels and the loss owe to the first token?"""

from generators.findings.anchor import claims, figures, measure
from generators.findings.contract import finding_of
from generators.findings.inputs import RUN, TOKENS

FINDING = finding_of(
    measure,
    figures,
    claims,
    version=2,
    needs=(RUN,),
    uses=("position_embedding", TOKENS),
    config=("n_layer", "n_head", "d_model", "causal"),
    signature="anchor-heads",
    passes=measure.PASSES,
)
