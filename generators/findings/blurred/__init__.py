"""Blurred positions: what is left of a head's look at the previous token when positions are averaged in groups?

Nothing is claimed: what a model does on text is another finding.
"""

from generators.findings import positional
from generators.findings.blurred import figures, measure
from generators.findings.contract import finding_of

FINDING = finding_of(
    measure,
    figures,
    needs=("position_embedding", "blocks.*.attn.q", "blocks.*.attn.k"),
    uses=positional.ROLES,
    config=positional.CONFIG,
    signature="blurred-heads",
)
