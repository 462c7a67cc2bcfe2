"""Controls for claims about weights: structure that is planted ever more weakly, in weights without any.

What is planted for a finding's claims is in its folder, as `CONTROLS` in `planted.py`; `make planted` and `make
nulls` (in `tests/`) run them. What isn't planted is Gaussian, of a small GPT-2's sizes. Nothing that measures imports
this.

Curves are (n, c) arrays, one row per position; `embed` puts them into d channels. Functions called `with_...` return
new weights in which something is planted. Of a planting `s` is the strength.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy import ndarray as Array

from generators.base.architecture import Architecture

Weights = dict[str, Array]
P, E = "position_embedding", "token_embedding"
LN1, LN2 = "ln1", "ln2"
N, D, V = 256, 128, 1200  # positions, channels, tokens
CORRELATIONS = (0.9, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.0)
SHARES = (0.95, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.0)


@dataclass
class Scene:
    """Gaussian weights and token facts, in which something is planted."""

    weights: Weights
    sizes: Architecture
    z: Array  # log-frequency of every token, mean 0 and std 1; made-up counts are exp(5 + z) - 1
    marks_space: Array
    rng: np.random.Generator
    seed: int


@dataclass(frozen=True)
class Planting:
    """A scale of strengths, strongest first, for one claim; at its end is nothing, or too little."""

    claim: str
    what: str
    plant: Callable[[Scene, float], None]
    strengths: tuple[float, ...]


@dataclass(frozen=True)
class Controls:
    """What the claims of one finding are tried on: structure that must be found, nulls in which nothing may be.

    `preserved_by` says of a claim which nulls preserve what it is about, and why: it is no fault if it holds there.
    `about` are the roles that something is claimed of, None for all that are read.
    """

    plantings: tuple[Planting, ...] = ()
    preserved_by: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    about: tuple[str, ...] | None = None


def controls_of(finding: str) -> Controls:
    if not Path(__file__).with_name(finding).joinpath("planted.py").is_file():
        return Controls()
    found: Controls = import_module(f"{__package__}.{finding}.planted").CONTROLS
    return found


def coil(n: int, turns: float, axis: float = 0.5) -> Array:
    """Return a circle of unit radius turning `turns` times in n steps, and a straight axis of std `axis`.

    The circle's own components have a std of 0.71 each.
    """
    t = np.arange(n) / n
    angle = 2 * np.pi * turns * t
    return np.column_stack([np.cos(angle), np.sin(angle), axis * (t - t.mean()) / t.std()])


def embed(curve: Array, d: int, *, noise: float = 0.0, channels: Sequence[int] | None = None, seed: int = 0) -> Array:
    """Return rows (n, d) in which a curve lies in random directions of the given channels, with noise in all."""
    used = np.arange(d) if channels is None else np.asarray(channels)
    rows = noise * np.random.default_rng([seed, 1]).standard_normal((len(curve), d))
    rows[:, used] += curve @ orthonormal(len(used), curve.shape[1], seed).T
    return rows


def orthonormal(d: int, count: int, seed: int) -> Array:
    """Return `count` random orthonormal directions as columns, (d, count)."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, count)))[0]


def with_spectrum(n: int, d: int, variances: Iterable[float], seed: int = 0) -> Array:
    """Return rows whose principal components, of all rows but the first, have exactly these variances.

    Row 0 is zero and so are the means of the others: the squared singular values of all rows are the same.
    """
    variances = np.array(list(variances))
    rng = np.random.default_rng([seed, 2])
    scores = rng.standard_normal((n - 1, len(variances)))
    scores = np.linalg.qr(scores - scores.mean(axis=0))[0]
    rows = (scores * np.sqrt(variances)) @ orthonormal(d, len(variances), seed).T
    return np.vstack([np.zeros(d), rows])


def with_gains(weights: Weights, norm: str, gains: Sequence[Array]) -> Weights:
    return {**weights, **{f"blocks.{i}.{norm}.gain": gain for i, gain in enumerate(gains)}}


