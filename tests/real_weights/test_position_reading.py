"""How GPT-2's first layer reads positions: the values that were measured apart from the atlas."""

from tests.real_weights.measured import judges, row, shows


def of_head(number, key):
    return lambda metrics: metrics["heads"][number][key]


GPT2 = [
    row("plane", "0.6658", lambda m: m["plane"]["share"]),
    row("strength-of-H3", "16.34", of_head(3, "times_median")),
    row("strength-of-H4", "10.98", of_head(4, "times_median")),
    row("strength-of-H7", "12.66", of_head(7, "times_median")),
    row("H3-in-plane", "0.888", of_head(3, "in_plane")),
    row("H4-in-plane", "0.883", of_head(4, "in_plane")),
    row("H7-in-plane", "0.899", of_head(7, "in_plane")),
    row("all-in-plane", "0.8873", lambda m: m["effects"]["in_plane"]),
    row("rotation", "0.9998", lambda m: m["rotation"]),
]


test_numbers = shows("position_reading", gpt2=GPT2)


# position-heads, reads-main-plane
test_verdicts = judges("position_reading", gpt2="holds holds", minilm_l6="holds holds", stdlib="fails holds")


def test_the_strong_heads_of_gpt2_read_nearness_and_no_fixed_distance(gpt2):
    heads = gpt2["position_reading"].metrics["heads"]
    assert [heads[number]["best_offset"] for number in (3, 4, 7)] == [0, 0, 0]
