"""Use of positions: does the model need exact positions, or only the smooth curve they lie on?"""

from generators.findings.contract import finding_of
from generators.findings.inputs import RUN
from generators.findings.position_use import claims, figures, measure
from generators.findings.running import WINDOWS

FINDING = finding_of(
    measure,
    figures,
    claims,
    needs=(RUN,),
    uses=("position_embedding",),
    signature="position-damage",
    passes=WINDOWS * measure.PASSES,
)
