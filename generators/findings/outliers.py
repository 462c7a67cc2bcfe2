"""Outliers: the longest and shortest tokens, the spot where unused tokens huddle, and what else looks untrained.

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights": a crowded spot in embedding space, a sort of
wastebasket for tokens that the model never saw. Candidates for under-trained tokens follow Land and Bartolo, "Fishing
for Magikarp" (2024).
"""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.drawing import labels, style
from generators.findings import outliers_clump as clump
from generators.maths import blocks as rows
from generators.findings.outliers_clump import Clump, crowding, find_clump
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
from generators.findings.frequency import strongest_channel
from generators.findings.thresholds import judge
from generators.drawing.interactive import Group, Scatter
from generators.maths.spectra import pca
from generators.maths.neighbours import nearest_distance
from generators.tokens.vocabulary import Vocabulary
from generators.base.architecture import Architecture

FEWEST_TOKENS = 20
EXTREMES = 20  # tokens listed at either end of the norms
CANDIDATE_SHARE = 0.02  # of the vocabulary: how many tokens count as candidates for under-trained ones
MOST_CANDIDATES = 200  # of them in the table
CONTAINING = 5  # longer tokens named for each
APART = ("byte", "special", "unassigned")  # groups of candidates that are counted and not listed
UNUSED = re.compile(rb"\[unused\d+\]|<\|?(unused|reserved)[^<>]*>|madeupword\d+")  # what vocabularies call them
DRAWN = 8192  # tokens drawn by norm
AROUND = 400  # members, and as many tokens nearest to them, drawn around the clump
LABELLED = 40  # tokens of either kind that may be labelled there
BINS = 60
BLOCK = 1024


def compute(weights: Weights, architecture: Architecture, tokens: TokenFacts = NO_TOKENS) -> Result:
    """Compute the extremes by norm, the clump of tokens that huddle, and candidates for under-trained tokens.

    The clump is found without being told how often tokens occur; counts of the training text only judge it.

    Args:
        weights: `token_embedding` (V, d); `unembedding` only says that outputs are another matrix.
        architecture: says so too.
        tokens: the vocabulary, for names, groups, and what contains a token, and frequencies, for the channel that
            the picture shows norms against and, where they are counts of the training text, for the tokens that
            are known to be unused. The clump is found without either.

    Raises:
        NotApplicableError: fewer than 20 tokens.
    """
    E = weights["token_embedding"]
    if len(E) < FEWEST_TOKENS:
        raise NotApplicableError(f"There are only {len(E)} tokens; a clump among so few would say nothing.")
    tied = architecture.tied and "unembedding" not in weights
    norms = rows.norms(E)
    crowd = crowding(E)
    found = find_clump(E, crowd)
    indicator = _indicator(E, norms, found, tied)
    counts = tokens.frequencies[0].training_counts if tokens.frequencies else None
    metrics = {
        "norm": {name: float(getattr(norms, name)()) for name in ("mean", "std", "min", "max")},
        "typical_distance": crowd.typical,
        "crowded": int(crowd.crowded.sum()),
        "clump": None if found is None else _clump_metrics(found, tokens.vocabulary),
        "known_unused": None if counts is None else _known_unused(counts, found),
        "candidates": None if indicator is None else _candidate_metrics(indicator, tied, tokens.vocabulary),
        "n_tokens": len(E),
    }
    tables = {"norms": _extremes(norms, tokens.vocabulary)}
    drawn = _spread(np.arange(len(E)), DRAWN)
    arrays = {"ids": drawn.astype(np.int32), "norm": norms[drawn], "nearest": crowd.nearest}
    arrays |= labels.names(tokens.vocabulary, drawn)
    channel = strongest_channel(E, tokens.frequencies[0]) if tokens.frequencies else None
    metrics["frequency_channel"] = channel
    if channel is not None:
        arrays["channel"] = E[drawn, channel]
    if found is not None and channel is not None:
        arrays["member_channel"] = E[found.members, channel]
    if found is not None:
        near = _nearest_others(E, norms, found)
        tables["members"] = _members_table(found, norms, tokens.vocabulary)
        tables["surroundings"] = _surroundings_table(E, near, found, norms, tokens.vocabulary)
        arrays |= _clump_arrays(E, norms, found, near)
        arrays |= labels.names(tokens.vocabulary, found.members, "member_name")
        arrays |= labels.names(tokens.vocabulary, arrays["around_ids"], "around_name")
    if counts is not None and not counts.all():
        tables["known_unused"] = _known_unused_table(counts, found, norms, tokens.vocabulary)
    if indicator is not None:
        tables["candidates"] = _candidate_table(indicator, tied, tokens.vocabulary, counts)
        arrays["indicator_counts"], arrays["indicator_edges"] = np.histogram(indicator, BINS)
    return Result(metrics, tables, {name: _compact(array) for name, array in arrays.items()})


