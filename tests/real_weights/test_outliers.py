"""The clumps of real vocabularies: what is known of them, and what is inferred."""

import numpy as np
import pytest


def test_the_clump_of_minilm_holds_its_unused_tokens(minilm_l6):
    m = minilm_l6["outliers"].metrics
    clump, claim = m["clump"], minilm_l6["outliers"].claims["clump"]
    assert clump["named_unused"]["tokens"] == 994
    assert clump["named_unused"]["in_clump"] >= 0.95 * 994
    assert clump["named_unused"]["in_clump"] == pytest.approx(993, abs=1)
    assert clump["size"] == pytest.approx(1755, abs=5)
    assert (claim.verdict, claim.chance.limit) == ("holds", 0)
    others = clump["size"] - clump["named_unused"]["in_clump"]
    assert f"the other {others} were probably hardly trained either." in claim.answer


def test_the_clump_of_stdlib_gpt2_is_what_it_was_never_trained_on(stdlib):
    m = stdlib["outliers"].metrics
    assert m["known_unused"] == {
        "count": 125, "in_clump": 125, "share": 1.0, "others_in_clump": 0, "largest_count_in_clump": 0,
    }  # fmt: skip
    claim = stdlib["outliers"].claims["clump"]
    assert (claim.verdict, claim.value) == ("holds", 125)
    assert "that never occur in the training text are among them, and no other." in claim.answer


@pytest.mark.parametrize("model", ["stdlib", "minilm_l6"])
def test_the_clump_lies_where_positions_do_more_than_other_tokens(model, request):
    real = request.getfixturevalue(model)
    m = real["outliers"].metrics
    found, E = m["in_positions"], real.tensor("token_embedding")
    top = np.linalg.svd(real.tensor("position_embedding"))[2][: found["k"]]
    shares = np.sum((E @ top.T) ** 2, axis=1) / np.sum(E**2, axis=1)
    assert found["members"] == pytest.approx(shares[m["clump"]["members"]].mean(), rel=1e-4)
    assert found["others"] == pytest.approx(np.delete(shares, m["clump"]["members"]).mean(), rel=1e-4)
    assert found["members"] > found["others"]


def test_the_longest_tokens_of_stdlib_gpt2_are_those_it_never_saw(stdlib):
    ends = stdlib["outliers"].metrics["ends"]
    assert (ends["longest"]["in_clump"], ends["shortest"]["in_clump"]) == (19, 0)
    assert ends["longest"]["by_frequency"] < 0.01 < 0.9 < ends["shortest"]["by_frequency"]
