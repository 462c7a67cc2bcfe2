"""Seven ways to know a position, each a model before its first step that starts from the same weights.

`learned` is GPT-2 as it is. The others keep every number that it starts with, in the layout that their architecture
wants, and change nothing but the positions: same norms, biases, activation, residual path and tied embeddings. Only
`alibi` changes more: its architecture has no biases and computes GELU exactly.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from transformers import (
    FalconConfig,
    FalconForCausalLM,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    MptConfig,
    MptForCausalLM,
    PreTrainedModel,
)
from transformers.pytorch_utils import Conv1D

from models.training.corpus import N_VOCAB
from models.training.gpt2 import GELU_NEW_FAST, new_gpt2
from models.training.recipe import Recipe
from models.training.stdlib_family.members import RECIPE

RANK = 3
PERIOD_BASE = 10_000  # of sines, cosines and rotations: wavelengths from 2 pi to 2 pi x 10,000 tokens


def learned(recipe: Recipe) -> GPT2LMHeadModel:
    """GPT-2. A shorter context takes the first rows of the P, and all else, that the family's context starts with."""
    model = new_gpt2(recipe)
    if recipe.n_ctx < RECIPE.n_ctx:
        # A smaller table would shift what the generator gives to all tensors after it.
        start = new_gpt2(replace(recipe, n_ctx=RECIPE.n_ctx)).state_dict()
        start["transformer.wpe.weight"] = start["transformer.wpe.weight"][: recipe.n_ctx]
        model.load_state_dict(start)
    return model


def held_at(model: GPT2LMHeadModel, table: Tensor) -> GPT2LMHeadModel:
    """Give `model` the position table (n, d), and neither gradient nor decay to change it."""
    positions = model.transformer.wpe.weight.requires_grad_(False)
    positions.copy_(table)
    return model


def none(recipe: Recipe) -> GPT2LMHeadModel:
    """GPT-2 whose P is zero and stays so."""
    return held_at(learned(recipe), torch.zeros(recipe.n_ctx, recipe.d_model))


def sinusoids(n_ctx: int, d_model: int) -> Tensor:
    """Sines in even channels and cosines in odd ones, (n, d): the table of *Attention is all you need*."""
    periods = PERIOD_BASE ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.arange(n_ctx, dtype=torch.float64)[:, None] / periods
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


def sinusoidal(recipe: Recipe) -> GPT2LMHeadModel:
    """GPT-2 whose P is sines and cosines, scaled to the root mean square of the learned P's start.

    Unscaled, rows of norm 8 would drown token embeddings that start with rows of norm 0.2.
    """
    model = learned(recipe)
    amplitude = math.sqrt(2) * model.config.initializer_range  # a sine's root mean square is 1 / sqrt 2
    return held_at(model, amplitude * sinusoids(recipe.n_ctx, recipe.d_model))


class Product(nn.Module):
    """A matrix (n, d) that is trained as A (n, rank) times B (rank, d)."""

    def forward(self, A: Tensor, B: Tensor) -> Tensor:
        """The matrix."""
        return A @ B

    def right_inverse(self, table: Tensor) -> tuple[Tensor, Tensor]:
        """A and B, of equal size, whose product is nearest to `table`: where the training starts."""
        left, sizes, right = torch.linalg.svd(table, full_matrices=False)
        root = sizes[:RANK].sqrt()
        return left[:, :RANK] * root, root[:, None] * right[:RANK]


def rank_three(recipe: Recipe) -> GPT2LMHeadModel:
    """GPT-2 whose P is a product of rank three, which starts as near to the learned P's start as it can be.

    Weight decay acts on both factors, so on the sum of the product's singular values rather than of their squares.
    """
    model = learned(recipe)
    parametrize.register_parametrization(model.transformer.wpe, "weight", Product())
    return model


