"""Token SVD: a planted mean and planted clouds recovered; areas and discriminants computed the plain way."""

import json

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError
from scipy.stats import rankdata

from generators.findings.contract import NotApplicableError
from generators.findings.token_svd import FINDING as TOKEN_SVD
from generators.findings.token_svd.measure import auc
from generators.site.words import caption
from generators.tokens.vocabulary import Vocabulary
from tests import synthetic

V, D = 1500, 24


def vocabulary(marked: np.ndarray, special: np.ndarray | None = None) -> Vocabulary:
    n = len(marked)
    none = np.zeros(n, bool) if special is None else special
    names = tuple(f"t{i}" for i in range(n))
    texts = tuple(name.encode() for name in names)
    return Vocabulary(
        texts=texts, readable=names, groups=("letters",) * n, marks_space=marked, special=none, digest="0"
    )


def compute(E: np.ndarray, known: Vocabulary | None = None):
    weights = {"token_embedding": E.astype(np.float32)}
    return synthetic.measure(TOKEN_SVD, weights, synthetic.architecture(d_model=E.shape[1]), known)


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
    for known in (None, vocabulary(np.ones(V, bool)), vocabulary(marked, special=~marked)):
        result = compute(E, known)
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
    kind = rng.integers(-1, 2, 60, np.int8)
    ones, zeros = scores[kind == 1], scores[kind == 0]
    pairs = (ones[:, None] > zeros).mean() + (ones[:, None] == zeros).mean() / 2
    assert auc(scores, kind) == pytest.approx(max(pairs, 1 - pairs))


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_auc_is_that_of_a_sum_of_ranks(precision):
    rng = np.random.default_rng(2)
    scores = np.round(rng.standard_normal(30_000), 3).astype(precision)
    kind = rng.integers(-1, 2, len(scores), np.int8)
    chosen, n_1, n_0 = scores[kind >= 0], np.sum(kind == 1), np.sum(kind == 0)
    area = (rankdata(chosen)[kind[kind >= 0] == 1].sum() - n_1 * (n_1 + 1) / 2) / (n_1 * n_0)
    assert auc(scores, kind) == pytest.approx(max(area, 1 - area), abs=1e-12)


def test_auc_of_equal_scores_is_chance():
    assert auc(np.zeros(60), np.arange(60, dtype=np.int8) % np.int8(2)) == 0.5


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
    for known in (None, vocabulary(marked)):
        result = compute(E, known)
        for figure in TOKEN_SVD.figures(result):
            told = caption("token_svd", figure.name, result)
            assert told.how_to_read
            assert told.alt
            figure.draw()


def test_what_the_pictures_show_is_told():
    E, marked = planted(np.random.default_rng(0))
    result = compute(E, vocabulary(marked))
    plane, first = (caption("token_svd", name, result).alt for name in ("svd-plane", "svd-first"))
    assert plane.endswith("with and without the space marker. AUC 1.00.")
    assert first.endswith(f"its cosine with the mean is {result.metrics['cosine_first_mean']:.3f}.")
    unknown = caption("token_svd", "svd-plane", compute(E)).alt
    assert unknown.endswith("Which tokens carry the space marker is not known.")


def test_metrics_are_of_their_type_when_they_come_back_from_json():
    E, marked = planted(np.random.default_rng(0))
    metrics = TypeAdapter(TOKEN_SVD.metrics)
    for known in (None, vocabulary(marked)):
        stored = json.loads(json.dumps(compute(E, known).metrics, allow_nan=False))
        assert metrics.validate_python(stored, strict=True) == stored
    for missing in stored:
        with pytest.raises(ValidationError, match=missing):
            metrics.validate_python({key: value for key, value in stored.items() if key != missing})
    with pytest.raises(ValidationError, match="plane"):
        metrics.validate_python({**stored, "auc": {k: v for k, v in stored["auc"].items() if k != "plane"}})
