"""Gains of real weights: the values that were measured apart from the atlas, and where the channel stands."""

import numpy as np
import pytest

from tests.real_weights.measured import judges, row, shows


def ln2(key):
    return lambda metrics: metrics["consistent_channel"]["ln2"][key]


GPT2 = [
    row("ln1-of-layer-0", "-0.879", lambda m: m["correlation"]["ln1"]["0"]),
    row("ln2-channel", "138", ln2("channel")),
    row("ln2-layers", "9", ln2("layers_topped")),
    row("ln2-of-layers", "12", ln2("n_layers")),
    row("ln2-smallest-ratio", "1.58", lambda m: min(ln2("ratios")(m))),
    row("ln2-largest-ratio", "2.74", lambda m: max(ln2("ratios")(m))),
]
MINILM = [
    row("ln2-channel", "99", ln2("channel")),
    row("ln2-layers", "4", ln2("layers_topped")),
    row("ln2-of-layers", "6", ln2("n_layers")),
]


test_numbers = shows("gains", gpt2=GPT2, minilm_l6=MINILM)


# ln1-dials-down, ln2-one-channel
test_verdicts = judges(
    "gains",
    gpt2="holds holds holds",
    minilm_l6="fails holds fails",
    gpt1="untested partly fails",
    stdlib="fails fails fails",
)


def test_gpt2_turns_positions_down_far_beyond_turned_axes(gpt2):
    claim = gpt2["gains"].claims["ln1-dials-down"]
    assert claim.interval[0] <= claim.value <= claim.interval[1] < -0.8
    assert claim.chance.draws >= 100
    assert -0.2 < claim.chance.limit < claim.chance.median < 0.05


@pytest.mark.parametrize("model", ["gpt2", "minilm_l6", "stdlib"])
def test_the_first_norm_against_the_spread_of_positions_as_numpy_correlates_them(model, request):
    real = request.getfixturevalue(model)
    std, gain = real.tensor("position_embedding")[1:].std(axis=0), np.abs(real.tensor("blocks.0.ln1.gain"))
    expected = np.corrcoef(np.log10(std), np.log10(gain))[0, 1]
    assert real["gains"].metrics["correlation"]["ln1"]["0"] == pytest.approx(expected)


def topped(real, channel):
    """Return the layers in which a channel has the largest |gain| of ln2, by how much, as they are in the file."""
    gains = np.abs([real.tensor(f"blocks.{i}.ln2.gain") for i in range(real.opened.checkpoint.architecture.n_layer)])
    layers = np.flatnonzero(gains.argmax(axis=1) == channel)
    ordered = np.sort(gains[layers], axis=1)
    return layers.tolist(), ordered[:, -1] / ordered[:, -2]


def test_ln2_of_gpt2_is_topped_by_138_in_layers_2_to_10(gpt2):
    layers, ratios = topped(gpt2, 138)
    assert layers == list(range(2, 11))
    np.testing.assert_allclose(gpt2["gains"].metrics["consistent_channel"]["ln2"]["ratios"], ratios)
    rows = gpt2["gains"].measured.tables["norms"].named()
    assert [r["layer"] for r in rows if r["norm"] == "ln2" and r["top_channels"][0] == 138] == layers


def test_channel_138_of_gpt2_holds_little_position(gpt2):
    """Scherlis: “it has very little position-embedding presence”."""
    std = gpt2.tensor("position_embedding")[1:].std(axis=0)
    rank = int(np.sum(std > std[138])) + 1
    ranks = gpt2["gains"].metrics["ln2_channel"]
    assert (ranks["channel"], ranks["position_std"]) == (138, rank)
    assert rank > 600  # of 768
    assert ranks["token_mean"] is ranks["token_std"] is None


def test_two_channels_of_gpt1_tie(gpt1):
    """266 and 380 each top five layers of twelve: no one channel is singled out, and both are named."""
    found = gpt1["gains"].metrics["consistent_channel"]["ln2"]
    assert found["tied"] == [266, 380]
    assert (found["layers_topped"], found["n_layers"]) == (5, 12)
    assert [len(topped(gpt1, channel)[0]) for channel in (266, 380)] == [5, 5]
    assert "Channels 266 and 380 each have the largest |gain| of ln2 in 5 of 12 layers" in (
        gpt1["gains"].claims["ln2-one-channel"].answer
    )


def test_gpt1_has_no_norm_before_its_first_attention(gpt1):
    assert list(gpt1["gains"].metrics["correlation"]["ln1"]) == [str(layer) for layer in range(1, 12)]
    assert "There is no norm before the first attention" in gpt1["gains"].claims["ln1-dials-down"].answer
