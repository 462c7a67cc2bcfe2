"""Distance: how much of where a head looks does distance decide, whatever the model's position scheme?"""

from generators.findings.contract import finding_of
from generators.findings.distance import claims, figures, measure
from generators.findings.inputs import RUN
from generators.findings.running import WINDOWS

FINDING = finding_of(
    measure,
    figures,
    claims,
    needs=(RUN,),
    uses=("position_embedding",),
    config=("n_head", "causal", "windows", "positions"),
    signature="distance-heads",
    passes=WINDOWS,
)
