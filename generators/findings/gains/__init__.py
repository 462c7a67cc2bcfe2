"""Gains: do the norms dial the position channels down, and does ln2 single out one channel?"""

from generators.findings.contract import finding_of
from generators.findings.gains import claims, figures, measure
from generators.findings.sizes import ENTERING

FINDING = finding_of(
    measure,
    figures,
    claims,
    needs=("blocks.*.ln2.gain",),
    uses=("blocks.*.ln1.gain", "position_embedding", "token_embedding", *ENTERING),
    config=("n_layer",),
    signature="gains-ln2",
    version=3,
)
