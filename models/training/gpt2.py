"""GPT-2's architecture at a recipe's sizes, as Hugging Face's library starts it."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from models.training.corpus import N_VOCAB
from models.training.recipe import Recipe

# gelu_new in one kernel: what models are trained with; their published config says gelu_new.
GELU_NEW, GELU_NEW_FAST = "gelu_new", "gelu_pytorch_tanh"
# What an architecture calls it in its config.
ACTIVATION_KEYS = ("activation_function", "hidden_act", "activation")


def new_gpt2(recipe: Recipe) -> GPT2LMHeadModel:
    """A GPT-2 before its first step; the seed gives its weights."""
    torch.manual_seed(recipe.seed)
    config = GPT2Config(
        vocab_size=N_VOCAB,
        n_positions=recipe.n_ctx,
        n_embd=recipe.d_model,
        n_layer=recipe.n_layer,
        n_head=recipe.n_head,
        activation_function=GELU_NEW_FAST,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    return GPT2LMHeadModel(config)
