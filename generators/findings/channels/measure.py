from typing import cast

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.inputs import Inputs, NotApplicableError, Weights
from generators.findings.measured import Interval, Measurements, StoredChance, Table, table_of
from generators.findings.nulls import DRAWS, RESAMPLES, drawn, interval
from generators.findings.sizes import check_positions
from generators.maths import rotations
from generators.maths.blocks import mean_and_std
from generators.maths.ranks import spearman
from generators.maths.resampling import block_weights, resample_items, spearman_of, spreads
from generators.maths.sines import sines
from generators.maths.spectra import components_for, gram, participation_ratio, svd

SMALLEST_GAP = 0.1  # gap in log10 std
SMALLEST_SHARE = 0.5  # share of P's variance
TOP_VECTORS = 5
TABLE_ROWS = 20
SEED = 20211201


class ChannelsChances(TypedDict):
    """What turning the stream at random gives, by number; None where there are no tokens or no position channels."""

    channels_for_90: StoredChance
    low_variance_overlap: StoredChance | None
    spearman_position_std_token_std: StoredChance | None


class ChannelsIntervals(TypedDict):
    """95 % intervals, by number: positions are resampled in blocks, channels one by one."""

    channels_for_90: Interval
    spearman_position_std_token_std: Interval | None


class TokensByChannel(TypedDict):
    """Tokens channel by channel, and how that goes with positions; None without tokens.

    The overlap is how many of the k position channels are among the k in which tokens vary least; None without any.
    """

    token_mean: list[float] | None
    token_std: list[float] | None
    spearman_position_std_token_std: float | None
    spearman_position_std_token_mean: float | None
    low_variance_overlap: int | None
    low_variance_overlap_chance: float | None


class ChannelsMetrics(TokensByChannel):
    """Numbers of P's channels, by channel or strongest first."""

    position_std: list[float]
    position_channels: list[int]
    largest_gap: float
    position_channels_variance_share: float
    channels_for_90: int
    channels_for_95: int
    channels_for_99: int
    participation_ratio: list[float]
    n_channels: int
    chance: ChannelsChances
    intervals: ChannelsIntervals


def measure(inputs: Inputs) -> Measurements[ChannelsMetrics]:
    """Measure how P's variance spreads over channels."""
    P, std = _positions(inputs.weights)
    E = inputs.weights.get("token_embedding")
    moments = None if E is None else mean_and_std(E)
    chosen, gap = position_channels(std)
    right = svd(P)[2][:TOP_VECTORS]
    variance = std**2
    metrics: ChannelsMetrics = {
        "position_std": std.tolist(),
        "position_channels": chosen.tolist(),
        "largest_gap": gap,
        "position_channels_variance_share": float(variance[chosen].sum() / variance.sum()),
        "channels_for_90": components_for(variance, 0.90),
        "channels_for_95": components_for(variance, 0.95),
        "channels_for_99": components_for(variance, 0.99),
        "participation_ratio": participation_ratio(right).tolist(),
        "n_channels": P.shape[1],
        **_tokens_by_channel(moments, std, chosen),
        "chance": _chance(P, E, len(chosen)),
        "intervals": _intervals(P, std, None if moments is None else moments[1]),
    }
    arrays = {"right_singular_vectors": right.astype(np.float32), "is_sines": np.array([sines(P) is not None])}
    if E is not None:
        arrays["position_mean"] = P[1:].mean(axis=0).astype(np.float32)
    return Measurements(metrics, {"channels": _table(P, std, chosen)}, arrays)


def _positions(weights: Weights) -> tuple[Float[Array, "n d"], Float[Array, " d"]]:
    """Return P, and the std of every channel over all positions but the first; of a constant one it is exactly 0."""
    P = np.asarray(weights["position_embedding"], np.float64)
    check_positions(P)
    std = np.where(np.ptp(P[1:], axis=0) > 0, P[1:].std(axis=0), 0)
    if not (std**2).any():
        raise NotApplicableError("The rows of P are alike, all or all but the first: no channel varies.")
    return P, std


