"""Induction: do heads copy what followed the same token before, and what feeds them?

Asked by Olsson et al., "In-context learning and induction heads" (2022).
"""

from generators.findings.contract import Finding
from generators.findings.induction import claims, figures, measure
from generators.findings.inputs import RUN
from generators.findings.wording import words_of

FINDING = Finding(
    name="induction",
    words=words_of(__name__),
    needs=(RUN,),
    config=("n_ctx", "n_head", "causal"),
    metrics=measure.InductionMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="induction-heads",
    passes=measure.PASSES,
)
