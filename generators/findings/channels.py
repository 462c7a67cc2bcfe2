"""Channels: do the position embeddings use few channels, and do the tokens avoid them?

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights" (token/position rivalry, the bimodal
histogram; the guess is Seraphina Nix's), and James Simon, "Insights into GPT-2's positional encodings" (sparse
singular vectors).
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.drawing import style
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
from generators.maths.spectra import components_for, participation_ratio, spearman, svd
from generators.maths.blocks import mean_and_std, norms, spread_ids
from generators.base.architecture import Architecture

FEWEST_POSITIONS = 3
SMALLEST_GAP = 0.1  # in log10 std
SMALLEST_SHARE = 0.5  # of P's variance
TOP_VECTORS = 5
TRACES = 12  # channels drawn of either kind
TABLE_ROWS = 20
SEED = 20211201
CHUNK_TOKENS, CHUNK_CHANNELS = 256, 64  # of E, shown as an image
PLAIN_NORMS = 0.5, 2.0  # x the median norm: what lies outside is unused or otherwise extreme
OVERLAID = 30  # histograms of tokens, and of channels
BINS_OF_TOKEN, BINS_OF_CHANNEL = 32, 80
HISTOGRAM_TAIL = 0.001  # of the values, left out at either end
SAMPLED_TOKENS = 2000  # in scatter plots
FEWEST_FOR_PAIRS = 4  # channels
FLOAT16_KEEPS = 1e-3, 6e4  # largest values between which float16 loses nothing that can be seen
TOKEN_GREY = "#878d98"  # seen on white and on slate


def compute(weights: Weights, architecture: Architecture, tokens: TokenFacts = NO_TOKENS) -> Result:
    """Compute how P's variance spreads over channels.

    Args:
        weights: `position_embedding` (n, d); `token_embedding` (V, d) is used when there.
        architecture: not used beyond its existence.

    Raises:
        NotApplicableError: P has fewer than three rows, or rows 1.. of it are all alike.
    """
    P = np.asarray(weights["position_embedding"], np.float64)
    n, d = P.shape
    if n < FEWEST_POSITIONS:
        raise NotApplicableError(f"P has only {n} positions; channels can't be told apart by their spread.")
    std = np.where(np.ptp(P[1:], axis=0) > 0, P[1:].std(axis=0), 0)
    variance = std**2
    if not variance.any():
        raise NotApplicableError("All rows of P but the first are alike: no channel varies.")
    chosen, gap = position_channels(std)
    _, _, right = svd(P)
    E = weights.get("token_embedding")
    moments = None if E is None else mean_and_std(E)
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
        **_beside_tokens(moments, std, chosen),
    }
    ranking = np.argsort(std)[::-1]
    arrays = _arrays(P, right, ranking)
    if E is not None and moments is not None:
        arrays |= _token_arrays(E, *moments) | _pair_arrays(E, P, pair_channels(ranking, len(chosen)))
        arrays["position_mean"] = P[1:].mean(axis=0).astype(np.float32)
    return Result(metrics, _tables(metrics, P, ranking), arrays)


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


def _beside_tokens(
    moments: tuple[Array, Array] | None, std: Float[Array, " d"], chosen: Int[Array, " k"]
) -> dict[str, Any]:
    names = (
        "token_mean",
        "token_std",
        "spearman_position_std_token_std",
        "spearman_position_std_token_mean",
        "low_variance_overlap",
        "low_variance_overlap_chance",
    )
    if moments is None:
        return dict.fromkeys(names)
    mean, token_std = moments
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


def _token_arrays(E: Float[Array, "V d"], mean: Float[Array, " d"], std: Float[Array, " d"]) -> dict[str, Array]:
    """Return a chunk of E, and histograms of its first rows (over channels) and columns (over all tokens)."""
    first, channel = plain_tokens(norms(E)), striped_channels(mean, std)
    tokens = np.arange(first, min(first + CHUNK_TOKENS, len(E)))
    channels = np.arange(channel, min(channel + CHUNK_CHANNELS, E.shape[1]))
    rows, columns = E[tokens[:OVERLAID]], E[:, channel : channels[-1] + 1][:, :OVERLAID]
    sample = columns[spread_ids(len(E), SAMPLED_TOKENS)]
    row_counts, row_edges = _histograms(rows, BINS_OF_TOKEN, _span(rows))
    column_counts, column_edges = _histograms(columns.T, BINS_OF_CHANNEL, _span(sample))
    return {
        "chunk": _compact(E[first : tokens[-1] + 1, channel : channels[-1] + 1].T),
        "chunk_tokens": tokens.astype(np.int32),
        "chunk_channels": channels.astype(np.int32),
        "token_histograms": row_counts,
        "token_histogram_edges": row_edges,
        "channel_histograms": column_counts,
        "channel_histogram_edges": column_edges,
    }


def plain_tokens(lengths: Float[Array, " V"]) -> int:
    """Return the first id of the first 256 consecutive tokens of ordinary norm: half to twice the median.

    Unused tokens at the start of a vocabulary are passed over where their norms tell them. 0 where there is no such
    run.
    """
    run = min(CHUNK_TOKENS, len(lengths))
    low, high = (bound * float(np.median(lengths)) for bound in PLAIN_NORMS)
    plain = np.concatenate([[0], np.cumsum((lengths >= low) & (lengths <= high))])
    runs = np.flatnonzero(plain[run:] - plain[:-run] == run)
    return int(runs[0]) if len(runs) else 0


def striped_channels(mean: Float[Array, " d"], std: Float[Array, " d"]) -> int:
    """Return the first of the 64 consecutive channels whose token means stand out most.

    That is, in which |mean| / std over tokens, counted up to 1, sums highest.
    """
    length = min(CHUNK_CHANNELS, len(mean))
    offset = np.abs(mean) / np.maximum(np.maximum(std, np.abs(mean)), np.finfo(np.float64).tiny)
    total = np.concatenate([[0], np.cumsum(offset)])
    return int(np.argmax(total[length:] - total[:-length]))


def _histograms(
    rows: Float[Array, "count values"], bins: int, span: tuple[np.float64, np.float64]
) -> tuple[Int[Array, "count bins"], Float[Array, " edges"]]:
    """Return one histogram per row, all with the same edges; values outside the span are left out."""
    counts = [np.histogram(row, bins, span)[0] for row in rows]
    return np.array(counts, np.int32), np.linspace(*span, bins + 1, dtype=np.float32)


def _span(values: Float[Array, "..."], tail: float = HISTOGRAM_TAIL) -> tuple[np.float64, np.float64]:
    """Return between what values all but the tails lie; never empty."""
    low, high = np.quantile(values, (tail, 1 - tail)).astype(np.float64)
    margin = max(0.02 * (high - low), 1e-3 * max(abs(low), abs(high))) or 0.5
    return low - margin, high + margin


def pair_channels(ranking: Int[Array, " d"], k: int) -> Int[Array, " four"]:
    """Return two channels in which positions are active and two in which they are not.

    With k position channels: the strongest two, and the median two of the others. Without: the two that vary most and
    the two that vary least. None where there are fewer than four channels.
    """
    if len(ranking) < FEWEST_FOR_PAIRS:
        return ranking[:0]
    others = ranking[k:]
    quiet = others[len(others) // 2 - 1 :][:2] if k else ranking[-2:]
    return np.concatenate([ranking[:2], quiet])


def _pair_arrays(E: Float[Array, "V d"], P: Float[Array, "n d"], pairs: Int[Array, " four"]) -> dict[str, Array]:
    if not len(pairs):
        return {}
    tokens = spread_ids(len(E), SAMPLED_TOKENS)
    return {
        "pair_channels": pairs.astype(np.int32),
        "pair_token_ids": tokens.astype(np.int32),
        "pair_tokens": _compact(E[np.ix_(tokens, pairs)]),
        "pair_positions": _compact(P[1:, pairs]),
    }


def _compact(values: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return values as float16 where that keeps what can be seen, else as float32."""
    low, high = FLOAT16_KEEPS
    return values.astype(np.float16 if low < np.abs(values).max(initial=0) < high else np.float32)


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
        *(_token_figures(result) if "chunk" in arrays else []),
    ]