def rotary(recipe: Recipe) -> PreTrainedModel:
    """GPT-NeoX with attention and MLP one after the other, as in GPT-2; every channel pair of a head is turned."""
    config = GPTNeoXConfig(
        vocab_size=N_VOCAB,
        max_position_embeddings=recipe.n_ctx,
        hidden_size=recipe.d_model,
        intermediate_size=4 * recipe.d_model,
        num_hidden_layers=recipe.n_layer,
        num_attention_heads=recipe.n_head,
        hidden_act=GELU_NEW_FAST,
        use_parallel_residual=False,
        rope_parameters={"rope_type": "default", "rope_theta": PERIOD_BASE, "partial_rotary_factor": 1.0},
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    outside = {"transformer.wte": "gpt_neox.embed_in", "transformer.ln_f": "gpt_neox.final_layer_norm"}
    return started(GPTNeoXForCausalLM(config), learned(recipe), outside, "gpt_neox.layers.{i}", headwise("attention"))


def alibi(recipe: Recipe) -> PreTrainedModel:
    """MPT: ALiBi with the slopes of its paper, which are added after scores are divided by the root of d_head.

    Two more things differ from GPT-2: no linear map and no norm has a bias (GPT-2's start at zero), and GELU is
    computed exactly. BLOOM would have the same slopes, but a norm after the token embedding.
    """
    config = MptConfig(
        vocab_size=N_VOCAB,
        max_seq_len=recipe.n_ctx,
        d_model=recipe.d_model,
        n_layers=recipe.n_layer,
        n_heads=recipe.n_head,
        attn_config={"alibi": True},
        learned_pos_emb=False,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    outside = {"transformer.wte": "transformer.wte", "transformer.ln_f": "transformer.norm_f"}
    inside = {
        "ln_1": "norm_1",
        "attn.c_attn": "attn.Wqkv",
        "attn.c_proj": "attn.out_proj",
        "ln_2": "norm_2",
        "mlp.c_fc": "ffn.up_proj",
        "mlp.c_proj": "ffn.down_proj",
    }
    return started(MptForCausalLM(config), learned(recipe), outside, "transformer.blocks.{i}", inside)


def alibi_falcon(recipe: Recipe) -> PreTrainedModel:
    """Falcon as `falcon-rw-1b` has it: GPT-2's blocks, biases and all, with ALiBi in place of P.

    Its slopes are the paper's divided by the root of a head's width, as Falcon divides all of a head's scores.
    """
    config = FalconConfig(
        vocab_size=N_VOCAB,
        max_position_embeddings=recipe.n_ctx,
        hidden_size=recipe.d_model,
        num_hidden_layers=recipe.n_layer,
        num_attention_heads=recipe.n_head,
        activation=GELU_NEW_FAST,
        alibi=True,
        bias=True,
        multi_query=False,
        parallel_attn=False,
        new_decoder_architecture=False,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    outside = {"transformer.wte": "transformer.word_embeddings", "transformer.ln_f": "transformer.ln_f"}
    return started(
        FalconForCausalLM(config), learned(recipe), outside, "transformer.h.{i}", headwise("self_attention")
    )


def headwise(attention: str) -> dict[str, str]:
    """Return the names of GPT-2's modules in a block of GPT-NeoX and Falcon, which call the attention `attention`."""
    return {
        "ln_1": "input_layernorm",
        "attn.c_attn": f"{attention}.query_key_value",
        "attn.c_proj": f"{attention}.dense",
        "ln_2": "post_attention_layernorm",
        "mlp.c_fc": "mlp.dense_h_to_4h",
        "mlp.c_proj": "mlp.dense_4h_to_h",
    }


def by_head(fused: Tensor, n_head: int) -> Tensor:
    """Reorder the rows of a fused Q, K, V (3a, ...) from all of Q first to all of head 0 first."""
    return fused.unflatten(0, (3, n_head, -1)).transpose(0, 1).flatten(0, 2)


@torch.no_grad()
def started(
    model: PreTrainedModel,
    gpt2: GPT2LMHeadModel,
    outside: Mapping[str, str],
    block: str,
    inside: Mapping[str, str],
) -> PreTrainedModel:
    """Give `model` the weights of `gpt2`, all but its P and, where `model` has no biases, those, which are zero.

    `outside` says which of its modules is which of GPT-2's, `block` what it calls block i, and `inside` which of the
    modules in it is which.

    Raises:
        ValueError: `model` has no place for a number that is not zero.
    """
    names = {
        f"transformer.h.{i}.{theirs}": f"{block.format(i=i)}.{ours}"
        for i in range(gpt2.config.n_layer)
        for theirs, ours in inside.items()
    }
    for theirs, ours in {**outside, **names}.items():
        source, target = gpt2.get_submodule(theirs), model.get_submodule(ours)
        for name, values in source.named_parameters():
            place = getattr(target, name, None)
            if place is None:
                if values.any():
                    raise ValueError(f"{ours} has no {name}, and GPT-2's isn't zero.")
                continue
            stored = values.t() if isinstance(source, Conv1D) else values  # Conv1D keeps the input first
            place.copy_(by_head(stored, gpt2.config.n_head) if ours.endswith("query_key_value") else stored)
    return model


SCHEMES: Mapping[str, Callable[[Recipe], PreTrainedModel]] = MappingProxyType(
    {
        "learned": learned,
        "rank-three": rank_three,
        "sinusoidal": sinusoidal,
        "rotary": rotary,
        "alibi": alibi,
        "alibi-falcon": alibi_falcon,
        "none": none,
    }
)
