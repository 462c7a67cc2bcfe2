"""A slot undoes what a file's layout did: fused, interleaved, padded, shifted tensors come out as they are used."""

import pytest

from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.families.gpt2 import GPT1
from generators.checkpoint.sources import in_folder
from tests.checkpoints import write_checkpoint


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
