"""OLMo and EXAONE 4: norms without gains, or behind attention and MLP instead of in front of them."""

from generators.checkpoint.config import ModelConfig
from generators.checkpoint.families.llama import LLAMA, NO_BIASES, NO_MLP_BIASES, head_norms, unclipped
from generators.checkpoint.roles import Family, Fields, Slot, like
from generators.checkpoint.rotation import FULL, SLIDING, by_kind, rotation

EVERY = 4  # in OLMo 3 and EXAONE 4 every fourth layer sees all keys
NO_NORMS = {"ln1.gain": None, "ln2.gain": None}


def _without_norms(why: str) -> dict[str, str]:
    return {f"blocks.*.{gain}": why for gain in NO_NORMS}


def _unclipped(family: Family, settings: ModelConfig) -> Family:
    unclipped(settings, "clip_qkv")
    return family


OLMO = like(
    LLAMA,
    "olmo",
    slots={"final_norm.gain": None},
    block_slots={**NO_NORMS, **NO_MLP_BIASES},
    norm="layer",
    variant=_unclipped,
    without=_without_norms("The layer norms of OLMo have no gains or biases: they only centre and scale."),
    bare_norms=True,
)

OLMO2 = like(
    LLAMA,
    "olmo2",
    block_slots={
        **NO_NORMS,
        "attn.out_norm.gain": Slot("layers.{i}.post_attention_layernorm.weight", "d"),
        "mlp.out_norm.gain": Slot("layers.{i}.post_feedforward_layernorm.weight", "d"),
        **head_norms("a"),
        **NO_MLP_BIASES,
    },
    without=_without_norms(
        "This architecture normalizes what attention and MLP put out: they read the residual stream as it is."
    ),
    defaults={"rms_norm_eps": 1e-5},
)


def _olmo3(settings: ModelConfig, fields: Fields) -> Fields:
    """Return windows and rotations; only those of layers that see all keys are scaled."""
    turns = {kind: rotation(settings, fields, kind=kind, scaled=kind == FULL) for kind in (FULL, SLIDING)}
    return by_kind(settings, fields, turns, EVERY)


OLMO3 = like(
    OLMO2,
    "olmo3",
    defaults={"rope_theta": 500_000.0, "sliding_window": 4096, "max_position_embeddings": 2048},
    extra=_olmo3,
)


def _exaone4(settings: ModelConfig, fields: Fields) -> Fields:
    """Return windows and rotations; where some layers see a window, those that see all keys have no rotation."""
    turns = rotation(settings, fields)
    every = EVERY if settings.get("layer_types") else settings.size("sliding_window_pattern")
    settings.ignore("sliding_window_pattern")
    if settings.get("sliding_window") is None:
        return {"rotary": (turns,) * fields["n_layer"]}
    return by_kind(settings, fields, {SLIDING: turns, FULL: None}, every)


EXAONE4 = like(
    OLMO2,
    "exaone4",
    block_slots={**NO_BIASES, **head_norms()},
    defaults={
        "num_key_value_heads": 32,
        "sliding_window": 4096,
        "sliding_window_pattern": EVERY,
        "max_position_embeddings": 2048,
    },
    extra=_exaone4,
)
