import numpy as np
import pytest

from generators.base.runs import Run, Text, WindowLoss, Windows
from generators.findings.inputs import Inputs, model_of
from generators.findings.running import mean_over_windows, ratio_over_windows
from tests import synthetic
from tests.findings.stand_in import StandIn


def test_a_mean_and_its_interval():
    values = np.random.default_rng(0).normal(3, 1, 400)
    found = mean_over_windows(values)
    assert found["mean"] == pytest.approx(values.mean())
    assert found["standard_error"] == pytest.approx(values.std(ddof=1) / 20)
    assert found["high"] - found["low"] == pytest.approx(2 * 1.96 * found["standard_error"], rel=0.15)


def test_a_ratio_of_things_that_go_together_is_sure():
    whole = np.random.default_rng(0).uniform(1, 5, 50)
    ratio, low, high = ratio_over_windows(0.25 * whole, whole)
    assert (ratio, low, high) == pytest.approx((0.25, 0.25, 0.25))


def test_shares_of_nothing():
    assert ratio_over_windows(np.ones(5), np.zeros(5)) == (0, 0, 0)


def test_one_window():
    found = mean_over_windows(np.array([2.0]))
    assert (found["mean"], found["low"], found["high"], found["standard_error"]) == (2, 2, 2, 0)


def test_a_finding_that_runs_a_model_it_was_not_given_is_shown():
    arch = synthetic.architecture(n_ctx=16, d_model=8, n_layer=1)
    with pytest.raises(ValueError, match="without declaring it"):
        model_of(Inputs({}, arch))


def test_the_stand_in_is_a_model_as_findings_run_it():
    stand_in = StandIn(synthetic.architecture(n_ctx=16, d_model=8, n_layer=1), None, length=16)
    windows = stand_in.windows(2, 0)
    assert isinstance(stand_in, Run)
    assert isinstance(stand_in.text, Text)
    assert isinstance(windows, Windows)
    assert isinstance(stand_in.loss(windows), WindowLoss)
