"""ModernBERT: an encoder that rotates; most layers see a window, every third all."""

from generators.checkpoint.config import ModelConfig
from generators.checkpoint.families.llama import ROTATES
from generators.checkpoint.roles import SIZES, Family, Fields, Slot, fused, linear, norm, part_of
from generators.checkpoint.rotation import FULL, SLIDING, layer_kinds, rotation

LAYER = "layers.{i}"
GLOBAL_EVERY = 3


def _numbers(settings: ModelConfig, fields: Fields) -> Fields:
    """Return the two rotations, and the windows: half of `local_attention` on either side."""
    n_layer = fields["n_layer"]
    every = settings.get("global_attn_every_n_layers") or GLOBAL_EVERY
    kinds = layer_kinds(settings, n_layer, [SLIDING if i % every else FULL for i in range(n_layer)])
    turns = {
        FULL: rotation(settings, fields, kind=FULL, base_key="global_rope_theta"),
        SLIDING: rotation(settings, fields, kind=SLIDING, base_key="local_rope_theta"),
    }
    settings.ignore("global_rope_theta", "local_rope_theta")
    width = settings.size("local_attention") // 2 + 1
    return {
        "rotary": tuple(turns[kind] for kind in kinds),
        "windows": tuple(width if kind == SLIDING else None for kind in kinds),
    }


def _own_norm(role: str, tensor: str) -> dict[str, Slot]:
    return norm(role, tensor, when="norm_bias")


MODERNBERT = Family(
    name="modernbert",
    prefixes=("model.", ""),
    config={**SIZES, "norm_eps": "norm_eps"},
    slots={
        "token_embedding": Slot("embeddings.tok_embeddings.weight", "V d"),
        **_own_norm("final_norm", "final_norm"),
    },
    block_slots={
        **_own_norm("ln1", f"{LAYER}.attn_norm"),
        **_own_norm("ln2", f"{LAYER}.mlp_norm"),
        **fused(f"{LAYER}.attn.Wqkv", "a a a", bias="attention_bias"),
        **linear("attn.o", f"{LAYER}.attn.Wo", bias="attention_bias"),
        **part_of("mlp.gate", f"{LAYER}.mlp.Wi", "f f", 0, bias="mlp_bias"),
        **part_of("mlp.in", f"{LAYER}.mlp.Wi", "f f", 1, bias="mlp_bias"),
        **linear("mlp.out", f"{LAYER}.mlp.Wo", bias="mlp_bias"),
    },
    first_block_slots=_own_norm("ln1", "embeddings.norm"),
    causal=False,
    positions="rotary",
    defaults={
        "global_rope_theta": 160_000.0,
        "local_rope_theta": 10_000.0,
        "local_attention": 128,
        "norm_eps": 1e-5,
        "max_position_embeddings": 8192,
    },
    without={"position_embedding": ROTATES},
    ignores=("position_embedding_type",),
    extra=_numbers,
)
