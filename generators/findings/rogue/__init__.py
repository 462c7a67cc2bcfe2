"""Rogue: which channels make hidden states look alike?

Asked by Timkey and van Schijndel, "All bark and no bite: rogue dimensions in transformer language models obscure
representational quality" (2021), and Cai et al., "Isotropy in the contextual embedding space" (2021).
"""

from generators.findings.contract import Finding
from generators.findings.inputs import FREQUENCIES, RUN
from generators.findings.rogue import claims, figures, measure
from generators.findings.wording import words_of

FINDING = Finding(
    name="rogue",
    version=2,
    words=words_of(__name__),
    needs=(RUN,),
    uses=("token_embedding", "blocks.*.ln2.gain", FREQUENCIES),
    config=("n_layer", "d_model"),
    metrics=measure.RogueMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="rogue-shares",
    passes=measure.WINDOWS,
)
