"""On embeddings without any structure nothing of the token side is found: 36 seeds over three kinds of noise."""

import numpy as np
import pytest

from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from generators.tokens.frequency import TokenFrequency
from generators.tokens.vocabulary import ModelVocabulary
from tests import synthetic

V, D, N = 1200, 40, 256
TOKEN_SIDE = [finding for finding in FINDINGS if "token_embedding" in finding.needs and RUN not in finding.needs]
SEEDS = {"gaussian": range(12), "log-normal norms": range(100, 112), "power-law spectrum": range(200, 212)}


def embedding(kind: str, rng: np.random.Generator) -> np.ndarray:
    E = rng.standard_normal((V, D))
    if kind == "log-normal norms":
        E *= rng.lognormal(sigma=0.3, size=(V, 1))
    if kind == "power-law spectrum":
        rotation = np.linalg.qr(rng.standard_normal((D, D)))[0]
        E = (E * np.arange(1, D + 1) ** -0.5) @ rotation
    return E.astype(np.float32)


def token_facts(rng: np.random.Generator) -> tuple[ModelVocabulary, tuple[TokenFrequency, ...]]:
    vocabulary = synthetic.vocabulary(V, {i: f" w{i}" for i in np.flatnonzero(rng.random(V) < 0.5)})
    counts = rng.zipf(1.4, V).clip(max=10**6).astype(float)
    return vocabulary, (TokenFrequency("counts", "random counts", np.log1p(counts), 1.0, False),)


@pytest.mark.parametrize("kind", SEEDS)
def test_at_most_one_claim_in_a_hundred_holds_and_nothing_huddles(kind):
    held, judged = [], 0
    for seed in SEEDS[kind]:
        rng = np.random.default_rng(seed)
        weights = {
            "token_embedding": embedding(kind, rng),
            "position_embedding": rng.standard_normal((N, D)).astype(np.float32),
            **{f"blocks.{i}.ln2.gain": 1 + 0.1 * rng.standard_normal(D) for i in range(6)},
        }
        architecture = synthetic.architecture(n_ctx=N, d_model=D, n_layer=6)
        vocabulary, frequencies = token_facts(rng)
        for finding in TOKEN_SIDE:
            result = synthetic.measure(finding, weights, architecture, vocabulary, frequencies)
            if finding.name == "outliers":
                assert result.metrics["clump"] is None
            claims = [claim for claim in finding.claims(result) if claim.verdict != "untested"]
            judged += len(claims)
            held += [claim.id for claim in claims if claim.verdict == "holds"]
    assert judged >= 8 * len(SEEDS[kind])
    assert len(held) <= judged / 100, held
