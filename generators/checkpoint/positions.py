"""How positions enter where no table of them is learned, as configs say it: formulas, rotations, slopes."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.base.architecture import Rotary
from generators.base.errors import InputError

LARGEST_BASE = 1e15  # of rotations; those in use reach 1e11
BASE = 10_000.0  # base of wavelengths (Vaswani et al. 2017), also for rotations (Su et al. 2021)

# Tables by formula


def fairseq_sinusoids(n: int, d: int) -> Float[Array, "n d"]:
    """Return sines, then cosines, of positions from 2 on (ids 0 and 1 are padding's), as XGLM computes them."""
    half = d // 2
    frequencies = np.exp(np.arange(half, dtype=np.float32) * np.float32(-math.log(BASE) / (half - 1)))
    angles = np.arange(2, n + 2, dtype=np.float32)[:, None] * frequencies
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return np.pad(table, ((0, 0), (0, d % 2)))


def split_sinusoids(n: int, d: int) -> Float[Array, "n d"]:
    """Return sines of wavelengths 2 pi 10000^(2 c / d), then their cosines, as CTRL and Marian compute them."""
    angles = np.arange(n)[:, None] / BASE ** (2 * np.arange((d + 1) // 2) / d)
    return np.concatenate([np.sin(angles), np.cos(angles)[:, : d // 2]], axis=1).astype(np.float32)


FORMULAS: Mapping[str, Callable[[int, int], Float[Array, "n d"]]] = {
    "fairseq": fairseq_sinusoids,
    "split": split_sinusoids,
}

# Rotations


def rotary(
    dim: int, base: float, n_ctx: int, scaling: Mapping[str, Any] | None = None, adjacent: bool = False
) -> Rotary:
    """Return how `dim` channels of a head turn: by base^(-2 c / dim) radians per position, scaled by the config.

    `n_ctx` is the longest context that the config allows; `scaling` is its `rope_scaling` or `rope_parameters`.

    Raises InputError: a kind of scaling that is not known, or one of its numbers is absent.
    """
    rules = {} if scaling is None else scaling
    kind = rules.get("rope_type", rules.get("type", "default"))
    if dim < 2 or dim % 2 or not base > 1:
        raise InputError(f"config.json says that {dim} channels turn with base {base}: they can't make pairs.")
    if base > LARGEST_BASE:
        raise InputError(f"config.json gives rotations a base above {LARGEST_BASE:g}: nothing can turn so slowly.")
    if not isinstance(kind, str) or kind not in SCALINGS:
        raise InputError(
            f"config.json scales rotations by {kind!r}, which is unknown; the atlas knows {', '.join(SCALINGS)}."
        )
    plain = base ** (-np.arange(0, dim, 2) / dim)
    try:
        with np.errstate(all="ignore"):
            angles, strength = SCALINGS[kind](plain, rules, float(base), n_ctx)
            periods = 2 * math.pi / np.asarray(angles, float)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise InputError(f"config.json scales rotations by {kind!r}, but its numbers are not all there.") from error
    if not (np.isfinite(periods).all() and (periods > 0).all() and math.isfinite(strength)):
        raise InputError(f"config.json scales rotations by {kind!r} with numbers by which nothing can turn.")
    return Rotary(dim, tuple(periods.tolist()), adjacent, kind, float(strength))


def _unscaled(angles: Array, rules: Mapping[str, Any], base: float, n_ctx: int) -> tuple[Array, float]:
    return angles, 1.0


def _linear(angles: Array, rules: Mapping[str, Any], base: float, n_ctx: int) -> tuple[Array, float]:
    return angles / rules["factor"], 1.0


def _llama3(angles: Array, rules: Mapping[str, Any], base: float, n_ctx: int) -> tuple[Array, float]:
    """Slow rotations are slowed by the factor, fast ones unchanged, those between blended (Llama 3.1)."""
    factor, low, high = rules["factor"], rules["low_freq_factor"], rules["high_freq_factor"]
    turns = rules.get("original_max_position_embeddings", n_ctx) * angles / (2 * math.pi)
    unchanged = np.clip((turns - low) / (high - low), 0, 1)
    return (1 - unchanged) * angles / factor + unchanged * angles, 1.0


def _yarn(angles: Array, rules: Mapping[str, Any], base: float, n_ctx: int) -> tuple[Array, float]:
    """As Peng et al. 2023: pairs that turn often are unchanged, those that hardly turn are slowed by the factor."""
    original = rules.get("original_max_position_embeddings") or n_ctx
    factor = rules.get("factor") or n_ctx / original
    dim = 2 * len(angles)

    def pair(turns: float) -> float:
        return dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    first, last = pair(rules.get("beta_fast") or 32), pair(rules.get("beta_slow") or 1)
    if rules.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, dim - 1)
    slowed = np.clip((np.arange(len(angles)) - first) / max(last - first, 0.001), 0, 1)
    return slowed * angles / factor + (1 - slowed) * angles, _yarn_strength(rules, factor)


def _yarn_strength(rules: Mapping[str, Any], factor: float) -> float:
    def grown(scale: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1

    if rules.get("attention_factor") is not None:
        return float(rules["attention_factor"])
    if rules.get("mscale") and rules.get("mscale_all_dim"):
        return grown(rules["mscale"]) / grown(rules["mscale_all_dim"])
    return grown(1)


def _longrope(angles: Array, rules: Mapping[str, Any], base: float, n_ctx: int) -> tuple[Array, float]:
    """Each pair has a factor of its own; those for contexts as long as in training are taken (Ding et al. 2024)."""
    original = rules.get("original_max_position_embeddings") or n_ctx
    factor = rules.get("factor") or n_ctx / original
    strength = rules.get("attention_factor")
    if strength is None:
        strength = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))
    return angles / np.asarray(rules["short_factor"], float), strength


SCALINGS: Mapping[str, Callable[[Array, Mapping[str, Any], float, int], tuple[Array, float]]] = {
    "default": _unscaled,
    "linear": _linear,
    "dynamic": _unscaled,  # stretches contexts only beyond the one trained on
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
    "su": _longrope,  # old name of longrope
}


# Slopes


def alibi_slopes(heads: int, steepest: float = 8.0) -> tuple[float, ...]:
    """Return what a score loses per position of distance, for each head (Press et al. 2021).

    For a power of two they fall from 2^(-8/heads) to 2^-8; for other numbers those of the power of two below come
    first, then every second one of twice that power.
    """
    below = 2 ** math.floor(math.log2(heads))
    slopes = [2.0 ** (-steepest * (i + 1) / below) for i in range(below)]
    between = [2.0 ** (-steepest * (i + 1) / (2 * below)) for i in range(0, 2 * below, 2)]
    return tuple((slopes + between)[:heads])
