"""Stream: how far into the model do positions last, on what curve, and apart from what the text says?"""

from generators.findings.contract import finding_of
from generators.findings.inputs import RUN
from generators.findings.stream import claims, figures, measure

FINDING = finding_of(
    measure,
    figures,
    claims,
    version=4,
    needs=(RUN,),
    uses=("position_embedding",),
    config=("n_layer", "d_model"),
    signature="stream-curves",
    passes=measure.WINDOWS,
)
