"""Zero layers: which token does the model answer with when nothing stands between its embeddings?

Nothing is claimed: noise yields itself too, and the exceptions are the finding.
"""

from generators.findings.contract import finding_of
from generators.findings.inputs import FREQUENCIES, TOKENS
from generators.findings.zero_layer import facts, figures, measure

FINDING = finding_of(
    measure,
    figures,
    facts,
    needs=("token_embedding",),
    uses=("unembedding", "position_embedding", "final_norm.gain", "final_norm.bias", TOKENS, FREQUENCIES),
    config=("tied", "norm", "norm_eps", "embedding_scale"),
    signature="zero-layer-norms",
)
