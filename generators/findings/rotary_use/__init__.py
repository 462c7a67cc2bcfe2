"""Rotary use: which of its rotations does a model need, and which heads need fast ones?"""

from generators.findings import positional
from generators.findings.contract import finding_of
from generators.findings.inputs import RUN
from generators.findings.rotary_use import claims, figures, measure

FINDING = finding_of(
    measure,
    figures,
    claims,
    version=4,
    needs=(RUN,),
    unless=positional.without_rotations,
    uses=tuple(
        f"blocks.*.{role}" for role in ("attn.q", "attn.k", "attn.q.bias", "attn.k.bias", "ln1.gain", "ln1.bias")
    ),
    config=tuple(field for field in positional.CONFIG if field != "positions"),
    signature="rotary-damage",
    passes=measure.PASSES,
)
