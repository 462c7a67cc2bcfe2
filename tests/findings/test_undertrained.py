from dataclasses import replace

import numpy as np
import pytest

from generators.findings import plantings
from generators.findings.inputs import Inputs, NotApplicableError
from generators.findings.undertrained import FINDING
from generators.findings.undertrained.measure import matched, repeated
from generators.tokens.frequency import TokenFrequency
from tests import synthetic
from tests.findings.stand_in import StandIn, measure_run

N, D, V = 64, 48, 900
CLUMP = range(100, 130)
ARCH = replace(synthetic.architecture(n_ctx=N, d_model=D, n_layer=2), vocab_size=V)


def embedding():
    E = np.random.default_rng(1).standard_normal((V, D)).astype(np.float32)
    E[CLUMP] = 3.5 * plantings.orthonormal(D, 1, 0)[:, 0] + 0.05 * E[CLUMP]
    return E


def measured(never=(), predicts=True, counts=True, E=None):
    numbers = np.random.default_rng(0).integers(1, 1000, V).astype(float)
    numbers[CLUMP] = 0
    known = (TokenFrequency("counts", "counts", np.log1p(numbers), 1.0, False),) if counts else ()
    weights = {"token_embedding": embedding() if E is None else E}
    return measure_run(FINDING, ARCH, None, weights, known, kind="rotary", never=never, predicts=predicts)


def test_tokens_that_are_never_said():
    result = measured(never=CLUMP)
    m = result.metrics
    assert m["below"] == m["candidates"]
    assert m["found_by_indicator"]["precision"] == 1
    assert m["found_by_probability"]["recall"] == 1
    (claim,) = FINDING.claims(result)
    assert (claim.verdict, claim.value) == ("holds", 1.0)
    assert claim.chance.median == m["others_unspeakable"] / m["others"] < 0.5
    unseen = m["unseen"]
    assert (unseen["count"], unseen["unspeakable"]) == (len(CLUMP), len(CLUMP))
    assert unseen["largest"] < 1e-6 < unseen["median_seen"]
    assert unseen["auc"] == unseen["auc_low"] == 1
    assert unseen["auc_indicator"] > 0.9
    for figure in FINDING.figures(result):
        figure.draw()


def test_candidates_that_are_said_like_others_and_models_without_counts_or_a_head():
    result, m = measured(), measured(counts=False).metrics
    (claim,) = FINDING.claims(result)
    assert claim.verdict == "fails"
    assert result.metrics["found_by_indicator"]["precision"] == 1
    assert 0.2 < result.metrics["unseen"]["auc"] < 0.8
    assert m["found_by_indicator"] is m["unseen"] is None
    assert m["matched_by"] == "token index"
    with pytest.raises(NotApplicableError, match="no head"):
        measured(predicts=False)


def test_where_no_tokens_huddle_the_shortest_are_candidates():
    E = np.random.default_rng(1).standard_normal((V, D)).astype(np.float32)
    result = measured(E=E)
    assert result.metrics["indicator"] == "norm of the input embedding"
    norms = np.linalg.norm(E, axis=1)
    assert result.tables["candidates"].rows[0][0] == int(np.argmin(norms))


def test_controls_are_the_nearest_in_frequency_each_once():
    log_frequency = np.array([0.0, 0.1, 5.0, 5.1, 5.2, 9.0, np.nan])
    allowed = np.ones(7, bool)
    assert matched(np.array([0, 3]), log_frequency, allowed).tolist() in ([1, 2], [1, 4])
    assert len(set(matched(np.array([2, 3, 4]), log_frequency, allowed).tolist())) == 3
    allowed[1] = False
    assert 1 not in matched(np.array([0]), log_frequency, allowed)
    assert len(matched(np.arange(6), log_frequency, np.ones(7, bool))) == 0


class Repeater(StandIn):
    """Repeats the token that a prompt asks for, wherever it is asked."""

    def __init__(self, n_ctx):
        super().__init__(replace(ARCH, n_ctx=n_ctx), None, kind="rotary", length=N)
        self.asked = []  # lengths of prompts

    def logits(self, ids, see):
        assert ids.shape[1] <= self.architecture.n_ctx
        self.asked.append(ids.shape[1])
        found = np.zeros((*ids.shape, V), np.float32)
        for between in (", please. ", "\nOutput: ", '" is the same as "'):
            part = list(self.encode(between))
            if ids[0, -len(part) :].tolist() == part:
                found[np.arange(len(ids)), -1, ids[:, -len(part) - 1]] = 30
        see(0, found)


# Each character is a token here: for k examples, the prompts need 17 + 19 k, 15 + 17 k and 20 + 23 k positions.
@pytest.mark.parametrize(
    ("n_ctx", "lengths"),
    [(31, []), (32, [32]), (36, [36, 32]), (52, [36, 49, 43]), (111, [93, 83, 89]), (112, [93, 83, 112])],
)
def test_examples_that_fit_a_prompt(n_ctx, lengths):
    run = Repeater(n_ctx)
    back, probability = repeated(run, np.arange(300, 305), np.arange(100, 140))
    assert run.asked == lengths
    assert back.all() == bool(lengths) and (probability > 0.99).all() == bool(lengths)


@pytest.mark.parametrize(
    ("n_ctx", "repeats"), [(24, None), (40, dict.fromkeys(("frequent", "candidates", "controls"), 1.0))]
)
def test_a_model_with_too_few_positions_is_not_asked_to_repeat(n_ctx, repeats):
    run = Repeater(n_ctx)
    result = FINDING.measure(Inputs({"token_embedding": embedding()}, run.architecture, None, (), run))
    assert result.metrics["prompted"] == repeats
    assert bool(run.asked) == (repeats is not None)