def _token_figures(result: Result) -> list[Figure]:
    found = [_chunk(result), _value_histograms(result), _moments(result), _rivalry(result)]
    return [*found, _pairs(result)] if "pair_channels" in result.arrays else found


def _striped(m: dict[str, Any]) -> Array:
    """Return which channels have a token mean larger than their token std."""
    return np.abs(m["token_mean"]) > np.array(m["token_std"])


def _chunk(result: Result) -> Figure:
    m, tokens, channels = result.metrics, result.arrays["chunk_tokens"], result.arrays["chunk_channels"]
    striped = _striped(m)
    marks = " Arrows mark position channels." if m["position_channels"] else ""
    return Figure(
        "embedding-chunk",
        "A piece of the token embedding",
        f"The first {len(tokens)} consecutive tokens of ordinary norm (half to twice the median), across, in the "
        f"{len(channels)} consecutive channels whose means stand out most, down. A horizontal stripe is a channel in "
        f"which the tokens are systematically larger (red) or smaller (blue) than zero.{marks}",
        f"Token embedding, ids {tokens[0]} to {tokens[-1]}, channels {channels[0]} to {channels[-1]}: in "
        f"{striped[channels].sum()} of these {len(channels)} channels, and in {striped.sum()} of all "
        f"{m['n_channels']}, the tokens' mean is larger than their std.",
        lambda: draw_chunk(result.arrays, m),
    )


