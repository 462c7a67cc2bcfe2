from functools import partial

import numpy as np
import pytest

from generators.findings.induction import FINDING
from generators.findings.induction.measure import sequences
from generators.findings.inputs import Inputs, NotApplicableError
from tests import synthetic
from tests.findings.stand_in import StandIn, measure_run
from tests.stand_in_nulls import Repeating, evenly

N, LAYERS, HEADS = 240, 3, 2
HALF = N // 2
ARCH = synthetic.architecture(n_ctx=N, n_layer=LAYERS, n_head=HEADS)
claims_of = partial(synthetic.by_id, FINDING)
PREVIOUS, COPYING = (0, 1), (2, 0)


def attend(copying, fed_by=PREVIOUS):
    """Return attention with a previous-token head, and a head that copies while `fed_by` isn't silenced."""

    def of(layer, ids, silenced):
        weights = np.tile(evenly(N), (len(ids), HEADS, 1, 1))
        weights *= 1 + 0.1 * np.random.default_rng([0, layer]).standard_normal((1, HEADS, N, N))
        looks = {PREVIOUS: (0.6, 1), COPYING: (copying * (0.1 if fed_by in silenced else 1), HALF - 1)}
        for head in range(HEADS):
            share, offset = looks.get((layer, head), (0.0, 1))
            weights[:, head] = (1 - share) * weights[:, head] + share * np.eye(N, k=-offset)
        return weights

    return of


def measured(attend):
    return measure_run(FINDING, ARCH, attend=attend, affords=6)


def with_many_sets(result):
    """Return the same with as many sets of other heads as a model with more heads has."""
    feeding = result.metrics["feeding"]
    return synthetic.measured_with(result.metrics, feeding={**feeding, "others": feeding["others"] * 10})


@pytest.mark.parametrize(("copying", "verdict"), [(0.4, "holds"), (0.08, "partly"), (0.0, "fails")])
def test_a_planted_head_is_found(copying, verdict):
    result = measured(attend(copying))
    row = result.metrics["heads"][4]
    assert row["copying"] == pytest.approx(copying + (1 - copying) * result.metrics["uniform"], abs=0.003)
    assert claims_of(result)["fed-by-previous-token"].verdict == "untested", "three other heads are too few"
    claims = claims_of(with_many_sets(result) if copying else result)
    assert claims["some-head-copies"].verdict == verdict
    assert claims["fed-by-previous-token"].verdict == ("holds" if copying else "untested")


def test_what_feeds_the_head_is_found():
    result = measured(attend(0.4))
    feeding = result.metrics["feeding"]
    assert feeding["heads"] == ["L0H1"]
    assert (feeding["strongest"], feeding["drop"]) == pytest.approx((0.6, 0.9), abs=0.02)
    assert feeding["others"] == pytest.approx([0] * 3, abs=0.01)
    assert "p = 0.032" in claims_of(with_many_sets(result))["fed-by-previous-token"].answer
    other = with_many_sets(measured(attend(0.4, fed_by=(1, 0))))
    assert claims_of(other)["fed-by-previous-token"].verdict == "fails"


def test_the_second_half_is_the_first():
    run = StandIn(ARCH, None, kind=None, length=N)
    ids, begins, half = sequences(run, N)
    assert (begins, half) == (0, HALF)
    np.testing.assert_array_equal(ids[:, :half], ids[:, half:])
    assert len(np.unique(ids[:, :half])) > 0.8 * min(400, ids[:, :half].size)


def examples():
    run = Repeating(ARCH, None, kind=None, length=N, attend=attend(0.4), affords=4)
    run.parts = np.zeros((LAYERS, HEADS))
    run.parts[COPYING] = 1  # nothing is predicted without it
    return [FINDING.measure(Inputs({}, ARCH, run=run))]


def test_a_model_that_repeats_predicts_the_second_half_better():
    (result,) = examples()
    copying = result.metrics["copying"]
    assert copying["benefit"]["mean"] == pytest.approx(0.9 * np.log(400), rel=0.02)
    assert copying["lost"] == pytest.approx(1)
    assert copying["others"] == pytest.approx([0] * 4)
    assert claims_of(result)["repeats-need-that-head"].verdict == "holds"
    near = {**copying, "lost": 0.24, "low": 0.22, "high": 0.27}  # about a quarter more than the others
    found = synthetic.measured_with(result.metrics, copying=near)
    claim = claims_of(found)["repeats-need-that-head"]
    assert (claim.verdict, claim.close, claim.partly_threshold) == ("fails", True, pytest.approx(0.25))


def test_short_contexts_are_refused():
    with pytest.raises(NotApplicableError, match="short"):
        sequences(StandIn(ARCH, None, kind=None, length=N), 30)
