import json
from collections import Counter
from functools import partial
from importlib import import_module

import numpy as np
import pytest

from generators.findings.inputs import NotApplicableError
from generators.findings.zero_layer import FINDING as ZERO_LAYER
from generators.findings.zero_layer.measure import GROUPS, gaussian_like
from generators.tokens.vocabulary import PAIR_GROUPS
from tests import synthetic

MEASURING = import_module("generators.findings.zero_layer.measure")

V, D = 1500, 32
PAIRS = {10: 900, 20: 30, 1499: 0}
HUB, ABSORBED = 77, (5, 500, 501, 502)
vocabulary = partial(synthetic.vocabulary, V)


@pytest.fixture(autouse=True)
def _few_baseline_tokens(monkeypatch):
    monkeypatch.setattr(MEASURING, "BASELINE_TOKENS", 200)


def compute(E, U=None, known=None, tied=None, others=None, **arch):
    weights = {"token_embedding": E} | ({} if U is None else {"unembedding": U}) | (others or {})
    arch = synthetic.architecture(d_model=D, tied=U is None if tied is None else tied, **arch)
    return synthetic.measure(ZERO_LAYER, weights, arch, known)


def equal_norms(seed=0):
    """Return tokens of one length: each returns itself."""
    rows = np.random.default_rng(seed).standard_normal((V, D))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def planted(seed=0):
    """Return tokens of one length, but for some that have a shorter and nearly parallel twin, and one with four."""
    rng = np.random.default_rng([seed, 1])
    rows = equal_norms(seed)
    for short, long in [*PAIRS.items(), *((u, HUB) for u in ABSORBED)]:
        rows[short] = 0.6 * rows[long] + 0.1 * rng.standard_normal(D) / np.sqrt(D)
    return rows.astype(np.float32)


def mapped(result) -> dict[int, int]:
    return dict(zip(result.arrays["ids"].tolist(), result.arrays["best"].tolist(), strict=True))


def rows_of(result, table):
    return result.tables[table].named()


@pytest.mark.parametrize("seed", range(3))
def test_planted_pairs_and_the_hub_are_found(seed):
    E = planted(seed)
    result = compute(E)
    expected = {**PAIRS, **dict.fromkeys(ABSORBED, HUB)}
    assert mapped(result) == expected
    assert result.metrics["exceptions"] == len(expected)
    assert result.metrics["self_share"] == pytest.approx(1 - len(expected) / V)
    assert result.metrics["hubs"] == [{"id": HUB, "absorbs": len(ABSORBED)}]
    for row in rows_of(result, "exceptions"):
        u, v = (E[row[key]].astype(float) for key in ("id", "best_id"))
        assert row["margin"] == pytest.approx(u @ v / (u @ u) - 1, rel=1e-4)
        assert row["cosine"] == pytest.approx(u @ v / np.linalg.norm(u) / np.linalg.norm(v), rel=1e-4)
        assert (row["norm"], row["best_norm"]) == pytest.approx((np.linalg.norm(u), np.linalg.norm(v)), rel=1e-4)
    margins = [row["margin"] for row in rows_of(result, "exceptions")]
    assert margins == sorted(margins, reverse=True)


@pytest.mark.parametrize("tied", [True, False])
def test_every_exception_of_tokens_of_all_lengths(tied):
    rng = np.random.default_rng(2)
    E = (rng.standard_normal((V, D)) * np.exp(rng.standard_normal((V, 1)))).astype(np.float32)
    U = None if tied else (E + rng.standard_normal((V, D))).astype(np.float32)
    products = E.astype(float) @ (E if U is None else U).astype(float).T
    best = products.argmax(axis=1)
    others = np.flatnonzero(best != np.arange(V))
    result = compute(E, U)
    assert len(others) > 100
    assert mapped(result) == dict(zip(others.tolist(), best[others].tolist(), strict=True))
    counts = np.bincount(best[others])
    hubs = result.metrics["hubs"]
    assert [hub["absorbs"] for hub in hubs] == [n for n in sorted(counts, reverse=True)[:20] if n > 1]
    assert all(counts[hub["id"]] == hub["absorbs"] for hub in hubs)


