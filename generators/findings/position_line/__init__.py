"""Position line: do positions become a straight line inside the model, carried by one channel that it needs?

That a few channels carry positions was noticed in GPT-2's embeddings; that models turn positions into a line, which
attention can read as distance, is asked by readers of the helix.
"""

from generators.findings.contract import Finding
from generators.findings.inputs import RUN
from generators.findings.position_line import claims, figures, measure
from generators.findings.wording import words_of

FINDING = Finding(
    name="position_line",
    words=words_of(__name__),
    version=2,
    needs=(RUN,),
    uses=("blocks.*.ln1.gain", "blocks.*.ln2.gain"),
    config=("n_layer", "d_model", "post_norm"),
    metrics=measure.PositionLineMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="position-line",
    passes=measure.PASSES,
)
