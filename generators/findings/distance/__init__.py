"""Distance: how much of where a head looks does distance decide, whatever the model's position scheme?"""

from generators.findings.contract import Finding
from generators.findings.distance import claims, figures, measure
from generators.findings.inputs import RUN
from generators.findings.running import WINDOWS
from generators.findings.wording import words_of

FINDING = Finding(
    name="distance",
    words=words_of(__name__),
    needs=(RUN,),
    uses=("position_embedding",),
    config=("n_head", "causal", "windows", "positions"),
    metrics=measure.DistanceMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="distance-heads",
    passes=WINDOWS,
)
