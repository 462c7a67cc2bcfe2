"""Rotary use: which of its rotations does a model need, and which heads need fast ones?

Asked by Barbero et al., "Round and round we go! What makes rotary positional encodings useful?" (2024).
"""

from generators.findings import positional
from generators.findings.contract import Finding
from generators.findings.inputs import RUN
from generators.findings.rotary_use import claims, figures, measure
from generators.findings.wording import words_of

FINDING = Finding(
    name="rotary_use",
    words=words_of(__name__),
    version=4,
    needs=(RUN,),
    unless=positional.without_rotations,
    uses=tuple(
        f"blocks.*.{role}" for role in ("attn.q", "attn.k", "attn.q.bias", "attn.k.bias", "ln1.gain", "ln1.bias")
    ),
    config=tuple(field for field in positional.CONFIG if field != "positions"),
    metrics=measure.RotaryUseMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="rotary-damage",
    passes=measure.PASSES,
)
