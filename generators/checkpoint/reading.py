from collections.abc import Mapping
from typing import Any

from generators.base.architecture import Architecture
from generators.base.errors import InputError
from generators.base.plain import plain
from generators.checkpoint.config import LARGEST_SIZE, MOST_LAYERS, ModelConfig
from generators.checkpoint.roles import Family, resolved

NO_SIZES = {"norm_eps", "d_head", "n_kv_head"}
TIED = "tie_word_embeddings"
DEFAULT_EPS = 1e-5
# Rotations, slopes and scales are computed from these.
COMPUTED_FROM = ("n_layer", "n_head", "n_kv_head", "d_head", "d_model", "n_ctx")


def read_architecture(config: Mapping[str, Any], family: Family) -> Architecture:
    """Read the sizes that findings need. Raises InputError: one is absent or can't be, or a switch is unknown."""
    return understood(config, family)[1]


def understood(config: Mapping[str, Any], family: Family, *, strictly: bool = False) -> tuple[Family, Architecture]:
    """Return the family's table as this config alters it, and the architecture.

    `strictly`: refuse every setting that the table doesn't know, unless it can change nothing in any family, and
    silence where the family's own software has a number.
    """
    settings = ModelConfig(config, family.at, family.defaults, family.second_names)
    chosen = resolved(family, settings)
    sizes, eps = _sizes(settings, chosen), chosen.config.get("norm_eps")
    fields: dict[str, Any] = {
        **sizes,
        "n_ctx": sizes.get("n_ctx"),
        "vocab_size": sizes.get("vocab_size"),
        "norm_eps": DEFAULT_EPS if eps is None or settings.get(eps) is None else settings.number(eps, at_most=1),
        "n_kv_head": settings.optional(settings.size, chosen.config.get("n_kv_head", "num_key_value_heads")),
        "tied": _tied(config, settings, chosen),
    }
    fields["d_head"] = _d_head(settings, chosen, sizes)
    if chosen.extra is not None:
        given, settings.read = {name: fields[name] for name in COMPUTED_FROM}, {}
        fields |= chosen.extra(settings, fields)
        fields["stated"] = {"family": chosen.name, "sizes": given, "settings": plain(settings.read)}
    settings.ignore(*chosen.ignores)
    settings.refuse_unread(family.name, strictly=strictly)
    if strictly:
        settings.refuse_silence(family.name)
    architecture = Architecture(
        family=family.name,
        causal=chosen.causal,
        post_norm=chosen.post_norm,
        positions=chosen.positions,
        norm=chosen.norm,
        **fields,
    )
    return chosen, architecture


def _sizes(settings: ModelConfig, family: Family) -> dict[str, int]:
    return {
        name: settings.size(key, MOST_LAYERS if name == "n_layer" else LARGEST_SIZE)
        for name, key in family.config.items()
        if name not in NO_SIZES
    }


def _d_head(settings: ModelConfig, family: Family, sizes: Mapping[str, int]) -> int:
    given = settings.optional(settings.size, family.config.get("d_head", "head_dim"))
    if given is not None:
        return given
    if sizes["d_model"] % sizes["n_head"]:
        raise InputError(
            f"config.json says {sizes['n_head']} heads share a width of {sizes['d_model']}, which doesn't divide."
        )
    return sizes["d_model"] // sizes["n_head"]


def _tied(config: Mapping[str, Any], settings: ModelConfig, family: Family) -> bool:
    given, outside = settings.optional(settings.flag, TIED), config.get(TIED)
    if given is not None:
        return given
    return outside if isinstance(outside, bool) else family.tied
