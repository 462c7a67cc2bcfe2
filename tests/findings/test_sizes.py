"""What is too small, or all alike, is not spoken about."""

import numpy as np
import pytest

from generators.findings import FINDINGS
from generators.findings.inputs import NotApplicableError
from tests import synthetic

NAMED = {finding.name: finding for finding in FINDINGS}


def measure(finding, P, E):
    arch = synthetic.architecture(n_ctx=len(P), d_model=P.shape[1], vocab_size=len(E))
    weights = {**synthetic.gaussian_weights(arch, seed=0), "position_embedding": P, "token_embedding": E}
    return synthetic.measure(NAMED[finding], weights, arch)


def noise(rows, d):
    return np.random.default_rng(0).standard_normal((rows, d)).astype(np.float32)


@pytest.mark.parametrize(("finding", "positions", "channels", "tokens", "why"), [
    *((name, n, 48, 400, f"P has only {n} positions") for name in ("attention", "channels") for n in (2, 15)),
    ("subspaces", 15, 40, 900, "P has only 15 positions"),
    ("helix", 15, 16, 400, "15"),
    ("helix", 300, 15, 400, "15"),
    ("attention", 40, 14, 400, "The stream has only 14 channels"),
    ("channels", 40, 15, 400, "The stream has only 15 channels"),
    ("channels", 40, 1, 400, "The stream has only 1 channels"),
    ("subspaces", 300, 15, 900, "The stream has only 15 channels"),
    ("subspaces", 300, 40, 99, "There are only 99 tokens"),
    *(
        (name, 64, channels, tokens, "only")
        for name in ("outliers", "frequency", "zero_layer", "token_svd")
        for tokens, channels in ((99, 32), (1, 32), (500, 15))
    ),
])  # fmt: skip
def test_smaller_ones_are_not_spoken_about(finding, positions, channels, tokens, why):
    with pytest.raises(NotApplicableError, match=why):
        measure(finding, noise(positions, channels), noise(tokens, channels))


def alike(rows, value, first=None):
    return np.vstack([np.full((1, 48), value if first is None else first), np.full((rows - 1, 48), value)])


@pytest.mark.parametrize(("finding", "P", "E"), [
    ("attention", alike(210, 0.0), None), ("blurred", alike(210, 1.0), None), ("subspaces", alike(300, 1.0), None),
    # Every range that claims rest on leaves the first out.
    ("channels", alike(300, 0.0, 5.0), None), ("channels", alike(300, 0.7, 5.0), None),
    *(("helix", alike(n, 0.7, first), None) for n in (16, 300) for first in (0.7, 2.0)),
    ("subspaces", None, alike(900, 1.0)), ("token_svd", None, alike(900, 0.0)), ("token_svd", None, alike(900, 1.0)),
])  # fmt: skip
def test_positions_or_tokens_that_are_alike(finding, P, E):
    P, E = (noise(rows, 48) if given is None else np.float32(given) for given, rows in ((P, 300), (E, 900)))
    with pytest.raises(NotApplicableError, match=r"alike|vary"):
        measure(finding, P, E)
