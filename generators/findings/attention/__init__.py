"""Attention: do the first layer's weights read positions, and which heads attend by position alone?"""

from generators.findings import positional
from generators.findings.attention import claims, figures, measure
from generators.findings.contract import finding_of
from generators.findings.inputs import FREQUENCIES

FINDING = finding_of(
    measure,
    figures,
    claims,
    needs=tuple(f"blocks.*.attn.{name}" for name in "qkvo"),
    uses=(
        "position_embedding",
        *positional.ROLES,
        "blocks.*.ln2.gain",
        "blocks.*.mlp.in",
        "token_embedding",
        "token_type_embedding",
        FREQUENCIES,
    ),
    config=(*positional.CONFIG, "embedding_scale"),
    signature="overlap-panels",
    version=4,
)