def test_tokens_that_share_an_embedding_are_no_exceptions():
    E = equal_norms().astype(np.float32)
    E[1::2] = E[::2]
    plain = compute(E).metrics["variants"][0]
    assert plain["self_share"] == plain["same_number"] == 1
    assert plain["most_yielded"] is None
    E = equal_norms().astype(np.float32)
    E[[100, 200, 300]] = E[50]
    E[[400, 401]] = 0
    result = compute(E)
    assert result.metrics["exceptions"] == 0
    assert result.metrics["self_share"] == 1


def test_untied_models():
    E = equal_norms().astype(np.float32)
    result = compute(E, -E)
    assert result.metrics["exceptions"] == V
    assert result.tables["exceptions"].column("margin")[0] == np.inf, "the token's own product is negative"
    json.dumps(result.metrics, allow_nan=False)
    with pytest.raises(NotApplicableError, match="output embedding"):
        compute(E, tied=False)


def test_groups_say_how_tokens_differ():
    E = planted()
    raw_bytes = {10: b" word", 900: b"word", 20: b"cats", 30: b"cat", 1499: b"\xff\xfe", 0: b"\xff"}
    raw_bytes |= {HUB: b"HUB", 5: b"hub", 500: b"hubs", 501: b"12", 502: b"special"}
    result = compute(E, known=vocabulary(raw_bytes, special=[502]))
    groups = {row["id"]: row["group"] for row in rows_of(result, "exceptions")}
    of_pairs = {10: "leading space", 20: "plural", 1499: "byte or unprintable", 5: "case"}
    assert groups == of_pairs | dict.fromkeys((500, 501, 502), "other")
    assert result.metrics["exceptions_by_group"] == dict.fromkeys(of_pairs.values(), 1) | {"digits": 0, "other": 3}
    names = {row["id"]: (row["readable"], row["best_readable"]) for row in rows_of(result, "exceptions")}
    assert names[10] == ("␠word", "word")
    raw = {row["id"]: (row["raw_bytes"], row["best_raw_bytes"]) for row in rows_of(result, "exceptions")}
    assert raw[1499] == ("ff fe", "ff")
    assert rows_of(result, "hubs") == [{"id": HUB, "readable": "HUB", "raw_bytes": "48 55 42", "absorbs": 4}]
    assert GROUPS == PAIR_GROUPS
    assert "In all of these cases" in synthetic.alts(ZERO_LAYER, result)["zero-layer-norms"]


def test_without_a_vocabulary_tokens_go_by_id_and_a_long_table_has_the_clearest(monkeypatch):
    monkeypatch.setattr(MEASURING, "MOST_ROWS", 3)
    result = compute(planted())
    assert result.metrics["exceptions_by_group"] is None
    row = rows_of(result, "exceptions")[0]
    assert row["readable"] is row["best_readable"] is row["raw_bytes"] is row["group"] is None
    assert (len(result.tables["exceptions"].rows), len(result.arrays["ids"])) == (3, 7)
    assert "the 3 of 7 with the largest margin" in result.tables["exceptions"].title


@pytest.mark.parametrize("tied", [True, False])
def test_gaussian_tokens_have_the_mean_and_the_covariance(tied):
    rng = np.random.default_rng(3)
    E = 1 + rng.standard_normal((V, 4)) @ rng.standard_normal((4, 4))
    U = E @ rng.standard_normal((4, 4)) + 0.1 * rng.standard_normal((V, 4)) - 2
    inputs, outputs = gaussian_like(E.astype(np.float32), None if tied else U.astype(np.float32), 40_000)
    drawn, real = (inputs, E) if tied else (np.hstack([inputs, outputs]), np.hstack([E, U]))
    scale = real.std()
    np.testing.assert_allclose(drawn.mean(axis=0), real.mean(axis=0), atol=0.05 * scale)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(real.T), atol=0.05 * scale**2)


