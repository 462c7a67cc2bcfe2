"""Frequency: where in a token's embedding is it written how often the token occurs?

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights": channel 138, the norm and the first singular
direction are three candidates for a unigram frequency feature.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.finding import NO_TOKENS, Claim, Figure, Finding, Result, Table, TokenFacts, Weights
from generators.findings.gains import consistent_channel
from generators.findings.thresholds import judge, untested
from generators.tokens.frequency import Frequency
from generators.drawing.interactive import Group, Scatter
from generators.drawing.labels import cells, names
from generators.maths.spectra import gram
from generators.base.architecture import Architecture

EXTREMES = 20  # tokens listed at either end
SAMPLE = 4096  # tokens drawn in figures
RESAMPLES = 400
INTERVAL = (2.5, 97.5)  # percentiles
SEED = 20211138
BLOCK = 16  # channels ranked at once
CHANCE_FACTOR = 2.0
SMALLEST_RHO = 0.3  # below this a channel does not track frequency, so it is not "the frequency channel"
CANDIDATES = {"frequency_channel": "frequency channel", "norm": "norm", "svd_0": "first singular direction"}


@dataclass(frozen=True)
class Ranked:
    """Centred mid-ranks of a quantity over the tokens it is known for, 0 for the others."""

    known: Bool[Array, " V"]
    ranks: Float[Array, " V"]
    norm: float


def compute(weights: Weights, architecture: Architecture, tokens: TokenFacts = NO_TOKENS) -> Result:
    """Compute how channels, norms and the first singular direction go with token frequency.

    Args:
        weights: `token_embedding` (V, d); `blocks.*.ln2.gain` (d,) to compare with the channel that ln2 singles out.
        architecture: the number of layers.
        tokens: frequencies, best first (without any, the token index stands in), and the vocabulary for names.
    """
    E = weights["token_embedding"]
    V = len(E)
    source = tokens.frequencies[0] if tokens.frequencies else _index_alone(V)
    known = np.isfinite(source.log_frequency)
    norms = np.sqrt(np.einsum("ij,ij->i", E, E, dtype=np.float64))
    shuffled = _shuffled(source.log_frequency, known)
    targets = {
        "frequency": rank(source.log_frequency, known),
        "norm": rank(norms, np.ones(V, bool)),
        "index": rank(-np.arange(V, dtype=np.float64), np.ones(V, bool)),
        "chance": rank(shuffled, known),
    }
    rho = dict(zip(targets, channel_correlations(E, list(targets.values())), strict=True))
    strength = np.abs(rho["frequency"])
    channel = int(np.argmax(strength))
    contrast = int(np.argsort(strength)[len(strength) // 2])
    candidates = {
        "frequency_channel": E[:, channel].astype(np.float64),
        "norm": norms,
        "svd_0": E @ _first_direction(E),
    }
    ln2 = _ln2_channel(weights, architecture)
    metrics = {
        "sources": [
            {"source": f.source, "label": f.label, "coverage": f.coverage, "proxy": f.proxy}
            for f in tokens.frequencies or (source,)
        ],
        "source": source.source,
        "proxy": source.proxy,
        "coverage": source.coverage,
        "channel_rho": {name: values.tolist() for name, values in rho.items() if name != "chance"},
        "frequency_channel": {"channel": channel, "rho": float(rho["frequency"][channel])},
        "chance_rho": float(np.abs(rho["chance"]).max()),
        "contrast_channel": {"channel": contrast, "rho": float(rho["frequency"][contrast])},
        "ln2_channel": ln2,
        "ln2_channel_rho": None if ln2 is None else float(rho["frequency"][ln2]),
        "ln2_channel_rank": None if ln2 is None else int(np.sum(strength > strength[ln2])) + 1,
        "norm_rho": spearman_of(targets["norm"], source.log_frequency, known),
        "correlations": _intervals(candidates, source.log_frequency, known),
        "n_channels": len(strength),
        "n_tokens": V,
    }
    tables = _tables(tokens, source, known, candidates["frequency_channel"], metrics)
    arrays = _arrays(E, source, norms, candidates, contrast, rho)
    return Result(metrics, tables, arrays | names(tokens.vocabulary, arrays["token_id"]))


def _index_alone(V: int) -> Frequency:
    return Frequency("index", "token index (a proxy)", -np.arange(V, dtype=np.float64), 1.0, True, "index")


def _shuffled(values: Float[Array, " V"], known: Bool[Array, " V"]) -> Float[Array, " V"]:
    result = values.copy()
    result[known] = np.random.default_rng(SEED).permutation(values[known])
    return result


def rank(values: Float[Array, " V"], known: Bool[Array, " V"]) -> Ranked:
    """Return centred mid-ranks of the known values."""
    from scipy.stats import rankdata

    ranks = np.zeros(len(values))
    ranks[known] = rankdata(values[known])
    ranks[known] -= (known.sum() + 1) / 2
    return Ranked(known, ranks, float(np.linalg.norm(ranks)))


def spearman_of(ranked: Ranked, values: Float[Array, " V"], known: Bool[Array, " V"]) -> float | None:
    """Return Spearman's correlation of a fully known quantity with one known for some tokens."""
    other = rank(values, known)
    mine = rank(np.where(ranked.known, ranked.ranks, np.nan), known)
    scale = mine.norm * other.norm
    return float(mine.ranks @ other.ranks) / scale if scale else None