def _value_histograms(result: Result) -> Figure:
    m, arrays = result.metrics, result.arrays
    tokens, channels = arrays["chunk_tokens"][:OVERLAID], arrays["chunk_channels"][:OVERLAID]
    std = np.array(m["token_std"])[channels]
    marks = "; position channels are orange" if np.isin(channels, m["position_channels"]).any() else ""
    return Figure(
        "value-histograms",
        "Token embeddings, a token at a time and a channel at a time",
        f"Left: the values of each of {len(tokens)} tokens over all channels. Right: the values of each of "
        f"{len(channels)} channels over all tokens{marks}. Both are the first of the piece above. "
        "Channels that are narrower than the others and off zero are those that tokens keep to a constant.",
        f"Overlaid histograms of tokens {tokens[0]} to {tokens[-1]} and of channels {channels[0]} to {channels[-1]}. "
        f"The channels' stds go from {std.min():.3g} to {std.max():.3g}.",
        lambda: draw_value_histograms(arrays, m["position_channels"]),
    )


def _moments(result: Result) -> Figure:
    m = result.metrics
    mean, std = np.array(m["token_mean"]), np.array(m["token_std"])
    return Figure(
        "token-moments",
        "Mean and spread of each channel over the tokens",
        "One entry per channel: the mean (left) and the standard deviation (right) of its values over all tokens. "
        f"{'Position channels are orange. ' if m['position_channels'] else ''}"
        "Heavy tails of the means and a tail of small stds are channels that tokens "
        "avoid or shift.",
        f"Histograms over {len(mean)} channels: means from {mean.min():.3g} to {mean.max():.3g}, stds from "
        f"{std.min():.3g} to {std.max():.3g} with a median of {np.median(std):.3g}.",
        lambda: draw_moments(mean, std, m["position_channels"]),
    )


def _rivalry(result: Result) -> Figure:
    m = result.metrics
    return Figure(
        "channel-rivalry",
        "Tokens and positions, channel by channel",
        "Every channel stands at its position std and has four marks: mean and std of the tokens, mean and std of "
        "the positions (means as absolute values). Both scales are logarithmic. Token stds (green) that fall and "
        "token means (blue) that rise to the right are tokens that leave these channels to the positions.",
        f"Means and stds of {m['n_channels']} channels against position std. Spearman of position std with token std "
        f"{_two_digits(m['spearman_position_std_token_std'])}, with the tokens' absolute mean "
        f"{_two_digits(m['spearman_position_std_token_mean'])}.",
        lambda: draw_rivalry(m, result.arrays["position_mean"]),
    )


