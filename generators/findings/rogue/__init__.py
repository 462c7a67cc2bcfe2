"""Rogue: which channels make hidden states look alike?

Asked by Timkey and van Schijndel, "All bark and no bite: rogue dimensions in transformer language models obscure
representational quality" (2021), and Cai et al., "Isotropy in the contextual embedding space" (2021).
"""

from generators.findings.contract import finding_of
from generators.findings.inputs import FREQUENCIES, RUN
from generators.findings.rogue import claims, figures, measure

FINDING = finding_of(
    measure,
    figures,
    claims,
    version=2,
    needs=(RUN,),
    uses=("token_embedding", "blocks.*.ln2.gain", FREQUENCIES),
    config=("n_layer", "d_model"),
    signature="rogue-shares",
    passes=measure.WINDOWS,
)
