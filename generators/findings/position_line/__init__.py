"""Position line: do positions become a straight line inside the model, carried by one channel that it needs?"""

from generators.findings.contract import finding_of
from generators.findings.inputs import RUN
from generators.findings.position_line import claims, figures, measure

FINDING = finding_of(
    measure,
    figures,
    claims,
    version=2,
    needs=(RUN,),
    uses=("blocks.*.ln1.gain", "blocks.*.ln2.gain"),
    config=("n_layer", "d_model", "post_norm"),
    signature="position-line",
    passes=measure.PASSES,
)
