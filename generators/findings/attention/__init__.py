"""Attention: do the first layer's weights read positions, and which heads attend by position alone?

Observed by James Simon, "Insights into GPT-2's positional encodings" (the eight panels, the MLP's indifference), and
Adam Yedidia, "The positional embedding matrix and previous-token heads: how do they actually work?" (2023).
"""

from generators.findings import positional
from generators.findings.attention import claims, figures, measure
from generators.findings.contract import Finding
from generators.findings.inputs import FREQUENCIES
from generators.findings.wording import words_of

FINDING = Finding(
    name="attention",
    words=words_of(__name__),
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
    metrics=measure.AttentionMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="overlap-panels",
    version=4,
)
