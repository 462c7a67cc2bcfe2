"""Subspaces: do tokens and positions keep apart in the residual stream?

Observed by James Simon, "Insights into GPT-2's positional encodings" (capture, the overlap heatmap); Adam Scherlis,
"An exploration of GPT-2's embedding weights" (token/position rivalry).
"""

from generators.findings.contract import Finding
from generators.findings.facts import Facts
from generators.findings.subspaces import claims, figures, measure

FINDING = Finding(
    name="subspaces",
    title="Subspaces",
    order=50,
    version=1,
    needs=("position_embedding", "token_embedding"),
    metrics=measure.SubspacesMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=Facts(search=("orthogonal", "orthogonal subspaces")),
    signature="capture",
)
