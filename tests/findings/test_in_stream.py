"""Embeddings narrower than the stream, against transformers' own modules and an equal model without a projection."""

from dataclasses import replace

import numpy as np
import pytest

from generators.checkpoint.checkpoint import open_checkpoint
from generators.findings import FINDINGS, plantings
from generators.findings.positional import stream_of
from generators.findings.sizes import InStream
from tests import synthetic
from tests.checkpoint.oracle.cases import CASES
from tests.checkpoints import in_folder

NAMED = {finding.name: finding for finding in FINDINGS}
N, D, E = 64, 48, 24
ARCH = replace(synthetic.architecture(n_ctx=N, d_model=D, n_layer=1, causal=False, post_norm=True), d_embedding=E)


@pytest.fixture(scope="module", params=["albert", "electra"])
def real(request, tmp_path_factory):
    """Return a random model, its checkpoint, and what enters its first block for embeddings (rows, e)."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tests.checkpoint.oracle.model import build

    model = build(next(case for case in CASES if case.name == request.param)).base_model
    folder = tmp_path_factory.mktemp(request.param)
    model.save_pretrained(folder)
    project = getattr(model, "embeddings_project", None) or model.encoder.embedding_hidden_mapping_in

    def entering(rows):
        with torch.no_grad():
            given = torch.as_tensor(np.asarray(rows, np.float32))
            return project(model.embeddings.LayerNorm(given)).numpy()

    return open_checkpoint(in_folder(folder)), entering


def test_what_positions_alone_give_is_what_the_model_makes_of_them(real):
    checkpoint, entering = real
    P = checkpoint["position_embedding"]
    assert P.shape[1] < checkpoint.architecture.d_model
    np.testing.assert_allclose(stream_of(checkpoint, checkpoint.architecture, P), entering(P), atol=1e-5)


def test_positions_and_tokens_add_up_to_what_the_model_makes_of_their_sum(real):
    """But for what the norm divides by, and constants, which is what an input of zeros gives."""
    checkpoint, entering = real
    P, tokens = (checkpoint[role] for role in ("position_embedding", "token_embedding"))
    n = min(len(P), len(tokens))
    added = P[:n] + tokens[:n]
    size = np.sqrt(added.var(axis=1, keepdims=True) + checkpoint.architecture.norm_eps)
    weights = InStream(checkpoint)
    mine = weights["position_embedding"][:n] + weights["token_embedding"][:n]
    np.testing.assert_allclose(mine / size + entering(np.zeros((1, P.shape[1]))), entering(added), atol=1e-5)


def narrow():
    rng = np.random.default_rng(0)
    weights = synthetic.gaussian_weights(ARCH, 0)
    del weights["blocks.0.ln1.gain"], weights["blocks.0.ln1.bias"]  # the projection is between it and attention
    P = plantings.embed(plantings.coil(N, 4), E, noise=0.1)  # a curve, so that there is something to read
    return weights | {
        "position_embedding": P.astype(np.float32),
        "token_embedding": weights["token_embedding"][:, :E],
        "embedding_norm.gain": (1 + 0.2 * rng.standard_normal(E)).astype(np.float32),
        "embedding_norm.bias": rng.standard_normal(E).astype(np.float32),
        "embedding_projection": (rng.standard_normal((E, D)) / np.sqrt(E)).astype(np.float32),
        "embedding_projection.bias": rng.standard_normal(D).astype(np.float32),
    }


def wide(weights):
    """Return the same model with tables as wide as its stream."""
    kept = {role: tensor for role, tensor in weights.items() if not role.startswith("embedding_")}
    for role in ("position_embedding", "token_embedding"):
        centred = weights[role] - weights[role].mean(axis=1, keepdims=True)
        kept[role] = centred @ (weights["embedding_norm.gain"][:, None] * weights["embedding_projection"])
    return kept


@pytest.mark.parametrize("name", ["gains", "attention", "position_reading"])
def test_findings_say_of_narrow_embeddings_what_they_say_of_what_enters(name):
    weights = narrow()
    mine, theirs = (synthetic.measure(NAMED[name], each, ARCH) for each in (weights, wide(weights)))
    assert [claim.id for claim in NAMED[name].claims(mine)] == [claim.id for claim in NAMED[name].claims(theirs)]
    for key in ("shares", "top5", "reads") if name == "attention" else mine.metrics:  # kernels have the norm's bias
        same(mine.metrics[key], theirs.metrics[key])


def same(mine, theirs):
    if isinstance(mine, dict | list):
        assert len(mine) == len(theirs)
        for key in mine if isinstance(mine, dict) else range(len(mine)):
            same(mine[key], theirs[key])
    else:
        assert mine == (pytest.approx(theirs, rel=1e-3, abs=1e-4) if isinstance(mine, float) else theirs)


def test_the_norm_of_narrow_embeddings_is_passed():
    weights = InStream(narrow())
    assert "embedding_norm.gain" not in weights
    assert weights.get("embedding_norm.bias") is None
    assert len(weights) == len(list(weights))
    plain = synthetic.gaussian_weights(ARCH, 0) | {"embedding_norm.gain": np.ones(D)}
    assert dict(InStream(plain)) == plain
