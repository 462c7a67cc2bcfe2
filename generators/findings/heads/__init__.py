"""Heads on text: does some head attend to the previous token, does it need exact positions, do weights foretell it?

Asked by Adam Yedidia, "The positional embedding matrix and previous-token heads: how do they actually work?" (2023).
"""

from generators.findings import positional
from generators.findings.contract import Finding
from generators.findings.heads import claims, facts, figures, measure
from generators.findings.inputs import RUN
from generators.findings.running import WINDOWS

FINDING = Finding(
    name="heads",
    title="Heads on text",
    order=120,
    version=1,
    needs=(RUN,),
    uses=("position_embedding", "blocks.*.attn.q", "blocks.*.attn.k", *positional.ROLES),
    config=positional.CONFIG,
    metrics=measure.HeadsMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=facts.FACTS,
    signature="heads-on-text",
    passes=WINDOWS * measure.PASSES,
)
