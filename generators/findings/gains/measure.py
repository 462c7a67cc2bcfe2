from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.inputs import Inputs, Weights
from generators.findings.measured import Interval, Measurements, StoredChance, table_of
from generators.findings.nulls import DRAWS, RESAMPLES, drawn, interval, stored
from generators.findings.sizes import InStream, check_channels, check_width
from generators.maths.blocks import mean_and_std
from generators.maths.channels import (
    ConsistentChannel,
    MutedChannel,
    consistent_channel,
    most_layers_by_chance,
    muted_at,
    muted_channel,
)
from generators.maths.ranks import pearson
from generators.maths.resampling import pearson_of, resample_items
from generators.maths.rotations import channel_variances, correlations
from generators.maths.spectra import gram

Norm = Literal["ln1", "ln2"]
NORMS: tuple[Norm, ...] = ("ln1", "ln2")
TOP = 5
SEED = 20211138
SMALLEST_RATIO = 1.1  # median ratio to the runner-up from which a channel is singled out
PERMUTED = "channels permuted within every layer"


class Ranks(TypedDict):
    """Ranks of ln2's channel among all, 1 for the largest: by spread of positions, |mean| and spread of tokens.

    `share_of_first_direction` is its share of the first right singular vector of E, 1 / d on average.
    """

    channel: int
    position_std: int | None
    token_mean: int | None
    token_std: int | None
    share_of_first_direction: float | None


class GainsChances(TypedDict):
    """What P turned at random gives, and channels permuted within layers; None where there is nothing to draw."""

    dials_down: StoredChance | None
    layers_topped: StoredChance | None
    layers_muted: StoredChance | None


class GainsIntervals(TypedDict):
    """95 % intervals; channels are resampled one by one."""

    dials_down: Interval | None


class GainsMetrics(TypedDict):
    """Numbers by norm; a layer is a key as JSON writes it."""

    correlation: dict[Norm, dict[str, float | None]]
    consistent_channel: dict[Norm, ConsistentChannel | None]
    muted_channel: MutedChannel | None
    ln2_channel: Ranks | None
    n_channels: int
    chance: GainsChances
    intervals: GainsIntervals


class NormRow(TypedDict):
    norm: Norm
    layer: int
    correlation: float | None
    top_channels: list[int] | None


def measure(inputs: Inputs) -> Measurements[GainsMetrics]:
    """Measure how the gains of every norm relate to positions and which channels they raise."""
    gains = {norm: _gains(inputs, norm) for norm in NORMS}
    first = next(iter(gains["ln2"].values()))
    check_channels(len(first))
    weights = InStream(inputs.weights)
    for role in ("position_embedding", "token_embedding"):
        if role in weights:
            check_width(weights[role], first)
    std = _position_std(weights)
    found = {norm: consistent_channel(list(gains[norm].values())) for norm in NORMS}
    rows = [_describe(norm, layer, gain, std) for norm in NORMS for layer, gain in gains[norm].items()]
    metrics = GainsMetrics(
        correlation={
            norm: {str(row["layer"]): row["correlation"] for row in rows if row["norm"] == norm} for norm in NORMS
        },
        consistent_channel=found,
        muted_channel=muted_channel(gains["ln2"]),
        ln2_channel=None if found["ln2"] is None else _ranks(found["ln2"]["channel"], std, weights),
        n_channels=len(first),
        chance=_chance(gains, weights),
        intervals={"dials_down": _interval(std, gains["ln1"].get(0))},
    )
    title = "Every norm: correlation with position std and its largest gains"
    return Measurements(metrics, {"norms": table_of(title, NormRow, rows)}, _arrays(gains, std))


def _gains(inputs: Inputs, norm: Norm) -> dict[int, Float[Array, " d"]]:
    roles = {layer: f"blocks.{layer}.{norm}.gain" for layer in range(inputs.architecture.n_layer)}
    return {
        layer: np.abs(np.asarray(inputs.weights[role], np.float64))
        for layer, role in roles.items()
        if role in inputs.weights
    }


