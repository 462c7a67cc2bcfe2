"""Weights with known answers: Gaussian ones, and what can be planted in them.

Curves are (n, c) arrays, one row per position; `embed` puts them into d channels. Weights are a dict of role ->
array, made for an `Architecture`; functions called `with_...` return a new dict in which something is planted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.signal import lfilter

from generators.base.architecture import Architecture
from generators.findings.contract import Finding
from generators.findings.inputs import Inputs, NotApplicableError
from generators.findings.judging import Claim
from generators.findings.measured import Measurements

Array = np.ndarray
Weights = dict[str, Array]
VOCABULARY = 400


def architecture(
    n_ctx: int = 256,
    d_model: int = 48,
    n_layer: int = 2,
    n_head: int = 2,
    causal: bool = True,
    post_norm: bool = False,
    scaled_by_layer: bool = False,
    vocab_size: int = VOCABULARY,
) -> Architecture:
    return Architecture(
        family="synthetic",
        n_layer=n_layer,
        n_head=n_head,
        d_model=d_model,
        n_ctx=n_ctx,
        vocab_size=vocab_size,
        d_head=d_model // n_head,
        norm_eps=1e-5,
        causal=causal,
        post_norm=post_norm,
        scaled_by_layer=scaled_by_layer,
    )


def with_formula(arch: Architecture) -> Architecture:
    """Return the same architecture with positions that are computed."""
    return replace(arch, positions="formula")


def claims_of(finding: Finding, weights: Mapping[str, Array], arch: Architecture | None = None) -> dict[str, Claim]:
    return {claim.id: claim for claim in finding.claims(measure(finding, weights, arch))}


def measure(
    finding: Finding,
    weights: Mapping[str, Array],
    arch: Architecture | None = None,
    vocabulary: Any = None,
    frequencies: Sequence[Any] = (),
) -> Measurements:
    """Return what a finding measures of weights, and of token facts where there are some."""
    return finding.measure(Inputs(weights, arch or architecture(), vocabulary, tuple(frequencies)))


def gaussian_weights(
    arch: Architecture,
    seed: int,
    *,
    tokens: bool = True,
    mlp: bool = True,
    biases: bool = True,
    vocab_size: int = VOCABULARY,
) -> Weights:
    """Return weights without any structure, float32 as checkpoints are; gains are Gaussian about 1."""
    rng = np.random.default_rng(seed)
    d = arch.d_model

    def noise(*shape: int) -> Array:
        return rng.standard_normal(shape, dtype=np.float32)

    weights = {"position_embedding": noise(arch.n_ctx, d)}
    if tokens:
        weights["token_embedding"] = noise(vocab_size, d)
    for i in range(arch.n_layer):
        for norm in ("ln1", "ln2"):
            weights[f"blocks.{i}.{norm}.gain"] = 1 + 0.2 * noise(d)
            if biases:
                weights[f"blocks.{i}.{norm}.bias"] = 0.1 * noise(d)
        for name in "qkvo":
            weights[f"blocks.{i}.attn.{name}"] = noise(d, d) / np.float32(np.sqrt(d))
            if biases and name != "o":
                weights[f"blocks.{i}.attn.{name}.bias"] = 0.1 * noise(d)
        if mlp:
            weights[f"blocks.{i}.mlp.in"] = noise(d, 4 * d)
    return weights


# Curves


def helix(n: int, turns: float, axis: float = 0.5) -> Array:
    """Return a circle of unit radius turning `turns` times in n steps, and a straight axis of std `axis`.

    The circle's own components have a std of 0.71 each.
    """
    t = np.arange(n) / n
    angle = 2 * np.pi * turns * t
    return np.column_stack([np.cos(angle), np.sin(angle), axis * (t - t.mean()) / t.std()])


def line(n: int) -> Array:
    return np.linspace(-1, 1, n)[:, None]


def random_walk(n: int, d: int, seed: int) -> Array:
    return np.cumsum(np.random.default_rng(seed).standard_normal((n, d)), axis=0)


def autoregressive(n: int, d: int, seed: int, memory: float) -> Array:
    """Return d AR(1) processes, x_t = memory x_(t-1) + noise, started long before the first row."""
    before = int(5 / (1 - memory))
    noise = np.random.default_rng(seed).standard_normal((before + n, d))
    return lfilter([1], [1, -memory], noise, axis=0)[before:]


def smoothed_noise(n: int, d: int, seed: int, width: float) -> Array:
    """Return d channels of white noise smoothed by a Gaussian of std `width` positions."""
    noise = np.random.default_rng(seed).standard_normal((n, d))
    return gaussian_filter1d(noise, width, axis=0)


def orthonormal(d: int, count: int, seed: int) -> Array:
    """Return `count` random orthonormal directions as columns, (d, count)."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, count)))[0]


