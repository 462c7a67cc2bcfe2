"""Positions without a learned table: rotations by configs of all generations, slopes, buckets, formulas."""

import math

import numpy as np
import pytest

from generators.base.architecture import Buckets
from generators.base.errors import InputError
from generators.checkpoint.families import choose_family
from generators.checkpoint.positions import alibi_slopes, fairseq_sinusoids, rotary, split_sinusoids
from generators.checkpoint.reading import read_architecture
from generators.maths.distances import bias_by_offset, bucket_of, turned
from tests.checkpoints import Sizes, config_of

LLAMA = config_of("llama", Sizes(n_layer=2, n_head=4, d_model=64, n_ctx=512))


def read(**changed):
    config = {**LLAMA, **changed}
    return read_architecture(config, choose_family(config, None))


def test_rotations_turn_by_powers_of_the_base_in_old_and_new_files():
    (turn, _) = read(rope_theta=100.0).rotary
    assert turn.dim == 16
    np.testing.assert_allclose(turn.periods, [2 * math.pi * 100 ** (2 * c / 16) for c in range(8)])
    new = {"rope_type": "linear", "factor": 4.0, "rope_theta": 500.0}
    old = {"type": "linear", "factor": 4.0}
    assert read(rope_parameters=new).rotary == read(rope_theta=500.0, rope_scaling=old).rotary
    assert read(rope_parameters={"rope_type": "default", "rope_theta": 500.0}).rotary == read(rope_theta=500.0).rotary
    plain, slowed = read().rotary[0], read(rope_scaling={"type": "linear", "factor": 4.0}).rotary[0]
    np.testing.assert_allclose(slowed.periods, 4 * np.array(plain.periods))


def test_llama_3_keeps_fast_pairs_and_slows_slow_ones():
    rules = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    rules["original_max_position_embeddings"] = 64
    plain, scaled = read().rotary[0], read(rope_scaling=rules).rotary[0]
    ratio = np.array(scaled.periods) / plain.periods
    assert ratio[0] == 1
    assert ratio[-1] == pytest.approx(8)
    assert (np.diff(ratio) >= 0).all()


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("rope_scaling", {"type": "warp", "factor": 2.0}, "'warp', which is unknown"),
        ("rope_scaling", {"type": ["linear"]}, "which is unknown"),
        ("rope_scaling", {"type": "linear"}, "its numbers are not all there"),
        ("rope_scaling", {"type": "yarn", "factor": "much"}, "its numbers are not all there"),
        ("rope_scaling", {"type": "longrope", "factor": 2.0}, "its numbers are not all there"),
        ("rope_scaling", {"type": "linear", "factor": 10**400}, "its numbers are not all there"),
        ("rope_scaling", {"type": "linear", "factor": 0}, "nothing can turn"),
        ("rope_scaling", {"type": "linear", "factor": -1.0}, "nothing can turn"),
        ("rope_theta", 10**400, "nothing can turn"),
        ("rope_theta", 1e300, "nothing can turn"),
        ("layer_types", ["full_attention"], "layer_types"),
        ("layer_types", ["full_attention", "sideways"], "layer_types"),
        ("layer_types", "full_attention", "layer_types"),
    ],
)
def test_what_cannot_be_read_is_refused(setting, value, said):
    with pytest.raises(InputError, match=said):
        read(**{setting: value})


@pytest.mark.parametrize(("dim", "base"), [(0, 10.0), (3, 10.0), (8, 1.0), (8, -5.0)])
def test_rotations_that_cannot_be_are_refused(dim, base):
    with pytest.raises(InputError, match="can't make pairs"):
        rotary(dim, base, 100)


@pytest.mark.parametrize("adjacent", [False, True])
def test_scores_of_turned_rows_depend_on_distance_alone(adjacent):
    turn = rotary(8, 50.0, 100, adjacent=adjacent)
    rows = np.tile(np.random.default_rng(0).standard_normal((2, 1, 12)), (1, 9, 1))
    scores = turned(rows, turn) @ turned(rows, turn).transpose(0, 2, 1)
    for offset in range(9):
        diagonal = np.diagonal(scores, offset, 1, 2)
        np.testing.assert_allclose(diagonal, diagonal[:, :1] * np.ones_like(diagonal))
    np.testing.assert_array_equal(turned(rows, turn)[..., 8:], rows[..., 8:])
    assert turned(rows, None) is rows


def test_slopes_are_those_of_the_paper():
    assert alibi_slopes(8) == tuple(2.0**-i for i in range(1, 9))
    assert alibi_slopes(6) == (*(2.0 ** (-2 * i) for i in range(1, 5)), 2.0**-1, 2.0**-3)
    assert alibi_slopes(2, steepest=4) == (0.25, 0.0625)


def test_near_distances_have_a_bucket_each_and_far_ones_share():
    buckets = Buckets(count=32, max_distance=128, both_ways=True)
    near = bucket_of(np.arange(8), buckets)
    assert list(near) == list(range(8))
    assert list(bucket_of(-np.arange(1, 8), buckets)) == list(range(17, 24))
    assert set(bucket_of(np.array([128, 1000, 10**6]), buckets)) == {15}
    one_way = Buckets(count=32, max_distance=128, both_ways=False)
    assert list(bucket_of(np.arange(16), one_way)) == list(range(16))
    assert set(bucket_of(np.array([-1, -50]), one_way)) == {0}
    table = np.arange(64.0).reshape(32, 2)
    buckets = Buckets(count=32, max_distance=128, both_ways=True)
    by_offset = bias_by_offset(table, buckets, 5)
    assert by_offset.shape == (2, 9)
    np.testing.assert_array_equal(by_offset[:, 4], table[0])
    np.testing.assert_array_equal(by_offset[:, 0], table[4])


@pytest.mark.parametrize("d", [6, 7])
@pytest.mark.parametrize("formula", [fairseq_sinusoids, split_sinusoids])
def test_tables_by_formula_are_waves(formula, d):
    table = formula(40, d)
    assert table.shape == (40, d)
    assert np.abs(table).max() <= 1
    if formula is split_sinusoids:
        np.testing.assert_allclose(table[0], [0] * ((d + 1) // 2) + [1] * (d // 2))


def test_windows_follow_the_switches():
    mistral = {"model_type": "mistral", "head_dim": None, "num_key_value_heads": 4}
    assert read(**mistral).windows == (4096, 4096)
    assert read(**mistral, sliding_window=None).windows == ()
    qwen = {"model_type": "qwen2", "num_key_value_heads": 4, "sliding_window": 8, "max_window_layers": 1}
    assert read(**qwen, use_sliding_window=True).windows == (None, 8)
    assert read(**qwen, use_sliding_window=False).windows == ()
