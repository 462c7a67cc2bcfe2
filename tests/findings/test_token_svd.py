"""Token SVD: a planted mean and planted clouds recovered; areas and discriminants computed the plain way."""

import numpy as np
import pytest

from generators.findings.finding import NotApplicableError, TokenFacts
from generators.findings.token_svd import TOKEN_SVD, auc
from generators.tokens.vocabulary import Vocabulary
from tests import synthetic

V, D = 1500, 24


def vocabulary(marked: np.ndarray, special: np.ndarray | None = None) -> TokenFacts:
    n = len(marked)
    none = np.zeros(n, bool) if special is None else special
    words = tuple(f"t{i}" for i in range(n))
    texts = tuple(word.encode() for word in words)
    return TokenFacts(
        Vocabulary(texts=texts, readable=words, groups=("letters",) * n, marks_space=marked, special=none, digest="0")
    )


def compute(E: np.ndarray, facts: TokenFacts | None = None):
    weights = {"token_embedding": E.astype(np.float32)}
    return TOKEN_SVD.compute(weights, synthetic.architecture(d_model=E.shape[1]), facts or TokenFacts())


def verdicts(result) -> dict[str, str]:
    return {claim.id: claim.verdict for claim in TOKEN_SVD.claims(result)}


def planted(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Tokens about a large mean, in two clouds apart along a direction of their own."""
    marked = rng.random(V) < 0.6
    E = 0.3 * rng.standard_normal((V, D))
    E[:, 0] += 10
    E[:, 1] += np.where(marked, 2.0, -2.0)
    return E, marked


def test_the_planted_mean_and_clouds_are_found():
    E, marked = planted(np.random.default_rng(0))
    result = compute(E, vocabulary(marked))
    assert verdicts(result) == {"first-is-mean": "holds", "space-plane": "holds"}
    assert result.metrics["auc"]["second"] > 0.999
    assert result.metrics["auc"]["held_out_all_channels"] > 0.999
    assert result.metrics["space_share"] == pytest.approx(marked.mean())


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_neither(seed):
    rng = np.random.default_rng(seed)
    result = compute(rng.standard_normal((V, D)), vocabulary(rng.random(V) < 0.5))
    assert verdicts(result) == {"first-is-mean": "fails", "space-plane": "fails"}
    assert result.metrics["auc"]["held_out_all_channels"] < 0.6


def test_without_a_tokenizer_or_with_one_kind_only_the_clouds_are_untested():
    E, marked = planted(np.random.default_rng(0))
    for facts in (TokenFacts(), vocabulary(np.ones(V, bool)), vocabulary(marked, special=~marked)):
        result = compute(E, facts)
        assert verdicts(result)["space-plane"] == "untested"
        assert verdicts(result)["first-is-mean"] == "holds"


def test_special_tokens_do_not_count():
    E, marked = planted(np.random.default_rng(0))
    special = np.zeros(V, bool)
    special[:50] = True
    E[:50, 1] *= -5
    spoiled = compute(E, vocabulary(marked)).metrics["auc"]["second"]
    assert compute(E, vocabulary(marked, special)).metrics["auc"]["second"] > spoiled


def test_auc_is_the_share_of_pairs_in_order():
    rng = np.random.default_rng(1)
    scores = np.round(rng.standard_normal(60), 1)
    kind = rng.integers(-1, 2, 60)
    ones, zeros = scores[kind == 1], scores[kind == 0]
    pairs = (ones[:, None] > zeros).mean() + (ones[:, None] == zeros).mean() / 2
    assert auc(scores, kind) == pytest.approx(max(pairs, 1 - pairs))


def test_the_first_direction_is_that_of_a_full_svd():
    E, _ = planted(np.random.default_rng(4))
    first = np.linalg.svd(E.astype(np.float32))[2][0]
    mean = E.mean(axis=0)
    assert compute(E).metrics["cosine_first_mean"] == pytest.approx(
        abs(first @ mean) / np.linalg.norm(mean), abs=1e-5
    )


def test_an_embedding_of_zeros_has_no_directions():
    with pytest.raises(NotApplicableError):
        compute(np.zeros((V, D)))


def test_every_figure_is_drawn():
    E, marked = planted(np.random.default_rng(0))
    for facts in (TokenFacts(), vocabulary(marked)):
        for figure in TOKEN_SVD.figures(compute(E, facts)):
            assert figure.alt
            figure.draw()
