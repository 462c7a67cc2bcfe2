from functools import partial

import numpy as np
import pytest

from generators.findings.position_line import FINDING
from generators.findings.position_line.figures import upright
from generators.findings.position_line.measure import channel_shares, first_component
from tests import synthetic
from tests.findings.stand_in import measure_run
from tests.stand_in_nulls import states_about

N, D, LAYERS = 60, 112, 2
ARCH = synthetic.architecture(n_ctx=N, d_model=D, n_layer=LAYERS)
CHANNEL = 5
claims_of = partial(synthetic.by_id, FINDING)
CLAIMS = ("position-is-a-line", "one-channel-carries-position", "position-channel-needed")


def measured(states, costs, **weights):
    return measure_run(FINDING, ARCH, None, weights, states=states, costs=costs, affords=128)


def planted(strength, direction):
    """Return a stream in which position is a straight line in a direction, `strength` times as large as noise."""
    return states_about(np.linspace(-1.7, 1.7, N)[:, None] * direction * strength, 0)


def costs_of(seed, needed=None):
    costs = dict(enumerate(np.random.default_rng(seed).gamma(2, 0.02, D)))
    return costs if needed is None else costs | {CHANNEL: needed}


def test_a_planted_line_in_one_channel_is_found():
    (result,) = examples()
    row = result.metrics["layers"][1]
    assert row["channel"] == CHANNEL
    assert row["r"] > 0.999
    assert row["line_share"] > 0.95
    assert (row["ln1_gain"], row["ln2_gain"]) == (4, None)
    claims = claims_of(result)
    assert [claims[name].verdict for name in CLAIMS] == ["holds"] * 3
    assert claims["position-channel-needed"].value == pytest.approx(1.5, abs=0.05)


def examples():
    gain = {"blocks.1.ln1.gain": 1 + 3 * np.eye(D)[CHANNEL]}
    yield measured(planted(10, np.eye(D)[CHANNEL]), costs_of(0, needed=1.5), **gain)


def test_a_line_across_all_channels_has_none_that_carries_it_and_a_circle_is_no_line():
    direction = np.random.default_rng(1).standard_normal(D)
    claims = claims_of(measured(planted(10, direction / np.linalg.norm(direction)), costs_of(1)))
    assert [claims[name].verdict for name in CLAIMS] == ["holds", "fails", "untested"]
    angle = np.linspace(0, 2 * np.pi, N)[:, None]
    circle = 10 * (np.cos(angle) * np.eye(D)[0] + np.sin(angle) * np.eye(D)[1])
    claims = claims_of(measured(states_about(circle, 0), costs_of(2)))
    assert claims["position-is-a-line"].verdict == "fails"


@pytest.mark.parametrize("needed", [0.05, 1.0])
def test_a_channel_is_needed_if_it_costs_more_than_the_others(needed):
    claims = claims_of(measured(planted(10, np.eye(D)[CHANNEL]), costs_of(3, needed=needed)))
    assert claims["position-channel-needed"].verdict == ("holds" if needed == 1 else "fails")


def test_few_channels_leave_the_need_untested():
    arch = synthetic.architecture(n_ctx=N, d_model=48, n_layer=LAYERS)
    assert claims_of(measure_run(FINDING, arch, shares=[0.5] * 3))["position-channel-needed"].verdict == "untested"


def test_the_first_component_rises_with_position_at_the_same_spread():
    line = np.linspace(0, 1, 9)
    scores = upright(
        np.stack([np.column_stack([sign * line * size, line, line]) for sign, size in ((1, 1), (-1, 5))])
    )
    np.testing.assert_allclose(scores[0, :, 0], scores[1, :, 0])
    assert (np.diff(scores[:, :, 0]) > 0).all()
    assert not channel_shares(np.ones((5, 3))).any(), "there is no curve"
    assert first_component(np.ones((5, 3)))[0] == 0
