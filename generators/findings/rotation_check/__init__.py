"""Rotation check: is the checkpoint rotated as its config says?"""

from generators.findings import positional
from generators.findings.contract import finding_of
from generators.findings.inputs import RUN
from generators.findings.rotation_check import claims, figures, measure

FINDING = finding_of(
    measure,
    figures,
    claims,
    needs=(RUN,),
    unless=positional.without_rotations,
    config=("rotary",),
    signature="rotation-check",
    passes=measure.PASSES,
)
