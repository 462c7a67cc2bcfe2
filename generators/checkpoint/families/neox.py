"""GPT-NeoX and other rotary decoders with layer norms: in several, attention and MLP run in parallel."""

from generators.base.errors import InputError
from generators.checkpoint.config import ModelConfig
from generators.checkpoint.families.gpt2 import GPT_CONFIG
from generators.checkpoint.families.llama import ATTN, BIASED, LLAMA, MLP, NO_GATE, NO_MLP_BIASES, ROTATES, attention
from generators.checkpoint.positions import BASE, rotary
from generators.checkpoint.roles import QKVO, SIZES, Family, Fields, Slot, changed, fused, like, linear, linears, norm
from generators.checkpoint.rotation import neighbors, part_of_each_head, rotation

NO_TABLE = {"position_embedding": ROTATES}


def _neox(settings: ModelConfig, fields: Fields) -> Fields:
    turns = rotation(settings, fields, base_key="rotary_emb_base", part_key="rotary_pct")
    return {"rotary": (turns,) * fields["n_layer"]}


NEOX = Family(
    name="gpt_neox",
    prefixes=("gpt_neox.", ""),
    config={**SIZES, "norm_eps": "layer_norm_eps"},
    slots={
        "token_embedding": Slot("embed_in.weight", "V d"),
        "unembedding": Slot("embed_out.weight", "V d"),
        **norm("final_norm", "final_layer_norm"),
    },
    block_slots={
        **norm("ln1", "layers.{i}.input_layernorm"),
        **norm("ln2", "layers.{i}.post_attention_layernorm"),
        **fused("layers.{i}.attention.query_key_value", "a a a", bias=BIASED, groups="h"),
        **linear("attn.o", "layers.{i}.attention.dense", bias=BIASED),
        **linears("layers.{i}.mlp", {"mlp.in": "dense_h_to_4h", "mlp.out": "dense_4h_to_h"}),
    },
    tied=False,
    positions="rotary",
    defaults={"attention_bias": True, "rotary_pct": 0.25, "rotary_emb_base": BASE, "layer_norm_eps": 1e-5},
    without=NO_TABLE,
    ignores=("use_parallel_residual", "is_decoder"),
    extra=_neox,
)


def _first_channels(settings: ModelConfig, fields: Fields) -> Fields:
    """Return the rotation of neighbouring channels among the first of every head, as GPT-J makes it."""
    if settings.get("rotary_dim") is None:
        raise InputError("config.json gives no rotary_dim; without one the atlas can't read this family.")
    turns = rotary(settings.size("rotary_dim"), BASE, fields["n_ctx"], adjacent=True)
    return {"rotary": (turns,) * fields["n_layer"]}


GPTJ = Family(
    name="gptj",
    prefixes=("transformer.", ""),
    config=GPT_CONFIG,
    slots={
        "token_embedding": Slot("wte.weight", "V d"),
        "unembedding": Slot("lm_head.weight", "V d"),
        "unembedding.bias": Slot("lm_head.bias", "V"),
        **norm("final_norm", "ln_f"),
    },
    block_slots={
        **norm("ln1", "h.{i}.ln_1"),
        **norm("ln2", "h.{i}.ln_1"),  # shared norm: attention and MLP run in parallel
        **linears("h.{i}.attn", QKVO, bias=False),
        **linears("h.{i}.mlp", {"mlp.in": "fc_in", "mlp.out": "fc_out"}),
    },
    tied=False,
    positions="rotary",
    defaults={"rotary_dim": 64, "layer_norm_epsilon": 1e-5},
    without=NO_TABLE,
    ignores=("rotary", "scale_attn_weights"),
    extra=_first_channels,
)

MACHINES = 4  # CodeGen's training machines, each with its share of queries, values and keys

CODEGEN = like(
    GPTJ, "codegen", block_slots=fused("h.{i}.attn.qkv_proj", "a a a", bias=False, order="qvk", groups=MACHINES)
)

PHI = like(
    LLAMA,
    "phi",
    config={"norm_eps": "layer_norm_eps"},
    slots={"unembedding.bias": Slot("lm_head.bias", "V"), **norm("final_norm", "final_layernorm")},
    block_slots={
        **norm("ln1", "layers.{i}.input_layernorm"),
        **norm("ln2", "layers.{i}.input_layernorm"),
        **attention(True),
        **linear("attn.o", f"{ATTN}.dense"),
        **linears(MLP, {"mlp.in": "fc1", "mlp.out": "fc2"}),
        **NO_GATE,
        **{f"attn.{x}_norm.gain": Slot(f"{ATTN}.{x}_layernorm.weight", "c", when="qk_layernorm") for x in "qk"},
        **{f"attn.{x}_norm.bias": Slot(f"{ATTN}.{x}_layernorm.bias", "c", when="qk_layernorm") for x in "qk"},
    },
    norm="layer",
    defaults={"partial_rotary_factor": 0.5, "layer_norm_eps": 1e-5},
    extra=part_of_each_head,
)


def _stablelm(family: Family, settings: ModelConfig) -> Family:
    if not settings.flag("use_parallel_residual"):
        return family
    return changed(family, block_slots=norm("ln2", "layers.{i}.input_layernorm"))


STABLELM = like(
    LLAMA,
    "stablelm",
    config={"norm_eps": "layer_norm_eps"},
    slots=norm("final_norm", "norm"),
    block_slots={
        **norm("ln1", "layers.{i}.input_layernorm"),
        **norm("ln2", "layers.{i}.post_attention_layernorm"),
        **attention("use_qkv_bias", output=False),
        "attn.o.bias": None,
        **NO_MLP_BIASES,
    },
    norm="layer",
    defaults={"partial_rotary_factor": 0.25, "layer_norm_eps": 1e-5, "max_position_embeddings": 4096},
    only={"qk_layernorm": (False, None)},
    extra=part_of_each_head,
    variant=_stablelm,
)

STARCODER2 = like(
    LLAMA,
    "starcoder2",
    config={"norm_eps": "norm_epsilon"},
    slots=norm("final_norm", "norm"),
    block_slots={
        **norm("ln1", "layers.{i}.input_layernorm"),
        **norm("ln2", "layers.{i}.post_attention_layernorm"),
        **attention("use_bias"),
        **linears(MLP, {"mlp.in": "c_fc", "mlp.out": "c_proj"}, bias="use_bias"),
        **NO_GATE,
    },
    norm="layer",
    tied=True,
    defaults={"use_bias": True, "norm_epsilon": 1e-5, "num_key_value_heads": 2, "max_position_embeddings": 4096},
    ignores=("scale_attn_weights",),
)


COHERE = like(
    LLAMA,
    "cohere",
    config={"norm_eps": "layer_norm_eps"},
    block_slots={
        **norm("ln2", "layers.{i}.input_layernorm", bias=False),
        **NO_MLP_BIASES,
        "attn.q_norm.gain": Slot(f"{ATTN}.q_norm.weight", "h c", when="use_qk_norm"),
        "attn.k_norm.gain": Slot(f"{ATTN}.k_norm.weight", "g c", when="use_qk_norm"),
    },
    norm="layer",
    tied=True,
    defaults={"rope_theta": 500_000.0, "layer_norm_eps": 1e-5, "max_position_embeddings": 8192},
    ignores=("logit_scale",),
    extra=neighbors,
)