def _two_digits(correlation: float | None) -> str:
    return "undefined" if correlation is None else f"{correlation:+.2f}"


def _pairs(result: Result) -> Figure:
    m, arrays = result.metrics, result.arrays
    a, b, c, d = (int(channel) for channel in arrays["pair_channels"])
    kinds = ("two position channels, one of each kind, two ordinary channels", "")
    if not m["position_channels"]:
        kinds = (
            "the two channels that vary most with position, one of these and one that varies least, the two that "
            "vary least",
            " This model has no position channels, so these extremes stand in for them.",
        )
    positions, tokens = (np.array(m[name])[[a, c]] for name in ("position_std", "token_std"))
    return Figure(
        "channel-pairs",
        "Tokens and positions in pairs of channels",
        f"From left to right: {kinds[0]}. Each coloured dot is one position (neighbours are joined), each grey one a "
        f"token, of {len(arrays['pair_tokens'])} spread evenly over all ids.{kinds[1]}",
        f"Pairs of channels {a} and {b}, {a} and {c}, {c} and {d}. Positions spread by {positions[0]:.3g} in channel "
        f"{a} and by {positions[1]:.3g} in channel {c}; tokens by {tokens[0]:.3g} and {tokens[1]:.3g}.",
        lambda: draw_pairs(arrays, bool(m["position_channels"])),
    )


def draw_histogram(std: Float[Array, " d"], k: int) -> Any:
    """Draw the histogram of log10 std with the divide between position channels and the rest."""
    figure = style.canvas(width=6.4, height=3.4)
    ax = figure.add_subplot()
    log_std = np.log10(std[std > 0])
    ax.hist(log_std, bins=60, color=style.COLOURS[0])
    if k:
        edge = np.sort(log_std)[::-1][k - 1 : k + 1].mean()
        ax.axvline(edge, color=style.COLOURS[1], ls="--", label=f"{k} position channels to the right")
        ax.legend()
    ax.set_xlabel("log10 of the channel's standard deviation over positions")
    ax.set_ylabel("channels")
    return figure


def draw_traces(arrays: dict[str, Array]) -> Any:
    """Draw strong and weak channels against position, each on its own scale."""
    figure = style.canvas(width=8.6, height=3.6)
    for ax, kind, title in zip(
        figure.subplots(1, 2),
        ("strong", "weak"),
        ("the strongest channels", "weak channels, finer scale"),
        strict=True,
    ):
        for index, trace in enumerate(arrays[f"{kind}_traces"].T):
            ax.plot(trace, lw=0.8, color=style.COLOURS[index % len(style.COLOURS)], rasterized=True)
        ax.set_title(title)
        ax.set_xlabel("position (tokens)")
        ax.set_ylabel("value of the channel")
    return figure


def draw_singular_vectors(vectors: Float[Array, "5 d"], ratios: list[float]) -> Any:
    """Draw the right singular vectors below one another as stems over channels."""
    figure = style.canvas(width=8.5, height=5.2)
    axes = figure.subplots(len(vectors), 1, sharex=True, sharey=True)
    for index, (ax, ratio) in enumerate(zip(np.atleast_1d(axes), ratios, strict=True)):
        ax.vlines(
            np.arange(vectors.shape[1]),
            0,
            vectors[index],
            lw=0.8,
            color=style.COLOURS[index],
            rasterized=True,
        )
        ax.set_ylabel(f"vector {index + 1}")
        ax.annotate(
            f"participation ratio {ratio:.1f}", (0.99, 0.86), xycoords="axes fraction", ha="right", fontsize=8
        )
    np.atleast_1d(axes)[-1].set_xlabel("channel")
    return figure


