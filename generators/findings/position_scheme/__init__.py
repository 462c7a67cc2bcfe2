"""How positions are known: a table, a formula, rotations, slopes, relative biases, or not at all.

Every model has one of them or none, so the finding needs nothing, and claims nothing.
"""

from generators.findings.contract import finding_of
from generators.findings.position_scheme import figures, measure

FINDING = finding_of(
    measure,
    figures,
    needs=(),
    uses=("position_embedding", "blocks.0.attn.relative_bias"),
    config=("positions", "n_ctx", "n_layer", "n_head", "d_head", "causal", "rotary", "slopes", "buckets", "windows"),
    signature="position-scheme",
)
