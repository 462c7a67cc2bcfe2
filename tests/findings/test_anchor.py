from functools import partial

import numpy as np
import pytest
from scipy.special import softmax

from generators.findings import plantings
from generators.findings.anchor import FINDING
from tests import synthetic
from tests.findings.stand_in import measure_run

N, D, LAYERS, CHANNEL = 120, 48, 2, 7
ARCH = synthetic.architecture(n_ctx=N, d_model=D, n_layer=LAYERS)
claims_of = partial(synthetic.by_id, FINDING)
LINE = plantings.embed(np.linspace(-1, 1, N)[:, None], D)


def attend(share):
    """Return attention whose head 1 of layer 1 gives the first token this share more than chance."""

    def of(layer, ids, silenced):
        scores = np.random.default_rng(layer).standard_normal((len(ids), 2, N, N))
        weights = softmax(np.where(np.triu(np.ones((N, N), bool), 1), -np.inf, scores), axis=-1)
        if layer == 1:
            weights[:, 1] *= 1 - share
            weights[:, 1, :, 0] += share
        return weights

    return of


def states(size, seed=0):
    def of(stage, ids):
        made = np.random.default_rng([seed, stage]).standard_normal((*ids.shape, D))
        if stage == 1:
            made[:, 0, CHANNEL] = size
        return made

    return of


def measured(share=0.0, size=1.0, P=LINE, seed=0, **given):
    given |= {"attend": attend(share), "states": states(size, seed), "affords": 16}
    return measure_run(FINDING, ARCH, P, {} if P is None else {"position_embedding": P}, **given)


@pytest.mark.parametrize(("share", "verdict"), [(0.5, "holds"), (0.2, "partly"), (0.0, "fails")])
def test_a_planted_sink_is_found(share, verdict):
    result = measured(share)
    row = result.metrics["heads"][3]
    assert row["on_first"] == pytest.approx(share + (1 - share) * result.metrics["uniform"], abs=0.01)
    claims = claims_of(result)
    assert claims["head-rests-on-first"].verdict == verdict


@pytest.mark.parametrize(("size", "verdict"), [(200.0, "holds"), (30.0, "fails"), (1.0, "fails")])
def test_a_planted_massive_activation_is_found(size, verdict):
    result = measured(size=size)
    assert claims_of(result)["massive-at-first"].verdict == verdict
    if verdict == "holds":
        row = result.metrics["stages"][1]
        assert row["channel"] == CHANNEL
        assert row["over_median"] == pytest.approx(size / 0.6745, rel=0.03)
        assert row["over_elsewhere"] == pytest.approx(size / np.sqrt(2 / np.pi), rel=0.03)


def test_channel_large_everywhere_is_not_massive():
    def large(stage, ids):
        made = np.random.default_rng(stage).standard_normal((*ids.shape, D))
        made[..., CHANNEL] += 200
        return made

    claims = claims_of(measure_run(FINDING, ARCH, attend=attend(0), states=large, affords=16))
    assert claims["massive-at-first"].verdict == "untested", "other positions reach the threshold, too"
    assert claims["position-0-needed"].verdict == "untested"


def test_a_row_that_the_model_needs_is_found():
    P = LINE.copy()
    P[0] += 40 * LINE.std()
    result = measured(P=P)
    assert result.metrics["rows"]["share"] > 0.5
    assert result.metrics["rows"]["few_first"] > max(result.metrics["rows"]["others"])
    assert claims_of(result)["position-0-needed"].verdict == "holds"


def examples():
    yield measured(0.5, 200.0)


def nothing(seed):
    """Return what is measured where the first position is like all others."""
    P = np.random.default_rng(seed).standard_normal((N, D))
    return measured(P=P, seed=seed)
