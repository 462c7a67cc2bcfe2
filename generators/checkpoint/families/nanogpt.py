"""nanoGPT's model: GPT-2 as its training script stores it, with PyTorch's Linear in place of GPT-2's Conv1D."""

from generators.checkpoint.families.gpt2 import GPT2, OUT_AND_MLP
from generators.checkpoint.roles import fused, like, linears, norm

BIAS = "bias"  # the switch; if off, there are no biases, not even in norms

NANOGPT = like(
    GPT2,
    "nanogpt",
    config={"n_ctx": "block_size"},
    slots=norm("final_norm", "ln_f", when=BIAS),
    block_slots={
        **norm("ln1", "h.{i}.ln_1", when=BIAS),
        **norm("ln2", "h.{i}.ln_2", when=BIAS),
        **fused("h.{i}.attn.c_attn", "a a a", bias=BIAS),
        **linears("h.{i}", OUT_AND_MLP, bias=BIAS),
    },
    defaults={"bias": True},
    extra=None,
)
