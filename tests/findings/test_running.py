import numpy as np
import pytest

from generators.findings.inputs import Inputs, model_of
from generators.findings.running import mean_over_windows, ratio_over_windows
from tests import synthetic


def test_a_mean_and_its_interval():
    values = np.random.default_rng(0).normal(3, 1, 400)
    found = mean_over_windows(values, np.arange(400))
    assert found["mean"] == pytest.approx(values.mean())
    assert found["standard_error"] == pytest.approx(values.std(ddof=1) / 20, rel=0.1)
    assert found["high"] - found["low"] == pytest.approx(2 * 1.96 * found["standard_error"], rel=0.15)
    some = values[:50]  # one file alone is drawn window by window
    assert mean_over_windows(some, np.full(50, 7)) == mean_over_windows(some, np.arange(50))
    single = mean_over_windows(np.array([2.0]), np.array([0]))
    assert (single["mean"], single["low"], single["high"], single["standard_error"]) == (2, 2, 2, 0)


def test_windows_of_one_file_are_drawn_together():
    by_file = np.random.default_rng(0).normal(3, 1, 20)
    files = np.repeat(np.arange(20), 20)
    found = mean_over_windows(by_file[files], files)
    assert found["mean"] == pytest.approx(by_file.mean())
    assert found["standard_error"] == pytest.approx(by_file.std() / np.sqrt(20), rel=0.1)
    one_by_one = mean_over_windows(by_file[files], np.arange(400))
    assert found["high"] - found["low"] > 4 * (one_by_one["high"] - one_by_one["low"])


def test_an_interval_over_files_holds_the_truth():
    rng = np.random.default_rng(1)
    held = []
    for _ in range(200):
        sizes = rng.integers(1, 10, 30)
        files = np.repeat(np.arange(30), sizes)
        values = rng.normal(3, 1, 30)[files] + rng.normal(0, 0.3, len(files))
        found = mean_over_windows(values, files)
        held.append(found["low"] <= 3 <= found["high"])
    assert np.mean(held) == pytest.approx(0.94, abs=0.04)


def test_a_ratio_of_things_that_go_together_is_sure():
    whole = np.random.default_rng(0).uniform(1, 5, 50)
    ratio, low, high = ratio_over_windows(0.25 * whole, whole, np.arange(50) // 5)
    assert (ratio, low, high) == pytest.approx((0.25, 0.25, 0.25))
    assert ratio_over_windows(np.ones(5), np.zeros(5), np.arange(5)) == (0, 0, 0)


def test_a_finding_that_runs_a_model_it_was_not_given_is_shown():
    arch = synthetic.architecture(n_ctx=16, d_model=8, n_layer=1)
    with pytest.raises(ValueError, match="without declaring it"):
        model_of(Inputs({}, arch))
