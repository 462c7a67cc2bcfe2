"""Position reading: do queries and keys of the first layer read the position curve, and as a rotation?"""

from generators.findings.contract import finding_of
from generators.findings.position_reading import claims, figures, measure
from generators.findings.sizes import ENTERING

FINDING = finding_of(
    measure,
    figures,
    claims,
    needs=("position_embedding", "blocks.0.attn.q", "blocks.0.attn.k"),
    uses=("blocks.0.ln1.gain", *ENTERING),
    config=("n_head", "n_kv_head", "norm", "causal"),
    signature="position-reading",
    version=2,
)
