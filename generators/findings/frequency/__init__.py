"""Frequency: where in a token's embedding is it written how often the token occurs?

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights": channel 138, the norm and the first singular
direction are three candidates for a unigram frequency feature.
"""

from generators.findings.contract import Finding
from generators.findings.frequency.claims import RULES
from generators.findings.frequency.facts import FACTS
from generators.findings.frequency.figures import figures
from generators.findings.frequency.measure import FrequencyMetrics, measure
from generators.findings.inputs import FREQUENCIES, TOKENS

FINDING = Finding(
    name="frequency",
    title="Frequency",
    order=60,
    needs=("token_embedding",),
    uses=("blocks.*.ln2.gain", TOKENS, FREQUENCIES),
    config=("n_layer",),
    metrics=FrequencyMetrics,
    measure=measure,
    rules=RULES,
    figures=figures,
    facts=FACTS,
    signature="frequency-channel",
)