def test_the_baseline_is_that_of_the_same_number_of_tokens():
    rng = np.random.default_rng(4)
    E = (rng.standard_normal((V, D)) * np.exp(rng.standard_normal((V, 1)))).astype(np.float32)
    baseline = compute(E).metrics["variants"][0]
    chosen = E[np.linspace(0, V - 1, 200).round().astype(int)].astype(float)
    share = np.mean((chosen @ chosen.T).argmax(axis=1) == np.arange(200))
    assert baseline["same_number"] == pytest.approx(share)
    assert share < 0.9 < baseline["gaussian"]


def with_the_rest() -> dict[str, np.ndarray]:
    """Return positions, of which the first is long and near one token, and a final norm."""
    rng = np.random.default_rng(6)
    P = 0.1 * rng.standard_normal((64, D))
    P[0] = 3 * equal_norms()[HUB]
    return {
        "position_embedding": P.astype(np.float32),
        "final_norm.gain": rng.uniform(0.5, 2, D).astype(np.float32),
        "final_norm.bias": (0.3 * rng.standard_normal(D)).astype(np.float32),
    }


def normed(rows: np.ndarray, others: dict[str, np.ndarray], kind: str) -> np.ndarray:
    gain, bias = (others[f"final_norm.{name}"].astype(float) for name in ("gain", "bias"))
    centred = rows - rows.mean(axis=1, keepdims=True) if kind == "layer" else rows
    return centred / np.sqrt(np.mean(centred**2, axis=1, keepdims=True) + 1e-5) * gain + bias


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("tied", [True, False])
def test_what_tokens_yield_by_other_ways_computed_the_plain_way(tied, kind):
    rng = np.random.default_rng(7)
    E = (rng.standard_normal((V, D)) * np.exp(0.2 * rng.standard_normal((V, 1)))).astype(np.float32)
    U = None if tied else (E + rng.standard_normal((V, D))).astype(np.float32)
    others = with_the_rest()
    result = compute(E, U, others=others, norm=kind, embedding_scale=2.0)
    found = {(v["final_norm"], v["position"]): v for v in result.metrics["variants"]}
    assert list(found) == [(norm, place) for norm in (False, True) for place in (None, 0, 1, 32, 63)]
    ids = np.linspace(0, V - 1, 1024).round().astype(int)
    keys = (E if U is None else U).astype(float)
    for (norm, place), variant in found.items():
        rows = 2 * E[ids].astype(float)
        if place is not None:
            rows = rows + others["position_embedding"][place]
        best = ((normed(rows, others, kind) if norm else rows) @ keys.T).argmax(axis=1)
        assert variant["self_share"] == pytest.approx(np.mean(best == ids))
        others_yield = Counter(best[best != ids].tolist())
        assert variant["absorbed"] == pytest.approx(max(others_yield.values()) / len(ids))
        assert others_yield[variant["most_yielded"]] == max(others_yield.values())


def test_a_position_near_one_token_makes_it_the_answer_to_all():
    result = compute(equal_norms().astype(np.float32), known=vocabulary({HUB: b"<hub>"}), others=with_the_rest())
    first = next(v for v in result.metrics["variants"] if v["position"] == 0 and not v["final_norm"])
    assert (first["most_yielded"], first["readable"]) == (HUB, "<hub>")
    assert first["absorbed"] > 0.9
    assert ZERO_LAYER.figures(result) == [], "no token returns another but by other ways"


@pytest.mark.parametrize(("change", "ways"), [
    (lambda name, rows: rows, 10),
    (lambda name, rows: None if name == "position_embedding" else rows, 2),
    (lambda name, rows: 0 * rows if name == "position_embedding" else rows, 2),
    (lambda name, rows: None if name == "final_norm.gain" else rows, 5),
    (lambda name, rows: rows[..., :-1], 1),
], ids=["all there", "no positions", "positions alike", "no gain", "another width"])  # fmt: skip
def test_without_positions_or_a_final_norm_their_ways_are_left_out(change, ways):
    others = {name: change(name, rows) for name, rows in with_the_rest().items()}
    there = {name: rows for name, rows in others.items() if rows is not None}
    assert len(compute(planted(), others=there).metrics["variants"]) == ways
