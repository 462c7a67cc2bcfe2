"""Zero layers: which token does the model answer with when nothing stands between its embeddings?

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights": without layers almost every token yields
itself; the exceptions are pairs of nearly parallel embeddings of different length, and a few long embeddings absorb
many others. Nothing is claimed: noise yields itself too, and the exceptions are the finding.
"""

from generators.findings.contract import Finding
from generators.findings.inputs import FREQUENCIES, TOKENS
from generators.findings.wording import words_of
from generators.findings.zero_layer import facts, figures, measure

FINDING = Finding(
    name="zero_layer",
    words=words_of(__name__),
    needs=("token_embedding",),
    uses=("unembedding", "position_embedding", "final_norm.gain", "final_norm.bias", TOKENS, FREQUENCIES),
    config=("tied", "norm", "norm_eps", "embedding_scale"),
    metrics=measure.ZeroLayerMetrics,
    measure=measure.measure,
    figures=figures.figures,
    facts=facts.FACTS,
    signature="zero-layer-norms",
)
