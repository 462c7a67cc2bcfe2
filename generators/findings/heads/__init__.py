"""Heads on text: does some head attend to the previous token, does it need exact positions, do weights foretell it?

Asked by Adam Yedidia, "The positional embedding matrix and previous-token heads: how do they actually work?" (2023).
"""

from generators.findings import positional
from generators.findings.contract import Finding
from generators.findings.heads import claims, figures, measure
from generators.findings.inputs import RUN
from generators.findings.running import WINDOWS
from generators.findings.wording import words_of

FINDING = Finding(
    name="heads",
    words=words_of(__name__),
    needs=(RUN,),
    uses=("position_embedding", "blocks.*.attn.q", "blocks.*.attn.k", *positional.ROLES),
    config=positional.CONFIG,
    metrics=measure.HeadsMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="heads-on-text",
    passes=WINDOWS * measure.PASSES,
)
