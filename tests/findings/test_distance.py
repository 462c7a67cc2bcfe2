from functools import partial

import numpy as np
import pytest
from scipy.special import softmax

from generators.findings.distance import FINDING
from generators.findings.distance.measure import REACH, shares
from tests import synthetic
from tests.findings.stand_in import measure_run

N, LAYERS = 160, 2
ARCH = synthetic.architecture(n_ctx=N, n_layer=LAYERS)
claims_of = partial(synthetic.by_id, FINDING)
PROFILE = 3 * np.sin(np.arange(-N, N) / 9)
ZEROS = np.zeros((N, 4))
WITHOUT = {"kind": "table", "P": ZEROS, "weights": {"position_embedding": ZEROS}}  # positions


def attend(share, causal=True, layers=(1,)):
    """Return attention whose scores in head 1 of some layers are a profile over distances up to a share."""

    def of(layer, ids, silenced):
        rng = np.random.default_rng([int(ids[0, 0]), layer])
        scores = rng.standard_normal((len(ids), 2, N, N))
        by_distance = PROFILE[N + np.arange(N)[:, None] - np.arange(N)]
        if layer in layers:
            within = PROFILE[N : N + REACH].std()
            scores[:, 1] = np.sqrt(share) * by_distance / within + np.sqrt(1 - share) * scores[:, 1]
        hidden = np.triu(np.ones((N, N), bool), 1) if causal else np.zeros((N, N), bool)
        return softmax(np.where(hidden, -np.inf, scores), axis=-1)

    return of


def measured(attend, arch=ARCH, kind="rotary", **given):
    return measure_run(FINDING, arch, kind=kind, attend=attend, affords=8, **given)


@pytest.mark.parametrize(("share", "verdict"), [(0.95, "holds"), (0.8, "partly"), (0.3, "fails")])
def test_a_planted_share_is_found(share, verdict):
    result = measured(attend(share))
    row = result.metrics["heads"][3]
    assert row["share"] == pytest.approx(share, abs=0.02)
    assert row["low"] <= row["share"] <= row["high"]
    assert abs(np.argmax(result.arrays["by_distance"][3]) - np.argmax(PROFILE[N : N + REACH])) <= 2
    assert max(other["share"] for other in result.metrics["heads"][:3]) < 0.01
    claim = claims_of(result)["head-by-distance-alone"]
    assert (claim.verdict, claim.value) == (verdict, row["share"])


def test_an_encoder_looks_both_ways():
    arch = synthetic.architecture(n_ctx=N, n_layer=LAYERS, causal=False)
    result = measured(attend(0.95, causal=False), arch)
    offsets = result.arrays["offsets"].tolist()
    assert offsets == list(range(-offsets[-1], offsets[-1] + 1))
    assert result.metrics["heads"][3]["share"] > 0.9


def examples():
    """Yield what is measured where scores know no distance."""

    def of(layer, ids, silenced):
        scores = np.random.default_rng([0, layer]).standard_normal((len(ids), 2, N, N))
        return softmax(np.where(np.triu(np.ones((N, N), bool), 1), -np.inf, scores), axis=-1)

    yield measured(of, **WITHOUT)


def test_nothing_is_found_where_scores_know_no_distance():
    (result,) = examples()
    assert claims_of(result)["first-layer-blind"].verdict == "holds"
    largest, chance = max(row["share"] for row in result.metrics["heads"]), result.metrics["largest_by_chance"]
    assert chance["median"] / 2 < largest < 2 * chance["limit"]
    assert shares(np.ones(3) / 3, np.zeros((3, 2, 8)), np.zeros((3, 2))).tolist() == [0, 0]


def test_first_layer_that_knows_distances():
    known = measured(attend(0.5, layers=(0,)), **WITHOUT)
    assert claims_of(known)["first-layer-blind"].verdict == "fails"
    assert claims_of(measured(attend(0.5)))["first-layer-blind"].verdict == "untested"


def test_masked_scores_count_as_very_small():
    def steep(layer, ids, silenced):
        scores = -40.0 * (np.arange(N)[:, None] - np.arange(N))
        weights = softmax(np.where(scores > 0, -np.inf, scores), axis=-1).astype(np.float32)
        return np.broadcast_to(weights, (len(ids), 2, N, N))

    assert measured(steep).metrics["heads"][0]["share"] == pytest.approx(1)
