"""Subspaces: do tokens and positions keep apart in the residual stream?

Observed by James Simon, "Insights into GPT-2's positional encodings" (capture, the overlap heatmap); Adam Scherlis,
"An exploration of GPT-2's embedding weights" (token/position rivalry).
"""

from generators.findings.contract import Finding
from generators.findings.subspaces import claims, figures, measure
from generators.findings.wording import words_of

FINDING = Finding(
    name="subspaces",
    words=words_of(__name__),
    needs=("position_embedding", "token_embedding"),
    metrics=measure.SubspacesMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    signature="capture",
)
