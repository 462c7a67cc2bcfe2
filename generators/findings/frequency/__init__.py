"""Frequency: where in a token's embedding is it written how often the token occurs?

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights": channel 138, the norm and the first singular
direction are three candidates for a unigram frequency feature.
"""

from generators.findings.contract import Finding
from generators.findings.frequency import claims, figures, measure
from generators.findings.inputs import FREQUENCIES, TOKENS
from generators.findings.wording import words_of

FINDING = Finding(
    name="frequency",
    words=words_of(__name__),
    version=2,
    needs=("token_embedding",),
    uses=("blocks.*.ln2.gain", TOKENS, FREQUENCIES),
    config=("n_layer",),
    metrics=measure.FrequencyMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="frequency-channel",
)
