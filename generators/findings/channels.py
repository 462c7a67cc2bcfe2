"""Channels: do the position embeddings use few channels, and do the tokens avoid them?

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights" (token/position rivalry, the bimodal
histogram; the guess is Seraphina Nix's), and James Simon, "Insights into GPT-2's positional encodings" (sparse
singular vectors).
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators import figures
from generators.findings.finding import (
    NO_TOKENS,
    Claim,
    Figure,
    Finding,
    NotApplicableError,
    Result,
    Table,
    TokenFacts,
    Weights,
)
from generators.findings.thresholds import judge, untested
from generators.linalg import components_for, participation_ratio, spearman, svd
from generators.weights.families import Architecture

SMALLEST_GAP = 0.1  # in log10 std
SMALLEST_SHARE = 0.5  # of P's variance
TOP_VECTORS = 5
TRACES = 12  # channels drawn of either kind
TABLE_ROWS = 20
SEED = 20211201


def compute(weights: Weights, architecture: Architecture, tokens: TokenFacts = NO_TOKENS) -> Result:
    """Compute how P's variance spreads over channels.

    Args:
        weights: `position_embedding` (n, d); `token_embedding` (V, d) is used when there.
        architecture: not used beyond its existence.

    Raises:
        NotApplicableError: rows 1.. of P are all alike.
    """
    P = np.asarray(weights["position_embedding"], np.float64)
    n, d = P.shape
    std = P[1:].std(axis=0)
    variance = std**2
    if not variance.any():
        raise NotApplicableError("All rows of P but the first are alike: no channel varies.")
    chosen, gap = position_channels(std)
    _, _, right = svd(P)
    noise = np.random.default_rng(SEED).standard_normal((n - 1, d)).var(axis=0)
    metrics = {
        "position_std": std.tolist(),
        "position_channels": chosen.tolist(),
        "largest_gap": gap,
        "position_channels_variance_share": float(variance[chosen].sum() / variance.sum()),
        **{f"channels_for_{share}": components_for(variance, share / 100) for share in (90, 95, 99)},
        "channels_for_90_gaussian": components_for(noise, 0.90),
        "participation_ratio": participation_ratio(right[:TOP_VECTORS]).tolist(),
        "n_channels": d,
        **_beside_tokens(weights, std, chosen),
    }
    ranking = np.argsort(std)[::-1]
    return Result(metrics, _tables(metrics, P, ranking), _arrays(P, right, ranking))


def position_channels(std: Float[Array, " d"]) -> tuple[Int[Array, " k"], float | None]:
    """Return the channels above the largest gap in the sorted log10 std, strongest first, and that gap.

    The gap must leave 2 to d/4 channels above it, be at least 0.1, and those channels must hold at least half of
    P's variance; otherwise there are none. Channels that do not vary at all stand below every gap.
    """
    ranking = np.argsort(std)[::-1]
    most = min(len(std) // 4, len(std) - 1)
    if most < 2:
        return ranking[:0], None
    floor = std.max() * np.finfo(np.float64).eps
    log_std = np.log10(np.maximum(std[ranking], floor))
    gaps = log_std[1:most] - log_std[2 : most + 1]  # gaps[i] leaves i + 2 channels above it
    above = int(np.argmax(gaps)) + 2
    gap = float(gaps[above - 2])
    variance = std**2
    share = variance[ranking[:above]].sum() / variance.sum()
    found = gap >= SMALLEST_GAP and share >= SMALLEST_SHARE
    return ranking[: above if found else 0], gap


def _beside_tokens(weights: Weights, std: Float[Array, " d"], chosen: Int[Array, " k"]) -> dict[str, Any]:
    names = (
        "token_mean",
        "token_std",
        "spearman_position_std_token_std",
        "spearman_position_std_token_mean",
        "low_variance_overlap",
        "low_variance_overlap_chance",
    )
    if "token_embedding" not in weights:
        return dict.fromkeys(names)
    E = weights["token_embedding"]
    mean = E.mean(axis=0, dtype=np.float64)
    token_std = E.std(axis=0, dtype=np.float64)
    k, d = len(chosen), len(std)
    quietest = np.argsort(token_std)[:k]
    values = (
        mean.tolist(),
        token_std.tolist(),
        spearman(std, token_std),
        spearman(std, np.abs(mean)),
        len(np.intersect1d(quietest, chosen)) if k else None,
        k**2 / d if k else None,
    )
    return dict(zip(names, values, strict=True))


def _tables(m: dict[str, Any], P: Float[Array, "n d"], ranking: Int[Array, " d"]) -> dict[str, Table]:
    std, found = np.array(m["position_std"]), set(m["position_channels"])
    total = float(np.sum(std**2))
    mean = P[1:].mean(axis=0)
    return {
        "channels": Table(
            "The channels that vary most with position",
            ("channel", "position_std", "position_mean", "share_of_variance", "position_channel"),
            tuple(
                (int(c), float(std[c]), float(mean[c]), float(std[c] ** 2 / total), int(c) in found)
                for c in ranking[:TABLE_ROWS]
            ),
        )
    }


def _arrays(P: Float[Array, "n d"], right: Float[Array, "r d"], ranking: Int[Array, " d"]) -> dict[str, Array]:
    strong = ranking[: min(TRACES, len(ranking) // 2)]
    weak = ranking[len(ranking) // 2 :][:: max(1, len(ranking) // 2 // TRACES)][:TRACES]
    return {
        "strong_channels": strong.astype(np.int32),
        "strong_traces": P[:, strong].astype(np.float32),
        "weak_channels": weak.astype(np.int32),
        "weak_traces": P[:, weak].astype(np.float32),
        "right_singular_vectors": right[:TOP_VECTORS].astype(np.float32),
    }


def claims(result: Result) -> list[Claim]:
    """Judge whether positions live in few channels, and whether tokens avoid them."""
    return [_few_channels(result.metrics), _tokens_avoid(result.metrics)]


def _few_channels(m: dict[str, Any]) -> Claim:
    d, needed, chance = m["n_channels"], m["channels_for_90"], m["channels_for_90_gaussian"]
    answer = (
        f"{needed} of {d} channels ({needed / d:.1%}) hold 90 % of P's variance; "
        f"Gaussian rows would need {chance} ({chance / d:.0%})."
    )
    return judge("few-channels", needed / d, {"fails": answer}, baseline=chance / d)


def _tokens_avoid(m: dict[str, Any]) -> Claim:
    k = len(m["position_channels"])
    if m["token_std"] is None:
        return untested("tokens-avoid", "The token embedding isn't in this checkpoint.")
    if not k:
        return untested("tokens-avoid", "There are no position channels to avoid: no gap sets any apart.")
    overlap, chance = m["low_variance_overlap"], m["low_variance_overlap_chance"]
    return judge(
        "tokens-avoid",
        overlap,
        {
            "fails": f"{overlap} of the {k} position channels are among the {k} channels in which tokens vary "
            f"least; chance gives {chance:.1f}."
        },
        baseline=chance,
        holds_at=k / 2,
        also=overlap >= 2 * chance,
    )


def figures_of(result: Result) -> list[Figure]:
    """Return the figures of P's channels, the histogram first."""
    m, arrays = result.metrics, result.arrays
    k, d = len(m["position_channels"]), m["n_channels"]
    gap = f"{k} channels stand apart from the rest" if k else "no group of channels stands apart from the rest"
    ratios = ", ".join(f"{value:.0f}" for value in m["participation_ratio"])
    return [
        Figure(
            "channel-histogram",
            "How much each channel varies with position",
            "The standard deviation of every channel over positions 1 and later, on a logarithmic scale. Two "
            "humps mean that some channels carry position and the others do not; the line marks where the atlas "
            "divides them.",
            f"Histogram of log10 position std over {d} channels: {gap}.",
            lambda: draw_histogram(np.array(m["position_std"]), k),
        ),
        Figure(
            "channel-traces",
            "Position as single channels see it",
            "Each line is one channel of P against position. Left: the channels that vary most. Right, on a finer "
            "scale: channels from the weaker half.",
            f"Channel values against position. The strongest channel is {int(arrays['strong_channels'][0])} with a "
            f"std of {max(m['position_std']):.3f}; the median channel has {np.median(m['position_std']):.4f}.",
            lambda: draw_traces(arrays),
        ),
        Figure(
            "singular-vectors",
            "The top directions of P, channel by channel",
            "The five leading right singular vectors of P. A few tall spikes mean a direction that lives in few "
            "channels; the participation ratio counts them (all channels alike would give d).",
            f"Right singular vectors of P by channel; participation ratios {ratios} of {d} channels.",
            lambda: draw_singular_vectors(arrays["right_singular_vectors"], m["participation_ratio"]),
        ),
    ]