def draw_chunk(arrays: dict[str, Array], m: dict[str, Any]) -> Any:
    """Draw a chunk of E as an image, tokens across and channels down, position channels marked at its side."""
    tokens, channels = arrays["chunk_tokens"], arrays["chunk_channels"]
    limit = 3 * float(np.median(m["token_std"])) or 1.0
    figure = style.canvas(width=8.6, height=4.2)
    ax = figure.add_subplot()
    image = ax.imshow(
        arrays["chunk"].astype(np.float32),
        cmap=_stripe_colours(),
        vmin=-limit,
        vmax=limit,
        extent=(tokens[0] - 0.5, tokens[-1] + 0.5, channels[-1] + 0.5, channels[0] - 0.5),
        aspect="auto",
        interpolation="none",
    )
    marked = np.intersect1d(channels, m["position_channels"])
    if len(marked):
        outside = np.full(len(marked), 1.012)
        side = {"transform": ax.get_yaxis_transform(), "clip_on": False}
        ax.plot(outside, marked, "<", ms=4, color=style.COLOURS[1], label="position channel", **side)
        figure.legend(loc="outside upper right")
    ax.set_xlabel("token (id)")
    ax.set_ylabel("channel")
    ax.grid(False)
    figure.colorbar(image, ax=ax, label="value of the embedding", extend="both", shrink=0.9, pad=0.03)
    return figure


