"""Induction: do heads copy what followed the same token before, and what feeds them?"""

from generators.findings.contract import finding_of
from generators.findings.induction import claims, figures, measure
from generators.findings.inputs import RUN

FINDING = finding_of(
    measure,
    figures,
    claims,
    needs=(RUN,),
    config=("n_ctx", "n_head", "causal"),
    signature="induction-heads",
    passes=measure.PASSES,
)