def _compact(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _spread(ids: Int[Array, " n"], most: int) -> Int[Array, " m"]:
    """Return at most so many of the ids, evenly spread over them."""
    return ids[np.unique(np.linspace(0, len(ids) - 1, min(most, len(ids))).astype(np.int64))]


def _indicator(
    E: Float[Array, "V d"], norms: Float[Array, " V"], found: Clump | None, tied: bool
) -> Float[Array, " V"] | None:
    """Return what is small for under-trained tokens: the cosine distance to the clump, or where untied, the norm."""
    if not tied:
        return norms
    if found is None:
        return None
    lengths = norms * float(np.linalg.norm(found.centre))
    return 1 - np.divide(_along(E, found.centre), lengths, where=lengths > 0, out=np.zeros(len(E)))


def _along(E: Float[Array, "V d"], direction: Float[Array, " d"]) -> Float[Array, " V"]:
    """Return the product of every row with a direction, in float64 so that near ties keep their order."""
    parts = (E[begin : begin + BLOCK] for begin in range(0, len(E), BLOCK))
    return np.concatenate([part.astype(np.float64) @ direction for part in parts])


# The clump


def _clump_metrics(found: Clump, vocabulary: Vocabulary | None) -> dict[str, Any]:
    members = np.sort(found.members).tolist()
    metrics = {
        "size": len(members),
        "radius": found.radius,
        "within_twice_the_radius": found.within_twice_the_radius,
        "centre_norm": float(np.linalg.norm(found.centre)),
        "groups": None,
        "named_unused": None,
        "members": members,
    }
    if vocabulary is not None:
        unused = {i for i, text in enumerate(vocabulary.texts) if UNUSED.fullmatch(text)}
        metrics["groups"] = dict(Counter(vocabulary.groups[i] for i in members).most_common())
        metrics["named_unused"] = {"tokens": len(unused), "in_clump": len(unused.intersection(members))}
    return metrics


def _nearest_others(E: Float[Array, "V d"], norms: Float[Array, " V"], found: Clump) -> Int[Array, " n"]:
    """Return the tokens nearest to the clump's centre that are not in it."""
    squares = norms**2 - 2 * _along(E, found.centre)
    squares[found.members] = np.inf
    return np.argsort(squares, kind="stable")[: min(AROUND, len(E) - len(found.members))]


def _members_table(found: Clump, norms: Float[Array, " V"], vocabulary: Vocabulary | None) -> Table:
    return Table(
        "Tokens in the clump, those nearest to its centre first",
        (*labels.COLUMNS, "group", "distance", "norm"),
        tuple(_placed(found.members, found.distances, norms, vocabulary)),
    )


def _surroundings_table(
    E: Float[Array, "V d"],
    near: Int[Array, " n"],
    found: Clump,
    norms: Float[Array, " V"],
    vocabulary: Vocabulary | None,
) -> Table:
    near = near[:LABELLED]
    distances = np.linalg.norm(E[near] - found.centre, axis=1)
    return Table(
        "Tokens nearest to the clump that are not in it",
        (*labels.COLUMNS, "group", "distance", "norm"),
        tuple(_placed(near, distances, norms, vocabulary)),
    )


def _placed(
    ids: Int[Array, " n"], distances: Float[Array, " n"], norms: Float[Array, " V"], vocabulary: Vocabulary | None
) -> Iterable[tuple[Any, ...]]:
    for i, distance in zip(ids.tolist(), distances.tolist(), strict=True):
        yield *labels.cells(vocabulary, i), _group(vocabulary, i), distance, float(norms[i])


def _clump_arrays(
    E: Float[Array, "V d"], norms: Float[Array, " V"], found: Clump, near: Int[Array, " n"]
) -> dict[str, Array]:
    """Return members by norm and nearest neighbour, and the two leading components of clump and surroundings."""
    shown = _spread(found.members, AROUND)
    around = np.concatenate([shown, near])
    scores = pca(E[around].astype(np.float64)).scores
    plane = np.zeros((len(around), 2))
    plane[:, : min(2, scores.shape[1])] = scores[:, :2]
    return {
        "member_ids": found.members.astype(np.int32),
        "member_norm": norms[found.members],
        "member_nearest": nearest_distance(E, _spread(found.members, AROUND)),
        "around_ids": around.astype(np.int32),
        "around_is_member": np.arange(len(around)) < len(shown),
        "around_plane": plane,
    }


# Tokens that are known to be unused


def _known_unused(counts: Int[Array, " V"], found: Clump | None) -> dict[str, Any]:
    """Return how many tokens the training text never has, and how the clump fares against that.

    `share` is the part of them that the clump holds, None without any; `largest_count_in_clump` is how often its most
    frequent member occurs, None without a clump.
    """
    unused = int((counts == 0).sum())
    inside = counts[[] if found is None else found.members]
    held = int((inside == 0).sum())
    return {
        "count": unused,
        "in_clump": held,
        "share": held / unused if unused else None,
        "others_in_clump": len(inside) - held,
        "largest_count_in_clump": int(inside.max()) if len(inside) else None,
    }


def _known_unused_table(
    counts: Int[Array, " V"], found: Clump | None, norms: Float[Array, " V"], vocabulary: Vocabulary | None
) -> Table:
    members = set() if found is None else set(found.members.tolist())
    unused = np.flatnonzero(counts == 0).tolist()
    return Table(
        "Tokens that the training text never has",
        (*labels.COLUMNS, "group", "in_clump", "norm"),
        tuple((*labels.cells(vocabulary, i), _group(vocabulary, i), i in members, float(norms[i])) for i in unused),
    )


def _group(vocabulary: Vocabulary | None, i: int) -> str | None:
    return None if vocabulary is None else vocabulary.groups[i]


# Extremes and candidates


def _extremes(norms: Float[Array, " V"], vocabulary: Vocabulary | None) -> Table:
    order = np.argsort(norms, kind="stable")
    count = min(EXTREMES, len(order) // 2)
    listed = [(int(i), "longest") for i in order[::-1][:count]] + [(int(i), "shortest") for i in order[:count]]
    return Table(
        "The longest and the shortest token embeddings",
        (*labels.COLUMNS, "end", "norm"),
        tuple((*labels.cells(vocabulary, i), end, float(norms[i])) for i, end in listed),
    )


def _candidates(indicator: Float[Array, " V"]) -> Int[Array, " n"]:
    return np.argsort(indicator, kind="stable")[: max(1, int(CANDIDATE_SHARE * len(indicator)))]


def _candidate_metrics(indicator: Float[Array, " V"], tied: bool, vocabulary: Vocabulary | None) -> dict[str, Any]:
    ids = _candidates(indicator)
    groups = None if vocabulary is None else Counter(vocabulary.groups[i] for i in ids)
    return {
        "indicator": "cosine distance to the clump" if tied else "norm of the input embedding",
        "count": len(ids),
        "at_most": float(indicator[ids[-1]]),
        "counted_apart": None if groups is None else {group: groups[group] for group in APART},
    }


def _candidate_table(
    indicator: Float[Array, " V"], tied: bool, vocabulary: Vocabulary | None, counts: Int[Array, " V"] | None
) -> Table:
    """Return the candidates, with their counts where the training text's are known."""
    ids = [int(i) for i in _candidates(indicator) if vocabulary is None or vocabulary.groups[i] not in APART]
    by = "cosine distance to the clump" if tied else "norm of the input embedding"
    which = f"the first {MOST_CANDIDATES} of {len(ids)} candidates" if len(ids) > MOST_CANDIDATES else "candidates"
    rows = tuple(_candidate(i, float(indicator[i]), vocabulary) for i in ids[:MOST_CANDIDATES])
    columns: tuple[str, ...] = (*labels.COLUMNS, "group", "indicator", "contained_in")
    if counts is not None:
        columns = (*columns, "count")
        rows = tuple((*row, int(counts[row[0]])) for row in rows)
    return Table(f"Tokens that look under-trained, {which} by {by}", columns, rows)


def _candidate(i: int, value: float, vocabulary: Vocabulary | None) -> tuple[Any, ...]:
    if vocabulary is None:
        return *labels.cells(None, i), None, value, None
    containing = [vocabulary.readable[j] for j in vocabulary.containing(i, CONTAINING)]
    return *labels.cells(vocabulary, i), vocabulary.groups[i], value, containing


def claims(result: Result) -> list[Claim]:
    """Judge whether tokens huddle."""
    m = result.metrics
    found = m["clump"]
    if found is None:
        answer = (
            f"No ten tokens huddle apart from the rest: {m['crowded']} of {m['n_tokens']} have nine others within "
            f"half the typical distance to the nearest, {m['typical_distance']:.3g}."
        )
        return [judge("clump", None, {"fails": answer}, baseline=0.0)]
    answer = (
        f"{found['size']} tokens lie within {found['radius']:.3g} of one spot, where a token's nearest neighbour is "
        f"typically {m['typical_distance']:.3g} away{_named_there(found)}."
    )
    return [judge("clump", found["size"], {"fails": answer}, baseline=0.0)]


def _named_there(found: dict[str, Any]) -> str:
    named = found["named_unused"]
    if not named or not named["tokens"]:
        return ""
    return f"; {named['in_clump']} of the {named['tokens']} tokens named as unused are among them"


# Figures


def figures_of(result: Result) -> list[Figure]:
    """Return norms with the clump marked, the clump from near, nearest neighbours, and the candidates' indicator."""
    m, arrays = result.metrics, result.arrays
    found, norm = m["clump"], m["norm"]
    place = (
        f"The clump, {found['size']} tokens, has norms from {arrays['member_norm'].min():.3g} to "
        f"{arrays['member_norm'].max():.3g}."
        if found
        else "There is no clump."
    )
    shown = [
        Figure(
            "outlier-norms",
            "How long the token embeddings are",
            "The norm of each token's embedding by token index, which goes along with rarity in most vocabularies. "
            "Orange: the clump. The longest and the shortest tokens are named.",
            f"Norms of {m['n_tokens']} token embeddings, from {norm['min']:.3g} to {norm['max']:.3g}, "
            f"{norm['mean']:.3g} on average. {place}",
            lambda: draw_norms(result),
            lambda: search_norms(result),
        )
    ]
    if "channel" in arrays:
        shown.append(
            Figure(
                "outlier-channel",
                "Norm against the channel that goes with frequency most",
                "One dot per token (a sample, evenly spread over the vocabulary), the clump in orange. A clump on an "
                "island of its own stands apart in both.",
                f"Norm against channel {m['frequency_channel']}. {place}",
                lambda: draw_channel(result),
            )
        )
    if found:
        nearest = ", ".join(labels.name(row[0], row[1]) for row in result.tables["members"].rows[:5])
        shown.append(
            Figure(
                "clump",
                "The clump and its surroundings",
                "Tokens of the clump (orange) and the tokens nearest to it (blue), in the two principal components "
                "of what is shown. Some are named; ␣ is a space.",
                f"The clump of {found['size']} tokens in a plane with its surroundings. Nearest to its centre: "
                f"{nearest}.",
                lambda: draw_clump(result),
                lambda: search_clump(result),
            )
        )
    closest = float(np.median(arrays["member_nearest"])) if found else None
    shown.append(
        Figure(
            "nearest-neighbours",
            "How far the nearest neighbour is",
            "Distances from tokens to their nearest other token. The dashed line is half the typical distance: a "
            "token with nine others within it is crowded.",
            f"Nearest-neighbour distances: typically {m['typical_distance']:.3g}"
            + (f", in the clump {closest:.3g}." if closest is not None else "."),
            lambda: draw_nearest(result),
        )
    )
    if m["candidates"]:
        candidates = m["candidates"]
        shown.append(
            Figure(
                "under-trained",
                "Which tokens look under-trained",
                f"All tokens by {candidates['indicator']}, counts on a logarithmic scale. Left of the dashed line "
                "are the candidates for under-trained tokens.",
                f"Histogram of the {candidates['indicator']}; {candidates['count']} candidates lie at or below "
                f"{candidates['at_most']:.3g}.",
                lambda: draw_indicator(result),
            )
        )
    return shown


def _label(row: tuple[Any, ...]) -> str:
    return labels.label(row[0], row[1])


def draw_norms(result: Result) -> Any:
    """Draw norms by token index, the clump on top, the extremes named."""
    arrays = result.arrays
    size = (8.6, 3.8)
    figure = style.canvas(*size)
    ax = figure.add_subplot()
    _dots(ax, arrays["ids"], arrays["norm"], style.COLOURS[0], "tokens", 2)
    if "member_ids" in arrays:
        _dots(ax, arrays["member_ids"], arrays["member_norm"], style.COLOURS[1], "the clump", 3)
        ax.legend(markerscale=3)
    table = result.tables["norms"]
    points = np.array([(row[0], row[-1]) for row in table.rows], float)
    ax.plot(*points.T, "o", ms=4, mfc="none", mec=style.INK, mew=0.6)
    ax.set_xlim(ax.get_xlim())
    ax.set_ylim(ax.get_ylim())
    labels.annotate(ax, points, [_label(row) for row in table.rows], (size[0] - 0.8, size[1] - 0.6))
    ax.set_xlabel("token index")
    ax.set_ylabel("norm of the token embedding")
    return figure


def search_norms(result: Result) -> Scatter:
    """Return norms by token index, the clump apart, with every drawn token's name."""
    arrays = result.arrays
    groups = [Group("tokens", 0, arrays["ids"], arrays["ids"], arrays["norm"], arrays.get("token_name"))]
    if "member_ids" in arrays:
        ids = arrays["member_ids"]
        groups.append(Group("the clump", 1, ids, ids, arrays["member_norm"], arrays.get("member_name")))
    extremes = [(row[0], row[-1], labels.name(row[0], row[1])) for row in result.tables["norms"].rows]
    named = tuple(sorted(extremes, key=lambda one: one[1])[i] for i in (0, -3, -2, -1) if len(extremes) >= 4)
    x_label, y_label = "token index", "norm of the token embedding"
    return Scatter(x_label, y_label, tuple(groups), result.metrics["n_tokens"], named=named)


def search_clump(result: Result) -> Scatter:
    """Return the clump and its surroundings in their plane with every token's name."""
    arrays = result.arrays
    member, names = arrays["around_is_member"], arrays.get("around_name")
    groups = []
    for colour, (part, label) in enumerate(((~member, "nearest other tokens"), (member, "the clump"))):
        x, y = arrays["around_plane"][part].T
        groups.append(Group(label, colour, arrays["around_ids"][part], x, y, None if names is None else names[part]))
    return Scatter("component 1 of what is shown", "component 2", tuple(groups), result.metrics["n_tokens"])


def draw_channel(result: Result) -> Any:
    """Draw norms against the channel that goes with frequency most, the clump on top."""
    arrays = result.arrays
    figure = style.canvas(width=6.4, height=4.2)
    ax = figure.add_subplot()
    _dots(ax, arrays["channel"], arrays["norm"], style.COLOURS[0], "tokens", 3)
    if "member_channel" in arrays:
        _dots(ax, arrays["member_channel"], arrays["member_norm"], style.COLOURS[1], "the clump", 4)
        ax.legend(markerscale=3)
    ax.set_xlabel(f"channel {result.metrics['frequency_channel']}")
    ax.set_ylabel("norm of the token embedding")
    return figure


def _dots(ax: Any, x: Array, y: Array, colour: str, label: str, size: float) -> None:
    ax.plot(x, y, ".", ms=size, alpha=0.5, mec="none", color=colour, label=label, rasterized=True)


def draw_clump(result: Result) -> Any:
    """Draw members and surroundings in their plane, some of both named."""
    arrays = result.arrays
    size = (8.6, 5.6)
    figure = style.canvas(*size)
    ax = figure.add_subplot()
    member, plane = arrays["around_is_member"], arrays["around_plane"]
    for index, (part, label) in enumerate(((~member, "nearest other tokens"), (member, "the clump"))):
        _dots(ax, plane[part, 0], plane[part, 1], style.COLOURS[index], label, 7)
    ax.set_xlim(ax.get_xlim())
    ax.set_ylim(ax.get_ylim())
    at = dict(zip(arrays["around_ids"].tolist(), plane, strict=True))
    members = [row for row in result.tables["members"].rows if row[0] in at]
    chosen = [members[i] for i in _spread(np.arange(len(members)), LABELLED)]
    pairs = zip_longest(chosen, result.tables["surroundings"].rows)
    named = [row for pair in pairs for row in pair if row is not None]
    labels.annotate(
        ax, np.array([at[row[0]] for row in named]), [_label(row) for row in named], (size[0] - 0.8, size[1] - 0.6)
    )
    ax.set_xlabel("component 1 of what is shown")
    ax.set_ylabel("component 2")
    ax.legend(markerscale=2)
    return figure


def draw_nearest(result: Result) -> Any:
    """Draw histograms of nearest-neighbour distances, of tokens spread over the vocabulary and of the clump."""
    arrays, typical = result.arrays, result.metrics["typical_distance"]
    figure = style.canvas(width=6.4, height=3.4)
    ax = figure.add_subplot()
    groups = [("nearest", "tokens spread over the vocabulary"), ("member_nearest", "the clump")]
    edges = np.linspace(0, max(1e-9, *(float(arrays[key].max()) for key, _ in groups if key in arrays)), BINS)
    for index, (key, label) in enumerate(groups):
        if key in arrays:
            weights = np.full(len(arrays[key]), 1 / len(arrays[key]))
            ax.hist(arrays[key], edges, weights=weights, alpha=0.6, color=style.COLOURS[index], label=label)
    ax.axvline(clump.CLOSE * typical, ls="--", lw=1, color=style.INK, alpha=0.7)
    ax.set_xlabel("distance to the nearest other token")
    ax.set_ylabel("share of tokens")
    ax.legend()
    return figure


def draw_indicator(result: Result) -> Any:
    """Draw the histogram of the indicator of under-trained tokens with the candidates' limit."""
    arrays, candidates = result.arrays, result.metrics["candidates"]
    figure = style.canvas(width=6.4, height=3.4)
    ax = figure.add_subplot()
    ax.stairs(arrays["indicator_counts"], arrays["indicator_edges"], fill=True, color=style.COLOURS[0], alpha=0.8)
    ax.axvline(candidates["at_most"], ls="--", lw=1, color=style.INK, alpha=0.7)
    ax.set_yscale("log")
    ax.set_xlabel(candidates["indicator"])
    ax.set_ylabel("tokens")
    return figure


OUTLIERS = Finding(
    name="outliers",
    title="Outliers",
    version=3,
    needs=("token_embedding",),
    uses=("unembedding",),
    parameters={"close": clump.CLOSE, "crowd": clump.CROWD, "radius": clump.RADIUS, "isolation": clump.ISOLATION},
    compute=compute,
    claims=claims,
    figures=figures_of,
    signature="outlier-norms",
    reads_vocabulary=True,
    reads_frequencies=True,
)
