"""A slot undoes what a file's layout did: fused, interleaved, padded, shifted tensors come out as they are used."""

import numpy as np
import pytest

from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.config import ModelConfig
from generators.checkpoint.families.bert import BERT
from generators.checkpoint.families.gpt2 import GPT1, GPT2
from generators.checkpoint.reading import read_architecture
from generators.checkpoint.roles import FusedPart, Slot, like
from generators.checkpoint.sources import in_folder
from tests.checkpoints import config_of, write_checkpoint

SIZES = {"d": 3, "a": 8, "b": 4, "h": 4, "g": 2, "n": 5}  # 4 heads of 2 channels, 2 shared keys


def labelled(*names: str) -> np.ndarray:
    return np.array(names)


@pytest.mark.parametrize(
    ("fused", "part", "expected"),
    [
        ("q0 q1 k0 v0", FusedPart(1, "a b b"), "k0"),
        ("q0 k0 v0 q1 k1 v1", FusedPart(0, "a a a", "h"), "q0 q1"),
        ("q0 q1 k0 v0 q2 q3 k1 v1", FusedPart(0, "A b b", "g"), "q0 q1 q2 q3"),
        ("q0 q1 k0 v0 q2 q3 k1 v1", FusedPart(2, "A b b", "g"), "v0 v1"),
        ("q0 q1 v0 v1 k0 k1 q2 q3 v2 v3 k2 k3", FusedPart(2, "A A A", 2), "k0 k1 k2 k3"),
        ("g0 u0 g1 u1 g2 u2", FusedPart(1, "f f", "f"), "u0 u1 u2"),
        ("g0 g1 g2 u0 u1 u2", FusedPart(0, "f f"), "g0 g1 g2"),
    ],
    ids=["unequal", "by-head", "by-group-queries", "by-group-values", "machines-q-v-k", "channel-wise", "any-width"],
)
def test_a_part_is_cut_out_of_what_it_is_fused_with(fused, part, expected):
    sizes = {"a": 2, "b": 1, "h": 2, "g": 2, "A": 4} if "f" not in part.sizes else {}
    if part.groups == "g":
        sizes["b"] = 2
    row = labelled(*fused.split())
    assert part.fits(len(row), sizes)
    assert list(part.of(row, sizes)) == expected.split()
    np.testing.assert_array_equal(part.of(np.stack([row, row]), sizes)[1], expected.split())


def test_rows_are_skipped_one_is_added_and_axes_of_one_are_left_out():
    slot = Slot("P", "n d", skip=2)
    table = np.arange(21.0).reshape(7, 3)
    assert slot.asked(SIZES) == [7, 3]
    np.testing.assert_array_equal(slot.effective(table, SIZES), table[2:])
    gain = Slot("g", "d", plus=1).effective(np.array([0.5, -1, 0], np.float32), SIZES)
    np.testing.assert_array_equal(gain, np.array([1.5, 0, 1], np.float32), strict=True)
    assert Slot("P", "n d", flat=True).effective(np.ones((1, 5, 3)), SIZES).shape == (5, 3)


def test_a_family_like_another_takes_roles_over_adds_and_takes_away():
    made = like(GPT2, "own", slots={"position_embedding": None}, block_slots={"attn.q": Slot("Q", "d a")})
    assert "position_embedding" not in made.slots
    assert made.slots["token_embedding"] is GPT2.slots["token_embedding"]
    assert made.block_slots["attn.q"].tensor == "Q"
    assert GPT2.block_slots["attn.q"].tensor != "Q"


def missing(tmp_path, family, role, *without):
    return open_checkpoint(in_folder(write_checkpoint(tmp_path, family, without=without))).missing_for(role)


def test_nothing_is_missing_of_a_whole_checkpoint_and_a_first_block_without_a_norm_misses_none(tmp_path):
    checkpoint = open_checkpoint(in_folder(write_checkpoint(tmp_path)))
    assert [role for role in checkpoint if checkpoint.missing_for(role)] == []
    assert GPT1.expects("blocks.0.attn.q") == ["blocks.0.attn.q.bias"]
    assert GPT1.expects("blocks.1.attn.q") == ["blocks.1.ln1.gain", "blocks.1.ln1.bias", "blocks.1.attn.q.bias"]
    assert missing(tmp_path, "openai-gpt", "blocks.1.attn.q", "h.0.ln_2.weight") == ["blocks.1.ln1.gain"]


@pytest.mark.parametrize(
    ("role", "without", "said"),
    [
        ("blocks.1.attn.q", ["h.1.ln_1.weight"], ["blocks.1.ln1.gain"]),
        ("blocks.1.attn.v", ["h.1.ln_1.bias"], ["blocks.1.ln1.bias"]),
        ("blocks.0.attn.k", ["h.0.attn.c_attn.bias"], ["blocks.0.attn.k.bias"]),
        ("blocks.0.mlp.in", ["h.0.ln_2.weight"], ["blocks.0.ln2.gain"]),
        ("blocks.0.mlp.in", ["h.0.mlp.c_fc.bias"], ["blocks.0.mlp.in.bias"]),
        ("position_embedding", ["wpe.weight"], ["position_embedding"]),
        ("blocks.0.attn.o", ["h.0.attn.c_proj.bias", "h.0.ln_1.weight"], []),  # it writes to the stream
    ],
)
def test_a_norm_or_bias_that_the_family_has_and_the_file_lacks_is_missing(tmp_path, role, without, said):
    assert missing(tmp_path, "gpt2", role, *without) == said


def test_switches_of_masks_and_scales_are_read():
    assert not read_architecture(config_of("bert"), BERT).causal
    assert read_architecture({**config_of("bert"), "is_decoder": True}, BERT).causal
    assert read_architecture({**config_of("gpt2"), "scale_attn_weights": False}, GPT2).scale(0) == 1
    assert read_architecture(config_of("gpt2"), GPT2).scale(0) == 12**-0.5
    by_layer = read_architecture({**config_of("gpt2"), "scale_attn_by_inverse_layer_idx": True}, GPT2)
    assert by_layer.scale(3) == 12**-0.5 / 4


def test_settings_may_be_nested_and_silent():
    settings = ModelConfig({"text": {"size": {"width": 3}, "off": None}}, "text", {"size.height": 4, "off": 5})
    assert settings.size("size.width") == 3
    assert settings.size("size.height") == 4
    assert settings.get("off") is None  # null is an answer
    assert ModelConfig({}, "text", {"off": 5}).get("off") == 5
