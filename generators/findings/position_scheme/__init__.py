"""How positions are known: a table, a formula, rotations, slopes, relative biases, or not at all.

Rotations are Su et al.'s (RoFormer, 2021), slopes Press et al.'s (ALiBi, 2022), relative biases Raffel et al.'s (T5,
2020). Every model has one of them or none, so the finding needs nothing, and claims nothing.
"""

from generators.findings.contract import Finding
from generators.findings.position_scheme import figures, measure
from generators.findings.wording import words_of

FINDING = Finding(
    name="position_scheme",
    words=words_of(__name__),
    needs=(),
    uses=("position_embedding", "blocks.0.attn.relative_bias"),
    config=("positions", "n_ctx", "n_layer", "n_head", "d_head", "causal", "rotary", "slopes", "buckets", "windows"),
    metrics=measure.PositionSchemeMetrics,
    measure=measure.measure,
    figures=figures.figures,
    signature="position-scheme",
)
