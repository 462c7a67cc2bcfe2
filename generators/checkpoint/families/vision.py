"""Towers: encoders of images (ViT, DeiT, DINOv2) and the two halves of CLIP and SigLIP, together or alone."""

from generators.base.errors import InputError
from generators.checkpoint.config import ModelConfig
from generators.checkpoint.families.bert import LAYER, OUT_AND_MLP
from generators.checkpoint.roles import QKVO, SIZES, Family, Fields, Slot, like, linears, no_norm, norm

SEES = {"token_embedding": "This model sees images: it has no tokens."}


def _patches(settings: ModelConfig, fields: Fields) -> Fields:
    """Return the number of positions: patches of an image, row by row."""
    image, patch = settings.size("image_size"), settings.size("patch_size")
    if image < patch:
        raise InputError(f"config.json says that patches of {patch} pixels make up images of {image}.")
    return {"n_ctx": (image // patch) ** 2, "tied": False}


VIT = Family(
    name="vit",
    prefixes=("vit.", ""),
    config={
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "d_model": "hidden_size",
        "norm_eps": "layer_norm_eps",
    },
    slots={
        "position_embedding": Slot("embeddings.position_embeddings", "n d", flat=True, skip=1),
        **norm("final_norm", "layernorm"),
    },
    block_slots={
        **norm("ln1", f"{LAYER}.layernorm_before"),
        **norm("ln2", f"{LAYER}.layernorm_after"),
        **linears(
            f"{LAYER}.attention.attention", {"attn.q": "query", "attn.k": "key", "attn.v": "value"}, bias="qkv_bias"
        ),
        **linears(LAYER, OUT_AND_MLP),
    },
    causal=False,
    defaults={"qkv_bias": True, "image_size": 224, "patch_size": 16, "layer_norm_eps": 1e-12},
    without=SEES,
    extra=_patches,
)

DEIT = like(
    VIT,
    "deit",
    prefixes=("deit.", ""),
    # a class token and a distillation token come before the patches
    slots={"position_embedding": Slot("embeddings.position_embeddings", "n d", flat=True, skip=2)},
)


DINOV2 = like(
    VIT,
    "dinov2",
    prefixes=("dinov2.", ""),
    block_slots={
        **norm("ln1", f"{LAYER}.norm1"),
        **norm("ln2", f"{LAYER}.norm2"),
        **linears(f"{LAYER}.mlp", {"mlp.in": "fc1", "mlp.out": "fc2"}),
        "attn.out_scale": Slot(f"{LAYER}.layer_scale1.lambda1", "d"),
        "mlp.out_scale": Slot(f"{LAYER}.layer_scale2.lambda1", "d"),
    },
    defaults={"patch_size": 14, "layer_norm_eps": 1e-6},
    only={"use_swiglu_ffn": (False, None)},
    ignores=("layerscale_value",),
)

DINOV2_WITH_REGISTERS = like(
    DINOV2,
    "dinov2_with_registers",
    prefixes=("dinov2_with_registers.", ""),
    defaults={"patch_size": 16},
    ignores=(*DINOV2.ignores, "num_register_tokens"),  # they follow the class token and have no position
)

VIT_MAE = like(VIT, "vit_mae", positions="formula")  # sines, stored in the file
VIT_MSN = like(VIT, "vit_msn", defaults={"layer_norm_eps": 1e-6})

TOWER = "encoder.layers.{i}"

CLIP_TEXT = Family(
    name="clip--text",
    prefixes=("text_model.", ""),
    config={**SIZES, "norm_eps": "layer_norm_eps"},
    slots={
        "position_embedding": Slot("embeddings.position_embedding.weight", "n d"),
        "token_embedding": Slot("embeddings.token_embedding.weight", "V d"),
        **norm("final_norm", "final_layer_norm"),
    },
    block_slots={
        **norm("ln1", f"{TOWER}.layer_norm1"),
        **norm("ln2", f"{TOWER}.layer_norm2"),
        **linears(f"{TOWER}.self_attn", QKVO),
        **linears(f"{TOWER}.mlp", {"mlp.in": "fc1", "mlp.out": "fc2"}),
    },
    at="text_config",
    defaults={
        "num_hidden_layers": 12,
        "num_attention_heads": 8,
        "hidden_size": 512,
        "max_position_embeddings": 77,
        "vocab_size": 49408,
        "layer_norm_eps": 1e-5,
    },
)

CLIP_VISION = like(
    CLIP_TEXT,
    "clip--vision",
    prefixes=("vision_model.", ""),
    config={"n_ctx": None, "vocab_size": None},
    slots={
        "position_embedding": Slot("embeddings.position_embedding.weight", "n d", skip=1),
        "token_embedding": None,
        **norm("embedding_norm", "pre_layrnorm"),  # spelled this way in the files
        **norm("final_norm", "post_layernorm"),
    },
    at="vision_config",
    causal=False,
    defaults={"num_attention_heads": 12, "hidden_size": 768, "image_size": 224, "patch_size": 32},
    without=SEES,
    extra=_patches,
)

SIGLIP_TEXT = like(
    CLIP_TEXT,
    "siglip--text",
    causal=False,
    defaults={
        "num_attention_heads": 12,
        "hidden_size": 768,
        "max_position_embeddings": 64,
        "vocab_size": 32000,
        "layer_norm_eps": 1e-6,
    },
)

SIGLIP_VISION = like(
    CLIP_VISION,
    "siglip--vision",
    slots={
        "position_embedding": Slot("embeddings.position_embedding.weight", "n d"),
        **no_norm("embedding_norm"),
    },
    defaults={"patch_size": 16, "layer_norm_eps": 1e-6},
)


SIGLIP2_TEXT = like(SIGLIP_TEXT, "siglip2--text")
SIGLIP2_VISION = like(
    SIGLIP_VISION,
    "siglip2--vision",
    defaults={"num_patches": 256},  # a square of patches that is stretched to every image's shape
    extra=lambda settings, fields: {"n_ctx": settings.size("num_patches"), "tied": False},
)


def _alone(half: Family, *kinds: str) -> Family:
    return like(half, kinds[0], model_types=kinds, at="")


CLIP_TEXT_ALONE = _alone(CLIP_TEXT, "clip_text_model")
CLIP_VISION_ALONE = _alone(CLIP_VISION, "clip_vision_model")
SIGLIP_TEXT_ALONE = _alone(SIGLIP_TEXT, "siglip_text_model", "siglip2_text_model")
SIGLIP_VISION_ALONE = _alone(SIGLIP_VISION, "siglip_vision_model")
SIGLIP2_VISION_ALONE = _alone(SIGLIP2_VISION, "siglip2_vision_model")
