"""Llama and what is built like it: rotations, RMS norms without biases, grouped queries, a gated MLP."""

from generators.checkpoint.roles import Family, Slot, linear, norm

ROTATES = "Positions enter as rotations inside attention: this architecture has no position embedding to look at."

LLAMA = Family(
    name="llama",
    model_types=("llama", "mistral", "qwen2"),
    prefixes=("model.", ""),
    config={
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "d_model": "hidden_size",
        "n_ctx": "max_position_embeddings",
        "vocab_size": "vocab_size",
        "norm_eps": "rms_norm_eps",
    },
    slots={
        "token_embedding": Slot("embed_tokens.weight", "V d"),
        "unembedding": Slot("lm_head.weight", "V d"),
        **norm("final_norm", "norm", bias=False),
    },
    block_slots={
        **norm("ln1", "layers.{i}.input_layernorm", bias=False),
        **norm("ln2", "layers.{i}.post_attention_layernorm", bias=False),
        **linear("attn.q", "layers.{i}.self_attn.q_proj", bias=False),
        **linear("attn.k", "layers.{i}.self_attn.k_proj", bias=False),
        **linear("attn.v", "layers.{i}.self_attn.v_proj", bias=False),
        **linear("attn.o", "layers.{i}.self_attn.o_proj", bias=False),
        **linear("mlp.in", "layers.{i}.mlp.up_proj", bias=False),
        **linear("mlp.gate", "layers.{i}.mlp.gate_proj", bias=False),
        **linear("mlp.out", "layers.{i}.mlp.down_proj", bias=False),
    },
    tied=False,
    positions="rotary",
    norm="rms",
    ignores=("rope_theta", "rope_scaling", "rope_parameters", "sliding_window", "layer_types"),
    without={"position_embedding": ROTATES},
)

FAMILIES = (LLAMA,)