def position_channels(std: Float[Array, " d"]) -> tuple[Int[Array, " k"], float]:
    """Return the channels above the largest gap in the sorted log10 std, strongest first, and that gap.

    The gap must leave 2 to d/4 channels above it, be at least 0.1, and those channels must hold at least half of
    P's variance; otherwise there are none. Channels that do not vary at all stand below every gap.
    """
    ranking = np.argsort(std, kind="stable")[::-1]
    most = len(std) // 4
    floor = std.max() * np.finfo(np.float64).eps
    log_std = np.log10(np.maximum(std[ranking], floor))
    gaps = log_std[1:most] - log_std[2 : most + 1]  # gaps[i] leaves i + 2 channels above it
    above = int(np.argmax(gaps)) + 2
    gap = float(gaps[above - 2])
    variance = std**2
    share = variance[ranking[:above]].sum() / variance.sum()
    found = gap >= SMALLEST_GAP and share >= SMALLEST_SHARE
    return ranking[: above if found else 0], gap


def _tokens_by_channel(
    moments: tuple[Float[Array, " d"], Float[Array, " d"]] | None,
    std: Float[Array, " d"],
    chosen: Int[Array, " k"],
) -> TokensByChannel:
    if moments is None:
        return cast(TokensByChannel, dict.fromkeys(TokensByChannel.__annotations__))
    mean, token_std = moments
    k, d = len(chosen), len(std)
    weakest = np.argsort(token_std, kind="stable")[:k]
    return {
        "token_mean": mean.tolist(),
        "token_std": token_std.tolist(),
        "spearman_position_std_token_std": spearman(std, token_std),
        "spearman_position_std_token_mean": spearman(std, np.abs(mean)),
        "low_variance_overlap": len(np.intersect1d(weakest, chosen)) if k else None,
        "low_variance_overlap_chance": k**2 / d if k else None,
    }


def _chance(P: Float[Array, "n d"], E: Float[Array, "V d"] | None, k: int) -> ChannelsChances:
    """Return what the same numbers are in axes turned at random: P alone, or P and tokens together."""
    rng = np.random.default_rng(SEED)
    d = P.shape[1]
    away = P[1:] - P[1:].mean(axis=0)
    turned = rotations.channel_variances(np.linalg.svd(away, compute_uv=False) ** 2, d, DRAWS, rng)
    few = drawn("channels of P turned at random", rotations.channels_for(turned, 0.90) / d, "at most")
    if E is None:
        return {"channels_for_90": few, "low_variance_overlap": None, "spearman_position_std_token_std": None}
    position_variances, token_variances = rotations.both_channel_variances(
        away, gram(E, centred=True) / len(E), DRAWS, rng
    )
    both = "channels of P and E turned together at random"
    return {
        "channels_for_90": few,
        "low_variance_overlap": drawn(both, rotations.low_variance_overlaps(position_variances, token_variances, k))
        if k
        else None,
        "spearman_position_std_token_std": drawn(
            both, rotations.rank_correlations(position_variances, token_variances), "at most"
        ),
    }


def _intervals(
    P: Float[Array, "n d"], std: Float[Array, " d"], token_std: Float[Array, " d"] | None
) -> ChannelsIntervals:
    rng = np.random.default_rng(SEED)
    rows = P[1:]
    variances = spreads(rows, block_weights(len(rows), RESAMPLES, rng)) ** 2
    by_channel = None
    if token_std is not None:
        by_channel = interval(resample_items(spearman_of(std, token_std), len(std), RESAMPLES, rng))
    return {
        "channels_for_90": interval(rotations.channels_for(variances, 0.90) / len(std)),
        "spearman_position_std_token_std": by_channel,
    }


def _table(P: Float[Array, "n d"], std: Float[Array, " d"], chosen: Int[Array, " k"]) -> Table:
    total, mean, found = float(np.sum(std**2)), P[1:].mean(axis=0), set(chosen.tolist())
    rows = [
        {
            "channel": channel,
            "position_std": float(std[channel]),
            "position_mean": float(mean[channel]),
            "share_of_variance": float(std[channel] ** 2 / total),
            "position_channel": channel in found,
        }
        for channel in np.argsort(std, kind="stable")[::-1][:TABLE_ROWS].tolist()
    ]
    return table_of("The channels that vary most with position", rows[0], rows)