def _position_std(weights: Weights) -> Float[Array, " d"] | None:
    if len(weights.get("position_embedding", ())) < 2:
        return None
    return np.asarray(weights["position_embedding"], np.float64)[1:].std(axis=0)


def _describe(norm: Norm, layer: int, gain: Float[Array, " d"], std: Float[Array, " d"] | None) -> NormRow:
    top = np.argsort(gain, kind="stable")[::-1][:TOP]
    return {
        "norm": norm,
        "layer": layer,
        "correlation": None if std is None else log_correlation(std, gain),
        "top_channels": [int(channel) for channel in top] if np.ptp(gain) else None,
    }


def log_correlation(std: Float[Array, " d"], gain: Float[Array, " d"]) -> float | None:
    """Return Pearson's correlation of log10 std with log10 |gain|, channels at exactly 0 left out."""
    both = (std > 0) & (gain > 0)
    return pearson(np.log10(std[both]), np.log10(gain[both])) if both.sum() > 2 else None


def _ranks(channel: int, std: Float[Array, " d"] | None, weights: Weights) -> Ranks:
    E = weights.get("token_embedding")
    mean, token_std = (None, None) if E is None else mean_and_std(E)

    def rank(values: Float[Array, " d"] | None) -> int | None:
        return None if values is None else int(np.sum(values > values[channel])) + 1

    return {
        "channel": channel,
        "position_std": rank(std),
        "token_mean": rank(None if mean is None else np.abs(mean)),
        "token_std": rank(token_std),
        "share_of_first_direction": None if E is None else float(np.linalg.eigh(gram(E))[1][channel, -1] ** 2),
    }


def _chance(gains: dict[Norm, dict[int, Float[Array, " d"]]], weights: Weights) -> GainsChances:
    """Return the same numbers with P turned at random against the gains, or channels permuted in every layer."""
    rng = np.random.default_rng(SEED)
    first, down = gains["ln1"].get(0), None
    if first is not None and np.ptp(first) and len(weights.get("position_embedding", ())) > 1:
        P = np.asarray(weights["position_embedding"], np.float64)[1:]
        energies = np.linalg.svd(P - P.mean(axis=0), compute_uv=False) ** 2
        turned = channel_variances(energies, len(first), DRAWS, rng)
        there = first > 0
        if energies.any() and there.sum() > 2:
            logs = np.log10(np.maximum(turned[:, there], np.finfo(float).tiny)) / 2
            drawn_at_random = correlations(logs, np.log10(first[there])[None])
            down = drawn("correlations with the channels of P turned at random", drawn_at_random, "at most")
    tops = np.array([np.arange(len(gain)) == gain.argmax() for gain in gains["ln2"].values() if np.ptp(gain)])
    topped, muted = (
        stored(PERMUTED, most_layers_by_chance(marked)) if len(marked) else None
        for marked in (tops, muted_at(gains["ln2"]))
    )
    return {"dials_down": down, "layers_topped": topped, "layers_muted": muted}


def _interval(std: Float[Array, " d"] | None, gain: Float[Array, " d"] | None) -> Interval | None:
    if std is None or gain is None or log_correlation(std, gain) is None:
        return None
    both = (std > 0) & (gain > 0)
    statistic = pearson_of(np.log10(std[both]), np.log10(gain[both]))
    return interval(resample_items(statistic, int(both.sum()), RESAMPLES, np.random.default_rng(SEED)))


def _arrays(gains: dict[Norm, dict[int, Float[Array, " d"]]], std: Float[Array, " d"] | None) -> dict[str, Array]:
    arrays: dict[str, Array] = {
        f"{norm}_gain": np.stack(list(gains[norm].values())).astype(np.float32) for norm in NORMS if gains[norm]
    }
    arrays |= {f"{norm}_layers": np.array(list(gains[norm]), np.int32) for norm in NORMS}
    if std is not None:
        arrays["position_std"] = std.astype(np.float32)
    return arrays
