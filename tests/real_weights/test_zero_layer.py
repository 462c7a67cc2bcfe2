"""Real models without their layers: MiniLM's exceptions, and what positions and the final norm make of it."""

import numpy as np
import pytest


def test_eighteen_tokens_of_minilm_yield_others(minilm_l6):
    m = minilm_l6["zero_layer"].metrics
    assert m["exceptions"] == 18
    assert f"{100 * m['self_share']:.2f}" == "99.94"
    assert m["exceptions_by_group"]["plural"] == 13
    assert m["baseline"]["self_share"] == 1
    assert m["equal"] == 0
    rows = minilm_l6["zero_layer"].measured.tables["exceptions"].named()
    assert {("soundtracks", "soundtrack"), ("matrices", "matrix")} <= {
        (row["readable"], row["best_readable"]) for row in rows
    }


def ways(real) -> dict[tuple[bool, int | None], dict]:
    return {(v["final_norm"], v["position"]): v for v in real["zero_layer"].metrics["variants"]}


def test_minilm_has_no_final_norm_and_stdlib_gpt2_has_one(minilm_l6, stdlib):
    assert list(ways(minilm_l6)) == [(False, place) for place in (None, 0, 1, 256, 511)]
    assert list(ways(stdlib)) == [(norm, place) for norm in (False, True) for place in (None, 0, 1, 128, 255)]


def test_most_tokens_of_minilm_yield_the_one_that_begins_texts_at_the_first_position(minilm_l6):
    first = ways(minilm_l6)[False, 0]
    assert first["readable"] == "[CLS]"
    assert first["absorbed"] == pytest.approx(0.67, abs=0.01)
    assert first["self_share"] + first["absorbed"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("model", "position"), [("minilm_l6", 0), ("minilm_l6", 511), ("stdlib", 0), ("stdlib", 128)]
)
def test_what_tokens_yield_at_positions_computed_the_plain_way(model, position, request):
    real = request.getfixturevalue(model)
    E, P = real.tensor("token_embedding"), real.tensor("position_embedding")
    ids = np.linspace(0, len(E) - 1, 1024).round().astype(int)
    plain = (E[ids] + P[position]) @ E.T
    found = ways(real)
    assert found[False, position]["self_share"] == pytest.approx(np.mean(plain.argmax(axis=1) == ids), abs=0.002)
    if (True, position) in found:
        rows = E[ids] + P[position]
        rows = (rows - rows.mean(axis=1, keepdims=True)) / np.sqrt(rows.var(axis=1, keepdims=True) + 1e-5)
        rows = rows * real.tensor("final_norm.gain") + real.tensor("final_norm.bias")
        share = np.mean((rows @ E.T).argmax(axis=1) == ids)
        assert found[True, position]["self_share"] == pytest.approx(share, abs=0.002)
