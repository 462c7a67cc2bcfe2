"""Under-trained: are the candidates for under-trained tokens really unspeakable?

After Land and Bartolo, "Fishing for Magikarp: automatically detecting under-trained tokens" (2024).
"""

from generators.findings.contract import Finding
from generators.findings.inputs import FREQUENCIES, RUN, TOKENS
from generators.findings.running import WINDOWS
from generators.findings.undertrained.claims import RULES
from generators.findings.undertrained.facts import FACTS
from generators.findings.undertrained.figures import figures
from generators.findings.undertrained.measure import PASSES, UndertrainedMetrics, measure

FINDING = Finding(
    name="undertrained",
    title="Under-trained tokens",
    order=150,
    needs=(RUN, "token_embedding"),
    uses=(TOKENS, FREQUENCIES),
    config=("tied", "causal"),
    metrics=UndertrainedMetrics,
    measure=measure,
    rules=RULES,
    figures=figures,
    facts=FACTS,
    signature="largest-probabilities",
    passes=WINDOWS * PASSES,
    asks_about=("outliers",),  # are its candidates unspeakable?
)