def draw_histogram(std: Float[Array, " d"], k: int) -> Any:
    """Draw the histogram of log10 std with the divide between position channels and the rest."""
    figure = figures.canvas(width=6.4, height=3.4)
    ax = figure.add_subplot()
    log_std = np.log10(std[std > 0])
    ax.hist(log_std, bins=60, color=figures.COLOURS[0])
    if k:
        edge = np.sort(log_std)[::-1][k - 1 : k + 1].mean()
        ax.axvline(edge, color=figures.COLOURS[1], ls="--", label=f"{k} position channels to the right")
        ax.legend()
    ax.set_xlabel("log10 of the channel's standard deviation over positions")
    ax.set_ylabel("channels")
    return figure


def draw_traces(arrays: dict[str, Array]) -> Any:
    """Draw strong and weak channels against position, each on its own scale."""
    figure = figures.canvas(width=8.6, height=3.6)
    for ax, kind, title in zip(
        figure.subplots(1, 2),
        ("strong", "weak"),
        ("the strongest channels", "weak channels, finer scale"),
        strict=True,
    ):
        for index, trace in enumerate(arrays[f"{kind}_traces"].T):
            ax.plot(trace, lw=0.8, color=figures.COLOURS[index % len(figures.COLOURS)], rasterized=True)
        ax.set_title(title)
        ax.set_xlabel("position (tokens)")
        ax.set_ylabel("value of the channel")
    return figure


def draw_singular_vectors(vectors: Float[Array, "5 d"], ratios: list[float]) -> Any:
    """Draw the right singular vectors below one another as stems over channels."""
    figure = figures.canvas(width=8.5, height=5.2)
    axes = figure.subplots(len(vectors), 1, sharex=True, sharey=True)
    for index, (ax, ratio) in enumerate(zip(np.atleast_1d(axes), ratios, strict=True)):
        ax.vlines(
            np.arange(vectors.shape[1]),
            0,
            vectors[index],
            lw=0.8,
            color=figures.COLOURS[index],
            rasterized=True,
        )
        ax.set_ylabel(f"vector {index + 1}")
        ax.annotate(
            f"participation ratio {ratio:.1f}", (0.99, 0.86), xycoords="axes fraction", ha="right", fontsize=8
        )
    np.atleast_1d(axes)[-1].set_xlabel("channel")
    return figure


CHANNELS = Finding(
    name="channels",
    title="Channels",
    version=1,
    needs=("position_embedding",),
    uses=("token_embedding",),
    parameters={"smallest_gap": SMALLEST_GAP, "smallest_share": SMALLEST_SHARE, "seed": SEED},
    compute=compute,
    claims=claims,
    figures=figures_of,
    signature="channel-histogram",
)