def gains_topped_by(
    channel: int, layers: Sequence[int], n_layer: int, d: int, ratio: float, seed: int = 0
) -> list[Array]:
    """Return gains between 0.5 and 1 in which `channel` is `ratio` times the runner-up in the given layers.

    In every other layer another channel, never the same one twice, is on top by as much.
    """
    rng = np.random.default_rng([seed, 4])
    gains = rng.uniform(0.5, 0.999, (n_layer, d))
    for layer, gain in enumerate(gains):
        top = channel if layer in layers else (channel + 1 + layer) % d
        gain[top], gain[(top + 1) % d] = ratio, 1.0
    return list(gains)


def with_positional_heads(
    weights: Weights, arch: Architecture, heads: Mapping[tuple[int, int], int], sharpness: float = 60.0, seed: int = 0
) -> Weights:
    """Plant heads {(layer, head): offset} that attend `offset` tokens back by position alone.

    P becomes waves of random frequencies in channels that a layer norm only scales; the heads' keys read these
    waves, and their queries read them turned back by the offset. Softmax sees `sharpness` at the offset and, but
    for accidents of the frequencies, much less elsewhere.
    """
    rng = np.random.default_rng([seed, 7])
    n, d, d_head = arch.n_ctx or 0, arch.d_model, arch.d_head
    frequencies = rng.uniform(0.2, np.pi, d_head // 2)
    no_mean = np.linalg.qr(np.column_stack([np.ones(d), rng.standard_normal((d, d_head))]))[0][:, 1:]
    cosines, sines = no_mean[:, : d_head // 2], no_mean[:, d_head // 2 : 2 * (d_head // 2)]
    angles = np.outer(np.arange(n), frequencies)
    planted = {**weights, "position_embedding": np.cos(angles) @ cosines.T + np.sin(angles) @ sines.T}
    scale = np.sqrt(sharpness * np.sqrt(d_head) / d)
    for (layer, head), offset in heads.items():
        block, columns = f"blocks.{layer}", slice(head * d_head, (head + 1) * d_head)
        c, s = np.cos(frequencies * offset), np.sin(frequencies * offset)
        turned = np.hstack([cosines * c + sines * s, sines * c - cosines * s])
        for name, read in (("q", turned), ("k", np.hstack([cosines, sines])), ("q.bias", 0), ("k.bias", 0)):
            if (role := f"{block}.attn.{name}") in planted:
                planted[role] = planted[role].copy()
                planted[role][..., columns] = scale * read
        planted[f"{block}.ln1.gain"], planted[f"{block}.ln1.bias"] = np.ones(d), np.zeros(d)
    return planted


def noise(at: Scene, *shape: int) -> Array:
    return at.rng.standard_normal(shape)


def mixed(strength: float, structure: Array, other: Array) -> Array:
    """Return rows of unit variance of which a share `strength` is structure."""
    return np.sqrt(strength) * structure / structure.std() + np.sqrt(1 - strength) * other / other.std()


def leading(rows: Array, count: int) -> Array:
    """Return the leading directions of rows as columns, (d, count)."""
    return np.linalg.svd(rows, full_matrices=False)[2][:count].T


def read(at: Scene, s: float, directions: Array, name: str) -> None:
    """Of the energy of a layer-0 matrix, s reads these directions and the rest is spread."""
    role = f"blocks.0.{name}"
    d, width = at.weights[role].shape
    reading = directions @ noise(at, directions.shape[1], width)
    at.weights[role] = mixed(s, reading, noise(at, d, width)) / np.sqrt(d)


def topped(at: Scene, s: float) -> None:
    """Let one channel have ln2's largest gain in s layers."""
    gains = gains_topped_by(9, range(round(s)), at.sizes.n_layer, D, 1.5, at.seed)
    at.weights |= with_gains({}, LN2, gains)
