"""Under-trained: are the candidates for under-trained tokens really unspeakable?

After Land and Bartolo, "Fishing for Magikarp: automatically detecting under-trained tokens" (2024).
"""

from generators.findings.contract import Finding
from generators.findings.inputs import FREQUENCIES, RUN, TOKENS
from generators.findings.running import WINDOWS
from generators.findings.undertrained import claims, figures, measure
from generators.findings.wording import words_of

FINDING = Finding(
    name="undertrained",
    words=words_of(__name__),
    needs=(RUN, "token_embedding"),
    uses=(TOKENS, FREQUENCIES),
    metrics=measure.UndertrainedMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="largest-probabilities",
    passes=WINDOWS * measure.PASSES,
    version=5,
    asks_about=("outliers",),  # are its candidates unspeakable?
)