def _stripe_colours() -> Any:
    """Return the house's diverging colours, see-through only at zero: faint stripes must show."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    below, above = (to_rgb(end) for end in style.DIVERGING_ENDS)
    stops = [(0.0, (*below, 1)), (0.5, (*below, 0)), (0.5, (*above, 0)), (1.0, (*above, 1))]
    return LinearSegmentedColormap.from_list("stripes", stops)


def draw_value_histograms(arrays: dict[str, Array], position_channels: list[int]) -> Any:
    """Draw the overlaid histograms of rows of E beside those of columns."""
    figure = style.canvas(width=8.6, height=3.6)
    left, right = figure.subplots(1, 2)
    _overlay(left, arrays["token_histograms"], arrays["token_histogram_edges"], set())
    shown = arrays["chunk_channels"][: len(arrays["channel_histograms"])].tolist()
    marked = {row for row, channel in enumerate(shown) if channel in position_channels}
    _overlay(right, arrays["channel_histograms"], arrays["channel_histogram_edges"], marked)
    left.set_title(f"{len(arrays['token_histograms'])} tokens")
    right.set_title(f"{len(shown)} channels")
    left.set_ylabel("share of channels in a bin")
    right.set_ylabel("share of tokens in a bin")
    for ax in (left, right):
        ax.set_xlabel("value of the embedding")
        ax.locator_params(axis="x", nbins=6)
    return figure


def _overlay(ax: Any, counts: Int[Array, "rows bins"], edges: Float[Array, " edges"], marked: set[int]) -> None:
    """Draw one line per row: the marked ones in orange over the others in blue; where none is, in all colours."""
    centres = (edges[1:] + edges[:-1]) / 2
    for row in sorted(range(len(counts)), key=lambda row: row in marked):
        colour = style.COLOURS[int(row in marked) if marked else row % len(style.COLOURS)]
        shares = counts[row] / max(1, counts[row].sum())
        ax.plot(centres, shares, color=colour, lw=0.9, alpha=0.7)
    ax.set_ylim(bottom=0)
    if marked:
        for colour, label in zip(style.COLOURS, ("other", "position channel"), strict=False):
            ax.plot([], [], color=colour, label=label)
        ax.legend()


def draw_moments(mean: Float[Array, " d"], std: Float[Array, " d"], position_channels: list[int]) -> Any:
    """Draw the histograms of token means and stds over channels, position channels stacked on the others."""
    figure = style.canvas(width=8.6, height=3.4)
    chosen = np.isin(np.arange(len(mean)), position_channels)
    for ax, values, name in zip(figure.subplots(1, 2), (mean, std), ("mean", "standard deviation"), strict=True):
        style = {"bins": 50, "range": _span(values, tail=0)}
        if chosen.any():
            parts, labels = [values[~chosen], values[chosen]], ["other channels", "position channels"]
            ax.hist(parts, **style, stacked=True, color=style.COLOURS[:2], label=labels)
            ax.legend()
        else:
            ax.hist(values, **style, color=style.COLOURS[0])
        ax.locator_params(axis="x", nbins=6)
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel(f"{name} of the channel over tokens")
        ax.set_ylabel("channels")
    return figure


def draw_rivalry(m: dict[str, Any], position_mean: Float[Array, " d"]) -> Any:
    """Draw the four summaries of every channel against its position std, on logarithmic scales."""
    x = np.array(m["position_std"])
    series = (
        ("|mean| over tokens", np.abs(m["token_mean"]), style.COLOURS[0], "o"),
        ("std over tokens", np.array(m["token_std"]), style.COLOURS[2], "^"),
        ("|mean| over positions", np.abs(position_mean), style.COLOURS[1], "s"),
        ("std over positions", x, style.COLOURS[4], "D"),
    )
    figure = style.canvas(width=8.0, height=5.4)
    ax = figure.add_subplot()
    for label, values, colour, marker in series:
        there = (x > 0) & (values > 0)
        ax.scatter(
            x[there], values[there], s=9, color=colour, marker=marker, lw=0, alpha=0.8, label=label, rasterized=True
        )
    _divide(ax, x, len(m["position_channels"]))
    drawn = np.concatenate([values[(x > 0) & (values > 0)] for _, values, _, _ in series])
    ax.set(xscale="log", yscale="log", ylim=(0.7 * np.quantile(drawn, 0.005), 1.5 * drawn.max()))
    ax.set_xlabel("standard deviation of the channel over positions")
    ax.set_ylabel("mean or standard deviation of the channel")
    figure.legend(loc="outside upper center", ncols=len(series), markerscale=1.8, handletextpad=0.3)
    return figure


def _divide(ax: Any, std: Float[Array, " d"], k: int) -> None:
    """Draw the divide between the k position channels and the rest."""
    if k:
        ordered = np.sort(std)[::-1]
        edge = np.sqrt(ordered[k - 1] * ordered[k]) if ordered[k] else ordered[k - 1]
        ax.axvline(edge, color=style.INK, ls="--", lw=1)
        place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        ax.annotate(f"{k} position channels →", (edge, 0.96), (-5, 0), ha="right", fontsize=9, **place)


def draw_pairs(arrays: dict[str, Array], has_position_channels: bool) -> Any:
    """Draw tokens (grey) and positions (coloured) in three pairs of channels: both kinds, one of each, neither."""
    tokens, positions = (arrays[name].astype(np.float32) for name in ("pair_tokens", "pair_positions"))
    kinds = ("position channels", "one of each", "ordinary channels")
    if not has_position_channels:
        kinds = ("vary most with position", "one of each", "vary least with position")
    figure = style.canvas(width=9.6, height=3.6)
    figure.get_layout_engine().set(wspace=0.06)
    axes = figure.subplots(1, 3)
    for ax, pair, kind in zip(axes, ((0, 1), (0, 2), (2, 3)), kinds, strict=True):
        ax.scatter(*tokens[:, pair].T, s=4, color=TOKEN_GREY, lw=0, alpha=0.4, rasterized=True, label="tokens")
        x, y = positions[:, pair].T
        points = style.curve_2d(ax, x, y, np.arange(1, len(positions) + 1))
        ax.set_title(kind)
        ax.set_xlabel(f"channel {arrays['pair_channels'][pair[0]]}")
        ax.set_ylabel(f"channel {arrays['pair_channels'][pair[1]]}")
        ax.set_aspect("equal", "datalim")
    axes[0].legend(markerscale=2.5).legend_handles[0].set_alpha(1)
    figure.colorbar(points, ax=axes, label="position (tokens)", shrink=0.8)
    return figure


CHANNELS = Finding(
    name="channels",
    title="Channels",
    version=2,
    needs=("position_embedding",),
    uses=("token_embedding",),
    parameters={"smallest_gap": SMALLEST_GAP, "smallest_share": SMALLEST_SHARE, "seed": SEED},
    compute=compute,
    claims=claims,
    figures=figures_of,
    signature="channel-histogram",
)