def embed(curve: Array, d: int, *, noise: float = 0.0, channels: Sequence[int] | None = None, seed: int = 0) -> Array:
    """Return rows (n, d) in which a curve lies in random directions of the given channels, with noise in all."""
    used = np.arange(d) if channels is None else np.asarray(channels)
    rows = noise * np.random.default_rng([seed, 1]).standard_normal((len(curve), d))
    rows[:, used] += curve @ orthonormal(len(used), curve.shape[1], seed).T
    return rows


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


def with_frayed_start(rows: Array, noise: float, length: int = 100, seed: int = 0) -> Array:
    frayed = rows.copy()
    frayed[:length] += noise * np.random.default_rng([seed, 3]).standard_normal((length, rows.shape[1]))
    return frayed


def with_first_apart(rows: Array, distance: float) -> Array:
    """Return rows of which the first is `distance` away from the second."""
    apart = rows.copy()
    direction = np.ones(rows.shape[1]) / np.sqrt(rows.shape[1])
    apart[0] = rows[1] + distance * direction
    return apart


# Gains


def with_gains(weights: Weights, norm: str, gains: Sequence[Array]) -> Weights:
    return {**weights, **{f"blocks.{i}.{norm}.gain": gain for i, gain in enumerate(gains)}}


def gains_topped_by(
    channel: int, layers: Sequence[int], n_layer: int, d: int, ratio: float, seed: int = 0
) -> list[Array]:
    """Return gains between 0.5 and 1 in which `channel` is `ratio` times the runner-up in the given layers.

    In every other layer another channel, never the same one twice, is on top by as much.
    """
    rng = np.random.default_rng([seed, 4])
    gains = []
    for layer in range(n_layer):
        gain = rng.uniform(0.5, 0.999, d)
        top = channel if layer in layers else (channel + 1 + layer) % d
        runner_up = (top + 1) % d
        gain[runner_up] = 1.0
        gain[top] = ratio
        gains.append(gain)
    return gains


def dialled_down(std: Array, slope: float, noise: float, seed: int = 0) -> Array:
    """Return gains std^-slope with noise in their logarithm: the more a channel varies, the lower its gain."""
    return std**-slope * 10 ** (noise * np.random.default_rng([seed, 5]).standard_normal(len(std)))


# Attention


def reading(directions: Array, width: int, *, noise: float = 0.02, seed: int = 0) -> Array:
    """Return a matrix (d, width) whose leading left singular vectors span `directions` (d, count)."""
    rng = np.random.default_rng([seed, 6])
    d, count = directions.shape
    strength = np.linspace(2, 1, count)
    return (directions * strength) @ orthonormal(width, count, seed).T + noise * rng.standard_normal(
        (d, width)
    ) / np.sqrt(d)


def with_positional_heads(
    weights: Weights, arch: Architecture, heads: Mapping[tuple[int, int], int], sharpness: float = 60.0, seed: int = 0
) -> Weights:
    """Plant heads {(layer, head): offset} that attend `offset` tokens back by position alone.

    P becomes waves of random frequencies in channels that a layer norm only scales; the heads' keys read these
    waves, and their queries read them turned back by the offset. Softmax sees `sharpness` at the offset and, but
    for accidents of the frequencies, much less elsewhere.
    """
    rng = np.random.default_rng([seed, 7])
    n, d, d_head = arch.n_ctx, arch.d_model, arch.d_head
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
        for name, read in (("q", turned), ("k", np.hstack([cosines, sines]))):
            matrix = planted[f"{block}.attn.{name}"].copy()
            matrix[:, columns] = scale * read
            planted[f"{block}.attn.{name}"] = matrix
            if f"{block}.attn.{name}.bias" in planted:
                bias = planted[f"{block}.attn.{name}.bias"].copy()
                bias[columns] = 0
                planted[f"{block}.attn.{name}.bias"] = bias
        planted[f"{block}.ln1.gain"], planted[f"{block}.ln1.bias"] = np.ones(d), np.zeros(d)
    return planted


# Results


def measured_with(metrics: Mapping[str, object], **changed: object) -> Measurements:
    """Return measurements of these metrics with some of them changed, to judge claims at their thresholds."""
    return Measurements({**metrics, **changed})


def claims_on(finding: Finding, given: Inputs) -> list[Claim]:
    """Return a finding's claims, untested where it can't be measured."""
    try:
        return list(finding.claims(finding.measure(given)))
    except NotApplicableError as sentence:
        return list(finding.untested(str(sentence)))
