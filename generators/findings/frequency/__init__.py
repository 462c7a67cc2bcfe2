"""Frequency: where in a token's embedding is it written how often the token occurs?"""

from generators.findings.contract import finding_of
from generators.findings.frequency import claims, figures, measure
from generators.findings.inputs import FREQUENCIES, TOKENS

FINDING = finding_of(
    measure,
    figures,
    claims,
    version=2,
    needs=("token_embedding",),
    uses=("blocks.*.ln2.gain", TOKENS, FREQUENCIES),
    config=("n_layer",),
    signature="frequency-channel",
)
