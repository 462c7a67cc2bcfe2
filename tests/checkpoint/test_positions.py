"""Positions without a learned table: rotations by configs of all generations, slopes, buckets, formulas."""

import math

import numpy as np
import pytest

from generators.base.errors import InputError
from generators.checkpoint.families import choose_family
from generators.checkpoint.positions import rotary
from generators.checkpoint.reading import read_architecture
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


def test_windows_follow_the_switches():
    mistral = {"model_type": "mistral", "head_dim": None, "num_key_value_heads": 4}
    assert read(**mistral).windows == (4096, 4096)
    assert read(**mistral, sliding_window=None).windows == ()
    qwen = {"model_type": "qwen2", "num_key_value_heads": 4, "sliding_window": 8, "max_window_layers": 1}
    assert read(**qwen, use_sliding_window=True).windows == (None, 8)
    assert read(**qwen, use_sliding_window=False).windows == ()
