from dataclasses import replace

import numpy as np
import pytest

from generators.findings import plantings
from generators.findings.inputs import Inputs, NotApplicableError
from generators.findings.undertrained import FINDING
from generators.findings.undertrained.measure import matched, repeated
from generators.tokens.frequency import TokenFrequency
from generators.tokens.vocabulary import ModelVocabulary
from tests import synthetic
from tests.findings.stand_in import StandIn, measure_run

N, D, V = 64, 48, 900
CLUMP = range(100, 130)
ARCH = replace(synthetic.architecture(n_ctx=N, d_model=D, n_layer=2), vocab_size=V)


def embedding():
    E = np.random.default_rng(1).standard_normal((V, D)).astype(np.float32)
    E[CLUMP] = 3.5 * plantings.orthonormal(D, 1, 0)[:, 0] + 0.05 * E[CLUMP]
    return E


class Asked(StandIn):
    """Repeats any token that a prompt asks for, but those in `never`."""

    def __init__(self, never=(), can_repeat=True, n_ctx=N, **given):
        super().__init__(replace(ARCH, n_ctx=n_ctx), None, kind="rotary", length=min(N, n_ctx), never=never, **given)
        self.lost, self.can_repeat = set(never), can_repeat
        self.asked = []  # lengths of prompts

    def logits(self, ids, see):
        assert ids.shape[1] <= self.architecture.n_ctx
        self.asked.append(ids.shape[1])
        found = np.zeros((*ids.shape, V), np.float32)
        for between in (", please. ", "\nOutput: ", '" is the same as "'):
            part = list(self.encode(between))
            if ids[0, -len(part) :].tolist() == part:
                wanted = ids[:, -len(part) - 1]
                said = np.array([self.can_repeat and token not in self.lost for token in wanted.tolist()])
                found[np.arange(len(ids))[said], -1, wanted[said]] = 30
                found[np.arange(len(ids))[~said], -1, 0] = 30
        see(0, found)


def asked(never=(), E=None, vocabulary=None, **given):
    run = Asked(never, **given)
    weights = {"token_embedding": embedding() if E is None else E}
    return FINDING.measure(Inputs(weights, run.architecture, vocabulary, (counted(),), run))


def counted():
    numbers = np.random.default_rng(0).integers(1, 1000, V).astype(float)
    numbers[CLUMP] = 0
    return TokenFrequency("counts", "counts", np.log1p(numbers), 1.0, False)


def examples():
    yield asked(never=CLUMP, n_ctx=200)


def test_tokens_that_are_never_said():
    result = asked(never=CLUMP, n_ctx=200)
    m = result.metrics
    (claim,) = FINDING.claims(result)
    assert (m["clump"], m["candidates"], m["controls"]) == (len(CLUMP), len(CLUMP), 6 * len(CLUMP))
    assert (claim.verdict, claim.value, m["repeats"]) == ("holds", 1.0, pytest.approx(1))
    assert claim.chance.median == 0
    unseen = m["unseen"]
    assert (unseen["count"], unseen["unspeakable"]) == (len(CLUMP), len(CLUMP))
    assert unseen["largest"] < 1e-6 < unseen["median_seen"]
    assert unseen["auc"] == unseen["auc_low"] == 1
    assert unseen["auc_indicator"] > 0.9


@pytest.mark.parametrize(("never", "can_repeat", "verdict", "said"), [
    ([], True, "fails", "0 of"), (CLUMP, False, "untested", "can't repeat"),
    ([*CLUMP, *(token for token in range(V) if token % 5 < 2)], True, "untested", "nothing distinguishes the 30 "),
])  # fmt: skip
def test_candidates_that_are_said_or_say_nothing(never, can_repeat, verdict, said):
    (claim,) = FINDING.claims(asked(never, can_repeat=can_repeat, n_ctx=200))
    assert claim.verdict == verdict
    assert said in claim.answer


def test_equal_rows_are_one_candidate_and_one_is_too_few():
    E = embedding()
    E[CLUMP] = E[CLUMP[0]]
    result = asked(never=CLUMP, E=E, n_ctx=200)
    assert (result.metrics["clump"], result.metrics["candidates"]) == (len(CLUMP), 1)
    (claim,) = FINDING.claims(result)
    assert claim.verdict == "untested"
    assert "1 candidate and 200 other tokens" in claim.answer


def test_tokens_of_a_kind_that_has_no_others_are_no_candidates():
    words = tuple(f"t{i}" for i in range(V))
    groups = tuple("bytes" if i in CLUMP[:20] else "words" for i in range(V))
    raw = tuple(word.encode() for word in words)
    vocabulary = ModelVocabulary(raw, words, groups, marks_space=np.zeros(V, bool), special=np.zeros(V, bool))
    result = asked(never=CLUMP, vocabulary=vocabulary, n_ctx=200)
    assert result.tables["candidates"].column("id") == list(CLUMP[20:])
    assert result.metrics["controls"] == 200


@pytest.mark.parametrize(("candidates", "controls", "verdict"), [
    (50, 1, "untested"), (3, 3, "untested"), (3, 60, "holds"), (7, 3, "holds"),
])  # fmt: skip
def test_few_tokens_are_told_apart_exactly(candidates, controls, verdict):
    """Fisher's exact test: 50 of 50 beside 0 of 1 happens by chance once in 51, 3 of 3 beside 0 of 3 once in 20."""
    m = asked(never=CLUMP, n_ctx=200).metrics
    numbers = {"candidates": candidates, "unspeakable": candidates, "controls": controls, "controls_unspeakable": 0}
    (claim,) = FINDING.claims(synthetic.measured_with(m, **numbers))
    assert claim.verdict == verdict


def test_models_without_counts_or_without_a_head():
    weights = {"token_embedding": embedding()}
    m = measure_run(FINDING, ARCH, None, weights).metrics
    assert m["unseen"] is None
    with pytest.raises(NotApplicableError, match="no head"):
        measure_run(FINDING, ARCH, None, weights, predicts=False)


def test_controls_are_the_nearest_in_frequency_each_once():
    log_frequency = np.array([0.0, 0.1, 5.0, 5.1, 5.2, 9.0, np.nan])
    allowed = np.array([False, True, True, False, True, True, False])
    assert matched(np.array([0, 3]), log_frequency, allowed).tolist() in ([1, 2], [1, 4])
    assert matched(np.array([6]), log_frequency, allowed).tolist() == [1], "an unknown frequency counts as the lowest"
    assert sorted(matched(np.arange(7), log_frequency, allowed).tolist()) == [1, 2, 4, 5]


# Each character is a token here: for k examples, the prompts need 17 + 19 k, 15 + 17 k and 20 + 23 k positions.
@pytest.mark.parametrize(
    ("n_ctx", "lengths"),
    [(31, []), (32, [32]), (36, [36, 32]), (52, [36, 49, 43]), (65, [55, 49, 43]), (112, [55, 49, 66])],
)
def test_examples_that_fit_a_prompt(n_ctx, lengths):
    run = Asked(n_ctx=n_ctx)
    probability = repeated(run, np.arange(300, 305))
    assert run.asked == lengths
    assert (probability > 0.99).all() == bool(lengths)


@pytest.mark.parametrize(("n_ctx", "repeats"), [(24, 0), (40, 1)])
def test_a_model_with_too_few_positions_is_not_asked_to_repeat(n_ctx, repeats):
    run = Asked(n_ctx=n_ctx)
    result = FINDING.measure(Inputs({"token_embedding": embedding()}, run.architecture, None, (), run))
    assert result.metrics["repeats"] == pytest.approx(repeats)
    assert bool(run.asked) == bool(repeats)
