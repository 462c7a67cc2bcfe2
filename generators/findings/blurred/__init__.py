"""Blurred positions: what is left of a head's look at the previous token when positions are averaged in groups?

Adam Yedidia, "The positional embedding matrix and previous-token heads: how do they actually work?" (2023): with
positions averaged in groups of ten, heads of GPT-2 went on doing what they did, which the helix alone would not
explain. Here it is asked of positions alone. Nothing is claimed: what a model does on text is another finding.
"""

from generators.findings import positional
from generators.findings.blurred import figures, measure
from generators.findings.contract import Finding
from generators.findings.wording import words_of

FINDING = Finding(
    name="blurred",
    words=words_of(__name__),
    needs=("position_embedding", "blocks.*.attn.q", "blocks.*.attn.k"),
    uses=positional.ROLES,
    config=positional.CONFIG,
    metrics=measure.BlurredMetrics,
    measure=measure.measure,
    figures=figures.figures,
    signature="blurred-heads",
    version=2,
)
