"""Which configurations of which families are built, small."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SMALL = {
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "dim"), 32),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "num_layers", "n_layers"), 3),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "num_decoder_layers"), 3),
    **dict.fromkeys(("num_attention_heads", "n_head", "num_heads", "n_heads", "attention_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff"), 48),
    **dict.fromkeys(("hidden_dim", "dff", "n_inner", "ffn_hidden_size"), 48),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx"), 40),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads"), 2),
    **dict.fromkeys(("num_local_experts", "num_experts"), 4),
    "moe_intermediate_size": 16,
    **dict.fromkeys(("vocab_size", "decoder_vocab_size"), 120),  # findings about tokens ask for 100
    # far from what software has where nothing is said: read by a wrong key, it shows
    **dict.fromkeys(("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "layernorm_epsilon"), 0.05),
    **dict.fromkeys(("norm_epsilon", "rms_norm_epsilon", "layer_norm_rms_epsilon"), 0.05),
    "head_dim": 12,  # not the stream's width over the heads
    "word_embed_proj_dim": 32,
    "image_size": 16,
    "patch_size": 4,
    "num_patches": 16,
    "rotary_dim": 4,
    "d_kv": 12,
    "max_source_positions": 20,
    "max_target_positions": 24,
    "num_mel_bins": 8,
    "attention_types": [[["global", "local"], 1], [["global"], 1]],
    "window_size": 5,
    "sliding_window": 6,
    "local_attention": 8,
    "embedding_size": 20,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 16,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
    "num_experts_per_tok": 2,
    "layer_types": None,
    "cls_token_id": 0,
    "sep_token_id": 2,
    "mask_token_id": 3,
}
TOWERS = ("text_config", "vision_config")


@dataclass(frozen=True)
class OracleCase:
    family: str
    model_type: str = ""
    note: str = ""  # which of the family's variants it is
    config: Mapping[str, Any] = field(default_factory=dict)
    scores: bool = True  # False: the software's scores hold more than the table says of them
    eager: bool = True  # False: what this transformers reports of attention isn't what it attends with

    @property
    def name(self) -> str:
        ending = f"--{self.stack}" if self.stack else ""
        return f"{self.type}{ending} ({self.note})" if self.note else f"{self.type}{ending}"

    @property
    def stack(self) -> str | None:
        return self.family.partition("--")[2] or None

    @property
    def type(self) -> str:
        return self.model_type or self.family.split("--")[0]


def yarn(**more: Any) -> dict[str, Any]:
    return {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 10, "rope_theta": 500.0, **more}


LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
    "rope_theta": 100.0,
}
HALF = {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5}
LINEAR = {"rope_type": "linear", "factor": 3.0, "rope_theta": 100.0}
LONG = {
    "rope_type": "longrope",
    "short_factor": [1.0, 1.5, 2.0, 3.0],
    "long_factor": [2.0, 2.0, 4.0, 8.0],
    "rope_theta": 100.0,
    "factor": 2.0,
    "original_max_position_embeddings": 30,
}

CASES = (
    OracleCase("gpt2"),
    OracleCase("gpt2", note="scores not scaled", config={"scale_attn_weights": False}),
    OracleCase("gpt2", note="scores scaled by layer", config={"scale_attn_by_inverse_layer_idx": True}),
    OracleCase("openai-gpt"),
    OracleCase("gpt_bigcode"),
    OracleCase("gpt_bigcode", note="heads of keys of their own", config={"multi_query": False}),
    OracleCase("gpt_neo"),
    OracleCase("ctrl", config={"layer_norm_epsilon": 1e-6}),  # its blocks have this one, whatever the config says
    OracleCase("gptj"),
    OracleCase("codegen"),
    OracleCase("gpt_neox", config={"rope_parameters": HALF}),
    OracleCase(
        "gpt_neox", note="no biases in attention", config={"attention_bias": False, "use_parallel_residual": False}
    ),
    OracleCase("bloom"),
    OracleCase("bloom", note="6 heads", config={"n_head": 6, "hidden_size": 48}),
    OracleCase("mpt"),
    OracleCase("mpt", note="6 heads", config={"n_heads": 6, "d_model": 48}),
    OracleCase("falcon"),
    OracleCase("falcon", note="grouped keys", config={"new_decoder_architecture": True, "bias": True}),
    OracleCase(
        "falcon",
        note="slopes",
        config={"alibi": True, "multi_query": False, "parallel_attn": False, "bias": True, "num_kv_heads": 4},
        eager=False,
    ),  # without fused kernels, slopes are added twice
    OracleCase("biogpt"),
    OracleCase("xglm"),
    OracleCase("opt"),
    OracleCase("opt", note="350m layout", config={"do_layer_norm_before": False, "word_embed_proj_dim": 20}),
    OracleCase("llama"),
    OracleCase(
        "llama",
        note="biases, Llama 3 scaling",
        config={"attention_bias": True, "mlp_bias": True, "rope_parameters": LLAMA3},
    ),
    OracleCase("llama", note="linear scaling", config={"rope_parameters": LINEAR}),
    OracleCase(
        "llama", note="part of a head in vain", config={"rope_parameters": HALF}
    ),  # its software turns all of it
    OracleCase("llama", note="YaRN", config={"rope_parameters": yarn()}),
    OracleCase("glm"),
    OracleCase("glm", note="no biases", config={"attention_bias": False}),
    OracleCase("glm4"),
    OracleCase("ernie4_5"),
    OracleCase("ernie4_5", note="biases", config={"use_bias": True}),
    OracleCase("helium", config={"head_dim": 8}),  # its last matrix is square
    OracleCase("helium", note="biases", config={"head_dim": 8, "attention_bias": True, "mlp_bias": True}),
    OracleCase("seed_oss"),
    OracleCase("seed_oss", note="other biases", config={"attention_bias": False, "attention_out_bias": True}),
    OracleCase("apertus"),
    OracleCase("eurobert"),
    OracleCase("eurobert", note="biases", config={"attention_bias": True, "mlp_bias": True}),
    OracleCase("mistral"),
    OracleCase("mixtral"),
    OracleCase("qwen2"),
    OracleCase("qwen2", note="windows above", config={"use_sliding_window": True, "max_window_layers": 1}),
    OracleCase("qwen3"),
    OracleCase("qwen3_moe"),
    OracleCase("smollm3"),
    OracleCase(
        "granite", config={"attention_multiplier": 0.3, "embedding_multiplier": 5.0, "residual_multiplier": 0.5}
    ),
    OracleCase("phi"),
    OracleCase("phi3"),
    OracleCase(
        "phi3",
        note="LongRoPE",
        config={"head_dim": 8, "original_max_position_embeddings": 30, "rope_parameters": LONG},
    ),
    OracleCase("nemotron"),
    OracleCase("nemotron", note="biases", config={"attention_bias": True, "mlp_bias": True, "norm_eps": 0.05}),
    OracleCase("stablelm"),
    OracleCase("stablelm", note="side by side", config={"use_parallel_residual": True, "use_qkv_bias": True}),
    OracleCase("olmo"),
    OracleCase("olmo2"),
    OracleCase("olmo3", config={"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}),
    OracleCase("olmo3", note="YaRN", config={"num_hidden_layers": 4, "rope_scaling": yarn()}),
    OracleCase("exaone4", config={"sliding_window_pattern": 2}),
    OracleCase("exaone4", note="no windows", config={"sliding_window": None, "layer_types": ["full_attention"] * 3}),
    OracleCase("starcoder2"),
    OracleCase("cohere"),
    OracleCase("cohere", note="normed heads", config={"use_qk_norm": True}),
    OracleCase("gpt_oss", config={"rope_parameters": yarn(truncate=False)}),
    OracleCase("gemma"),
    OracleCase("gemma2", config={"query_pre_attn_scalar": 9, "attn_logit_softcapping": 2.0}),
    OracleCase("gemma3_text", config={"sliding_window_pattern": 3}),
    OracleCase("gemma3_text", note="cap", config={"query_pre_attn_scalar": 9, "attn_logit_softcapping": 0.5}),
    OracleCase("gemma3", config={"text_config": {"sliding_window_pattern": 3}}),
    OracleCase("bert"),
    OracleCase("bert", note="decoder", config={"is_decoder": True}),
    OracleCase("roberta"),
    OracleCase("roberta", "xlm-roberta"),
    OracleCase("roberta", "camembert"),
    OracleCase("roberta", "data2vec-text"),
    OracleCase("xlm-roberta-xl"),
    OracleCase("megatron-bert"),
    OracleCase("megatron-bert", note="decoder", config={"is_decoder": True}),
    OracleCase("ernie"),
    OracleCase("distilbert"),
    OracleCase("albert"),
    OracleCase("electra"),
    OracleCase("electra", note="one width", config={"embedding_size": 32}),
    OracleCase("mpnet", config={"relative_attention_num_buckets": 32}),
    OracleCase(
        "esm", config={"position_embedding_type": "rotary", "token_dropout": True, "emb_layer_norm_before": False}
    ),
    OracleCase("esm", note="table of positions", config={"emb_layer_norm_before": True}),
    OracleCase("deberta-v2"),
    OracleCase(
        "deberta-v2",
        note="distances",
        config={
            "relative_attention": True,
            "pos_att_type": ["c2p", "p2c"],
            "position_biased_input": False,
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
            "position_buckets": 8,
        },
        scores=False,
    ),
    OracleCase("deberta-v2", note="convolution", config={"conv_kernel_size": 3, "type_vocab_size": 2}),
    OracleCase("modernbert"),
    OracleCase("t5--encoder"),
    OracleCase("t5--decoder"),
    OracleCase("t5--encoder", note="gated", config={"feed_forward_proj": "gated-gelu"}),
    *(OracleCase(f"{kind}--{stack}") for kind in ("mt5", "umt5") for stack in ("encoder", "decoder")),
    OracleCase("bart--encoder"),
    OracleCase("bart--decoder", config={"scale_embedding": True}),
    *(OracleCase(f"{kind}--{stack}") for kind in ("mbart", "pegasus", "m2m_100") for stack in ("encoder", "decoder")),
    OracleCase("mbart--encoder", note="scaled", config={"scale_embedding": True}),
    OracleCase("marian--encoder"),
    OracleCase("marian--decoder", config={"scale_embedding": True}),
    OracleCase("whisper--encoder"),
    OracleCase("whisper--decoder"),
    OracleCase("vit"),
    OracleCase("deit"),
    OracleCase("dinov2"),
    OracleCase("dinov2_with_registers"),
    OracleCase("vit_mae", config={"mask_ratio": 0.0}),
    OracleCase("vit_msn"),
    OracleCase("clip--text"),
    OracleCase("clip--vision"),
    OracleCase("siglip--text"),
    OracleCase("siglip--vision"),
    OracleCase("siglip2--text"),
    OracleCase("siglip2--vision"),
    OracleCase("clip_text_model"),
    OracleCase("clip_vision_model"),
    OracleCase("siglip_text_model"),
    OracleCase("siglip_text_model", "siglip2_text_model"),
    OracleCase("siglip_vision_model"),
    OracleCase("siglip2_vision_model"),
)
