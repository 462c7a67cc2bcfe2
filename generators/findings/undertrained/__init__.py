"""Under-trained: are the candidates for under-trained tokens really unspeakable?"""

from generators.findings.contract import finding_of
from generators.findings.inputs import FREQUENCIES, RUN, TOKENS
from generators.findings.running import WINDOWS
from generators.findings.undertrained import claims, figures, measure

FINDING = finding_of(
    measure,
    figures,
    claims,
    needs=(RUN, "token_embedding"),
    uses=(TOKENS, FREQUENCIES),
    signature="largest-probabilities",
    passes=WINDOWS * measure.PASSES,
    version=5,
    asks_about=("outliers",),  # are its candidates unspeakable?
)
