"""Heads on text: does a head attend to the previous token, does it need exact positions, do weights predict it?"""

from generators.findings import positional
from generators.findings.contract import finding_of
from generators.findings.heads import claims, figures, measure
from generators.findings.inputs import RUN
from generators.findings.running import WINDOWS

FINDING = finding_of(
    measure,
    figures,
    claims,
    needs=(RUN,),
    uses=("position_embedding", "blocks.*.attn.q", "blocks.*.attn.k", *positional.ROLES),
    config=positional.CONFIG,
    signature="heads-on-text",
    passes=WINDOWS * measure.PASSES,
)
