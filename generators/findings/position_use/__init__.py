"""Use of positions: does the model need exact positions, or only the smooth curve they lie on?

Adam Yedidia, "The positional embedding matrix and previous-token heads: how do they actually work?" (2023), asks what
happens if positions are averaged in groups of ten; Adam Scherlis, "An exploration of GPT-2's embedding weights",
whether what lies off the curve is noise.
"""

from generators.findings.contract import Finding
from generators.findings.inputs import RUN
from generators.findings.position_use import claims, figures, measure
from generators.findings.running import WINDOWS
from generators.findings.wording import words_of

FINDING = Finding(
    name="position_use",
    words=words_of(__name__),
    needs=(RUN,),
    uses=("position_embedding",),
    metrics=measure.PositionUseMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="position-damage",
    passes=WINDOWS * measure.PASSES,
)