def channel_correlations(E: Float[Array, "V d"], targets: list[Ranked]) -> Float[Array, "targets d"]:
    """Return Spearman's correlation of every channel with every target, sorting each channel once.

    A constant channel correlates with nothing: 0.
    """
    blocks = [slice(a, a + BLOCK) for a in range(0, E.shape[1], BLOCK)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(
            pool.map(lambda block: _block_correlations(np.ascontiguousarray(E[:, block].T), targets), blocks)
        )
    return np.concatenate(parts, axis=1)


def strongest_channel(E: Float[Array, "V d"], source: Frequency) -> int:
    """Return the channel that goes with a source of frequencies most."""
    rho = channel_correlations(E, [rank(source.log_frequency, np.isfinite(source.log_frequency))])
    return int(np.argmax(np.abs(rho[0])))


def _block_correlations(
    columns: Float[Array, "channels V"], targets: list[Ranked]
) -> Float[Array, "targets channels"]:
    found = np.zeros((len(targets), len(columns)))
    orders = np.argsort(columns, axis=1)
    ends = [_group_ends(column[order]) for column, order in zip(columns, orders, strict=True)]
    for known, rows in _by_known(targets):
        ranks = np.empty(columns.shape)
        norms = np.empty(len(columns))
        for i, order in enumerate(orders):
            ranks[i, order], norms[i] = _ranks_in_order(known[order], ends[i])
        products = np.stack([targets[row].ranks for row in rows]) @ ranks.T
        scale = np.outer([targets[row].norm for row in rows], norms)
        found[rows] = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
    return found


def _by_known(targets: list[Ranked]) -> list[tuple[Bool[Array, " V"], list[int]]]:
    """Return the different sets of known tokens, each with the targets that have it."""
    sets: list[tuple[Bool[Array, " V"], list[int]]] = []
    for row, target in enumerate(targets):
        same = next((rows for known, rows in sets if np.array_equal(known, target.known)), None)
        if same is None:
            sets.append((target.known, [row]))
        else:
            same.append(row)
    return sets


def _group_ends(ordered: Float[Array, " V"]) -> Int[Array, " groups"] | None:
    """Return where each group of equal values ends (exclusive), None where all values differ."""
    last = np.append(ordered[1:] != ordered[:-1], True)
    return None if last.all() else np.flatnonzero(last) + 1


def _ranks_in_order(known: Bool[Array, " V"], ends: Int[Array, " groups"] | None) -> tuple[Float[Array, " V"], float]:
    """Return the mid-ranks among known values, in sorted order, and the norm of these ranks once centred."""
    so_far = np.cumsum(known, dtype=np.float64)
    n = so_far[-1]
    if ends is None:
        return so_far, float(np.sqrt(n * (n * n - 1) / 12))
    upto = so_far[ends - 1]
    counts = np.diff(upto, prepend=0.0)
    middle = upto - (counts - 1) / 2
    variance = float(np.sum(counts * (middle - (n + 1) / 2) ** 2))
    return np.repeat(middle, np.diff(ends, prepend=0)), float(np.sqrt(variance))


def _first_direction(E: Float[Array, "V d"]) -> Float[Array, " d"]:
    """Return the first right singular vector of E, pointing to the side of the mean embedding."""
    vector = np.linalg.eigh(gram(E))[1][:, -1]
    along = float(vector @ E.mean(axis=0, dtype=np.float64))
    return (vector if along >= 0 else -vector).astype(np.float32)


def _ln2_channel(weights: Weights, architecture: Architecture) -> int | None:
    roles = [f"blocks.{i}.ln2.gain" for i in range(architecture.n_layer)]
    gains = [np.abs(np.asarray(weights[role], np.float64)) for role in roles if role in weights]
    found = consistent_channel(gains)
    return None if found is None else int(found["channel"])


def _intervals(
    candidates: dict[str, Float[Array, " V"]], log_frequency: Float[Array, " V"], known: Bool[Array, " V"]
) -> list[dict[str, Any]]:
    """Return Spearman's correlations of the candidates with frequency and one another, with bootstrap intervals."""
    values = {"log_frequency": log_frequency[known], **{name: v[known] for name, v in candidates.items()}}
    groups = {name: np.unique(v, return_inverse=True)[1] for name, v in values.items()}
    names = list(values)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    n = int(known.sum())
    everyone = _weighted_rhos(groups, pairs, np.ones(n))
    rng = np.random.default_rng(SEED)
    drawn = np.array(
        [_weighted_rhos(groups, pairs, np.bincount(rng.integers(n, size=n), minlength=n)) for _ in range(RESAMPLES)]
    )
    low, high = np.percentile(drawn, INTERVAL, axis=0)
    return [
        {"of": a, "with": b, "rho": float(everyone[i]), "low": float(low[i]), "high": float(high[i])}
        for i, (a, b) in enumerate(pairs)
    ]


def _weighted_rhos(
    groups: dict[str, Int[Array, " n"]], pairs: list[tuple[str, str]], weights: Float[Array, " n"]
) -> list[float]:
    """Return Spearman's correlations of a sample in which token i occurs weights[i] times; no sorting needed."""
    total = float(weights.sum())
    ranks = {}
    for name, group in groups.items():
        counts = np.bincount(group, weights)
        middle = np.cumsum(counts) - (counts - 1) / 2 - (total + 1) / 2
        ranks[name] = middle[group]
    spread = {name: float(np.sqrt(np.sum(weights * r * r))) for name, r in ranks.items()}
    return [
        float(np.sum(weights * ranks[a] * ranks[b])) / (spread[a] * spread[b]) if spread[a] and spread[b] else 0.0
        for a, b in pairs
    ]


def _tables(
    tokens: TokenFacts,
    source: Frequency,
    known: Bool[Array, " V"],
    values: Float[Array, " V"],
    metrics: dict[str, Any],
) -> dict[str, Table]:
    rho = metrics["channel_rho"]
    strongest = np.argsort(np.abs(rho["frequency"]))[::-1][:EXTREMES]
    by_value = np.argsort(values)
    extremes = [(int(i), "lowest") for i in by_value[:EXTREMES]]
    extremes += [(int(i), "highest") for i in by_value[::-1][:EXTREMES]]
    return {
        "channels": Table(
            "The channels that go with frequency most",
            ("channel", "rho_frequency", "rho_norm", "rho_index"),
            tuple((int(c), rho["frequency"][c], rho["norm"][c], rho["index"][c]) for c in strongest),
        ),
        "correlations": Table(
            "The three candidates, with frequency and with one another",
            ("of", "with", "rho", "low", "high"),
            tuple(tuple(row.values()) for row in metrics["correlations"]),
        ),
        "extremes": Table(
            "The tokens at either end of the frequency channel",
            ("id", "readable", "raw_bytes", "end", "value", "log_frequency"),
            tuple(
                (*cells(tokens.vocabulary, i), end, float(values[i]), float(source.log_frequency[i]))
                for i, end in extremes
            ),
        ),
        "against_the_trend": Table(
            "Tokens that buck the trend: far more or less frequent than the channel suggests",
            ("id", "readable", "raw_bytes", "group", "value", "log_frequency", "rank_residual"),
            tuple(_against_the_trend(tokens, source, known, values, metrics["frequency_channel"]["rho"])),
        ),
    }


def _against_the_trend(
    tokens: TokenFacts, source: Frequency, known: Bool[Array, " V"], values: Float[Array, " V"], rho: float
) -> Iterator[tuple[Any, ...]]:
    """Yield the tokens whose rank by frequency is furthest from their rank by the channel; ranks run from -1 to 1."""
    half = known.sum() / 2
    residual = (rank(source.log_frequency, known).ranks - np.sign(rho) * rank(values, known).ranks) / half
    for i in np.argsort(np.abs(residual))[::-1][: 2 * EXTREMES]:
        group = tokens.vocabulary.groups[i] if tokens.vocabulary else None
        frequency = float(source.log_frequency[i])
        yield *cells(tokens.vocabulary, int(i)), group, float(values[i]), frequency, float(residual[i])


def _arrays(
    E: Float[Array, "V d"],
    source: Frequency,
    norms: Float[Array, " V"],
    candidates: dict[str, Float[Array, " V"]],
    contrast: int,
    rho: dict[str, Float[Array, " d"]],
) -> dict[str, Array]:
    rng = np.random.default_rng(SEED)
    known = np.flatnonzero(np.isfinite(source.log_frequency))
    ids = np.sort(rng.choice(known, min(SAMPLE, len(known)), replace=False))
    columns = {
        "log_frequency": source.log_frequency,
        "norm": norms,
        "channel": candidates["frequency_channel"],
        "contrast": E[:, contrast],
        "svd_0": candidates["svd_0"],
    }
    arrays = {f"token_{name}": np.asarray(column)[ids].astype(np.float32) for name, column in columns.items()}
    return {**arrays, "token_id": ids.astype(np.int32), "rho_frequency": rho["frequency"].astype(np.float32)}


def claims(result: Result) -> list[Claim]:
    """Judge whether a channel tracks frequency, whether it is ln2's, and whether frequent tokens are shorter."""
    m = result.metrics
    if m["proxy"]:
        why = "No token frequencies are known for this model; the token index is only a proxy."
        return [untested(claim_id, why) for claim_id in ("frequency-channel", "frequency-is-ln2", "frequent-shorter")]
    return [_tracks(m), _is_ln2(m), _shorter(m)]


def _tracks(m: dict[str, Any]) -> Claim:
    channel, rho, chance = m["frequency_channel"]["channel"], m["frequency_channel"]["rho"], m["chance_rho"]
    answer = (
        f"Channel {channel} goes with log-frequency at rho {rho:+.2f}, more than any other of the "
        f"{m['n_channels']}; with frequencies shuffled the best reaches {chance:.2f}."
    )
    return judge(
        "frequency-channel", abs(rho), {"fails": answer}, baseline=chance, also=abs(rho) >= CHANCE_FACTOR * chance
    )


def _is_ln2(m: dict[str, Any]) -> Claim:
    channel, place = m["ln2_channel"], m["ln2_channel_rank"]
    if channel is None:
        return untested("frequency-is-ln2", "The gains of ln2 are constant or not in this checkpoint.")
    tracked = (
        f"Channel {channel}, which ln2 raises most often, goes with frequency at rho {m['ln2_channel_rho']:+.2f}"
    )
    return judge(
        "frequency-is-ln2",
        place,
        {
            "holds": f"{tracked}: it is the frequency channel.",
            "fails": f"{tracked}, number {place} of {m['n_channels']} channels; the strongest is "
            f"{m['frequency_channel']['channel']}.",
        },
        baseline=(m["n_channels"] + 1) / 2,
        also=abs(m["ln2_channel_rho"]) >= SMALLEST_RHO,
    )


def _shorter(m: dict[str, Any]) -> Claim:
    rho = m["norm_rho"]
    if rho is None:
        return untested("frequent-shorter", "All norms or all frequencies are alike.")
    how = f"Norm and log-frequency correlate at rho {rho:+.2f}"
    weak = "frequent tokens are hardly shorter or longer than others"
    return judge(
        "frequent-shorter",
        rho,
        {
            "holds": f"{how}: frequent tokens are shorter.",
            "fails": f"{how}: {'the opposite, frequent tokens are longer' if rho >= 0.3 else weak}.",
        },
        baseline=0.0,
    )


def figures_of(result: Result) -> list[Figure]:
    """Return the frequency channel beside a contrast channel, the candidates' correlations, and all channels."""
    m, arrays = result.metrics, result.arrays
    label = m["sources"][0]["label"]
    channel, rho = m["frequency_channel"]["channel"], m["frequency_channel"]["rho"]
    contrast, weak = m["contrast_channel"]["channel"], m["contrast_channel"]["rho"]
    covered = f"{m['coverage']:.0%} of the tokens are covered"
    told = "; ".join(
        f"{CANDIDATES[row['with']]} {row['rho']:+.2f} ({row['low']:+.2f} to {row['high']:+.2f})"
        for row in m["correlations"]
        if row["of"] == "log_frequency"
    )
    return [
        Figure(
            "frequency-channel",
            f"Channel {channel} beside an ordinary one",
            "One dot per token of known frequency. Above: the channel that goes with frequency most; below: channel "
            f"{contrast}, which has the median correlation. Frequency is from {label}; {covered}.",
            f"Channel {channel} against log-frequency (rho {rho:+.2f}), norm and token index, above channel "
            f"{contrast} (rho {weak:+.2f}).",
            lambda: draw_channels(arrays, channel, contrast),
        ),
        Figure(
            "norm-frequency",
            "Norm and frequency",
            "The norm of each token's embedding against its log-frequency. A cloud that falls to the right means "
            "that frequent tokens are shorter.",
            f"Norm against log-frequency: rho {0 if m['norm_rho'] is None else m['norm_rho']:+.2f}.",
            lambda: draw_norms(arrays),
            lambda: search_norms(arrays, m["n_tokens"]),
        ),
        Figure(
            "frequency-candidates",
            "Three candidates for a frequency feature",
            "Rank correlations of the frequency channel, the norm and the projection on the first singular "
            "direction, with log-frequency and with one another. Bars are bootstrap 95 % intervals over tokens.",
            f"With log-frequency: {told}.",
            lambda: draw_candidates(m["correlations"]),
        ),
        Figure(
            "frequency-by-channel",
            "Every channel's correlation with frequency",
            "Channels sorted by the absolute rank correlation with log-frequency; the dashed line is the best that "
            "shuffled frequencies reach. The ring marks the channel that ln2 raises most often.",
            f"Sorted correlations of {m['n_channels']} channels: the strongest {abs(rho):.2f}, the median "
            f"{abs(weak):.2f}, chance {m['chance_rho']:.2f}.",
            lambda: draw_all_channels(arrays["rho_frequency"], m["chance_rho"], m["ln2_channel"]),
        ),
    ]


def draw_channels(arrays: dict[str, Array], channel: int, contrast: int) -> Any:
    """Draw two channels against log-frequency, norm and token index."""
    figure = style.canvas(width=8.6, height=4.8)
    axes = figure.subplots(2, 3, sharex="col", sharey="row")
    across = (("token_log_frequency", "log-frequency"), ("token_norm", "norm"), ("token_id", "token index"))
    for row, (name, number) in enumerate((("token_channel", channel), ("token_contrast", contrast))):
        for column, (key, label) in enumerate(across):
            ax = axes[row, column]
            ax.plot(arrays[key], arrays[name], ".", ms=2, alpha=0.35, color=style.COLOURS[row], rasterized=True)
            if row == 1:
                ax.set_xlabel(label)
            if column == 0:
                ax.set_ylabel(f"channel {number}")
    return figure


def draw_norms(arrays: dict[str, Array]) -> Any:
    """Draw norm against log-frequency."""
    figure = style.canvas(width=6.4, height=3.6)
    ax = figure.add_subplot()
    ax.plot(
        arrays["token_log_frequency"],
        arrays["token_norm"],
        ".",
        ms=2.5,
        alpha=0.35,
        color=style.COLOURS[0],
        rasterized=True,
    )
    ax.set_xlabel("log-frequency")
    ax.set_ylabel("norm of the token embedding")
    return figure


def search_norms(arrays: dict[str, Array], n_tokens: int) -> Scatter:
    """Return norm against log-frequency with every drawn token's name."""
    x, y = arrays["token_log_frequency"], arrays["token_norm"]
    tokens = Group("tokens of known frequency", 0, arrays["token_id"], x, y, arrays.get("token_name"))
    return Scatter("log-frequency", "norm of the token embedding", (tokens,), n_tokens)


def draw_candidates(rows: list[dict[str, Any]]) -> Any:
    """Draw the correlations with their intervals."""
    names = {"log_frequency": "log-frequency", **CANDIDATES}
    figure = style.canvas(width=7.2, height=0.42 * len(rows) + 0.9)
    ax = figure.add_subplot()
    at = np.arange(len(rows))[::-1]
    rho = np.array([row["rho"] for row in rows])
    spread = np.abs(np.array([[row["low"], row["high"]] for row in rows]).T - rho)
    with_frequency = np.array([row["of"] == "log_frequency" for row in rows])
    for chosen, colour in ((with_frequency, style.COLOURS[1]), (~with_frequency, style.COLOURS[0])):
        ax.errorbar(rho[chosen], at[chosen], xerr=spread[:, chosen], fmt="o", ms=5, capsize=3, color=colour)
    ax.set_yticks(at, [f"{names[row['with']]} with {names[row['of']]}" for row in rows])
    ax.axvline(0, color=style.INK, lw=0.8, alpha=0.6)
    ax.set_xlim(-1, 1)
    ax.set_xlabel("rank correlation")
    return figure


def draw_all_channels(rho: Float[Array, " d"], chance: float, marked: int | None) -> Any:
    """Draw |rho| of all channels, sorted, with the chance line."""
    figure = style.canvas(width=6.4, height=3.2)
    ax = figure.add_subplot()
    order = np.argsort(np.abs(rho))[::-1]
    ax.plot(np.arange(1, len(rho) + 1), np.abs(rho)[order], ".", ms=3.5, color=style.COLOURS[0], rasterized=True)
    if marked is not None:
        place = int(np.flatnonzero(order == marked)[0])
        ax.plot(
            place + 1, abs(rho[marked]), "o", ms=9, mfc="none", color=style.COLOURS[1], label=f"channel {marked}"
        )
    ax.axhline(chance, ls="--", lw=1, color=style.INK, label="shuffled frequencies")
    ax.set_xlabel("channels, strongest first")
    ax.set_ylabel("|rank correlation with log-frequency|")
    ax.legend()
    return figure


FREQUENCY = Finding(
    name="frequency",
    title="Frequency",
    version=2,
    needs=("token_embedding",),
    uses=("blocks.*.ln2.gain",),
    parameters={"resamples": RESAMPLES, "seed": SEED},
    compute=compute,
    claims=claims,
    figures=figures_of,
    signature="frequency-channel",
    reads_vocabulary=True,
    reads_frequencies=True,
)
