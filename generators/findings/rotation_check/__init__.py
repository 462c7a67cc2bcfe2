"""Rotation check: is the checkpoint rotated as its config says?

Asked in public threads about wrong rotations: AirLLM #368, TransformerLens #364 and #778, vLLM #9490 and #9502.
"""

from generators.findings import positional
from generators.findings.contract import Finding
from generators.findings.inputs import RUN
from generators.findings.rotation_check import claims, figures, measure
from generators.findings.wording import words_of

FINDING = Finding(
    name="rotation_check",
    words=words_of(__name__),
    needs=(RUN,),
    unless=positional.without_rotations,
    config=("rotary",),
    metrics=measure.RotationCheckMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    signature="rotation-check",
    passes=measure.PASSES,
)
