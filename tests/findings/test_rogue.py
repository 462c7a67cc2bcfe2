from functools import partial

import numpy as np
import pytest

from generators.findings.rogue import FINDING
from generators.findings.rogue.measure import mean_cosine
from generators.tokens.frequency import TokenFrequency
from tests import synthetic
from tests.findings.stand_in import measure_run
from tests.stand_in_nulls import states_about

N, D, V, LAYERS, CHANNEL = 40, 112, 400, 2, 7
ARCH = synthetic.architecture(n_ctx=N, d_model=D, n_layer=LAYERS)
COUNTS = np.random.default_rng(0).standard_normal(V)
FREQUENCIES = (TokenFrequency("counts", "counts", COUNTS, 1.0, False),)
claims_of = partial(synthetic.by_id, FINDING)


def measured(offset, gains=None, E=None):
    weights = {"token_embedding": np.random.default_rng([0, 9]).standard_normal((V, D)) if E is None else E}
    weights |= {f"blocks.{i}.ln2.gain": np.ones(D) if gains is None else gains for i in range(LAYERS)}
    return measure_run(FINDING, ARCH, None, weights, FREQUENCIES, states=states_about(offset, 0))


def with_a_rogue_channel():
    offset = np.full(D, 0.4)
    offset[CHANNEL] = 6
    gains, E = np.ones(D), np.random.default_rng(1).standard_normal((V, D))
    gains[CHANNEL], E[:, CHANNEL] = 5, COUNTS
    return measured(offset, gains, E)


def examples():
    yield with_a_rogue_channel()


def test_a_planted_channel_is_found_and_named():
    result = with_a_rogue_channel()
    row = result.metrics["layers"][result.metrics["worst"]]
    expected = 36 / (36 + 0.16 * (D - 1))
    assert row["channel"] == CHANNEL
    assert row["share"] == pytest.approx(expected, abs=0.02)
    assert row["low"] <= row["share"] <= row["high"]
    assert row["without_1"] < row["mean_cosine"] / 2
    claims = claims_of(result)
    names = ("rogue-channel", "rogue-is-ln2", "rogue-is-frequency")
    assert [claims[name].verdict for name in names] == ["holds"] * 3


@pytest.mark.parametrize(
    ("offset", "verdict"), [(np.random.default_rng(2).standard_normal(D), "fails"), (np.zeros(D), "untested")]
)
def test_an_offset_in_all_channels_or_none_has_no_rogue_one(offset, verdict):
    result = measured(offset)
    assert (result.metrics["worst"] is None) == (verdict == "untested")
    assert [claim.verdict for claim in FINDING.claims(result)] == [verdict, "untested", "untested"]


@pytest.mark.parametrize(("rank", "verdict"), [(1, "holds"), (2, "fails")])
def test_the_channel_that_another_finding_names_comes_first(rank, verdict):
    changed = {name: {"rank": rank, "channels": 400} for name in ("ln2", "frequency")}
    claims = claims_of(synthetic.measured_with(with_a_rogue_channel().metrics, changed))
    assert [claims[name].verdict for name in ("rogue-is-ln2", "rogue-is-frequency")] == [verdict] * 2


def test_the_mean_cosine_is_that_of_all_pairs():
    states = np.random.default_rng(0).standard_normal((9, 4)) + 1
    unit = states / np.linalg.norm(states, axis=1, keepdims=True)
    cosines = unit @ unit.T
    mean, parts = mean_cosine(states)
    assert mean == pytest.approx(cosines[~np.eye(9, dtype=bool)].mean())
    assert parts.sum() == pytest.approx(mean)
