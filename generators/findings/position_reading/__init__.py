"""Position reading: do queries and keys of the first layer read the position curve, and as a rotation?

Asked by cfoster0 in the comments on "GPT-2's positional embedding matrix is a helix" (LessWrong, 2023): a rotation of
the positional part of queries and keys would let a head look back by a fixed number of tokens.
"""

from generators.findings.contract import Finding
from generators.findings.position_reading import claims, figures, measure
from generators.findings.sizes import ENTERING
from generators.findings.wording import words_of

FINDING = Finding(
    name="position_reading",
    words=words_of(__name__),
    needs=("position_embedding", "blocks.0.attn.q", "blocks.0.attn.k"),
    uses=("blocks.0.ln1.gain", *ENTERING),
    config=("n_head", "n_kv_head", "norm", "causal"),
    metrics=measure.PositionReadingMetrics,
    measure=measure.measure,
    rules=claims.RULES,
    figures=figures.figures,
    facts=claims.FACTS,
    signature="position-reading",
    version=2,
)
