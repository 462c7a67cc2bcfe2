"""Zero layers: which token does the model answer with when nothing stands between its embeddings?

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights": without layers almost every token yields
itself; the exceptions are pairs of nearly parallel embeddings of different length, and a few long embeddings absorb
many others.
"""

from collections import Counter
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.drawing import labels, style
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
from generators.drawing.interactive import Group, Scatter
from generators.maths.neighbours import best_match
from generators.tokens.vocabulary import PAIR_GROUPS, Vocabulary
from generators.base.architecture import Architecture

BASELINE_TOKENS = 2048
MOST_ROWS = 10_000  # exceptions in the table; an untied model can have as many as it has tokens
MOST_HUBS = 20
MOST_PAIRS = 32  # pairs in the picture of pairs
SEED = 20211215
BLOCK = 1024
PLAIN_GROUPS = ("leading space", "byte or unprintable")  # too many and too dull to be drawn pair by pair
NUMBERS = ("norm", "best_norm", "cosine", "margin")  # of each exception
ROUNDING = 1e-12  # relative; two products that differ by less are equal


def compute(weights: Weights, architecture: Architecture, tokens: TokenFacts = NO_TOKENS) -> Result:
    """Compute the token with the largest logit for every token, without any layer in between.

    Args:
        weights: `token_embedding` (V, d), and `unembedding` (V, d) where that is another matrix.
        architecture: whether it is.
        tokens: the vocabulary, for names and groups.

    Raises:
        NotApplicableError: the output embedding is another matrix, which isn't here.
    """
    E = weights["token_embedding"]
    U = weights.get("unembedding")
    if U is None and not architecture.tied:
        raise NotApplicableError("The output embedding is a matrix of its own, which this checkpoint lacks.")
    best = best_match(E, U)
    arrays = _arrays(E, E if U is None else U, best)
    ids = arrays["ids"]
    groups = None
    if tokens.vocabulary is not None:
        groups = [tokens.vocabulary.pair_group(int(u), int(best[u])) for u in ids]
        arrays["group"] = np.array([PAIR_GROUPS.index(group) for group in groups], np.int8)
        arrays |= labels.names(tokens.vocabulary, ids) | labels.names(tokens.vocabulary, best[ids], "best_name")
    hubs = Counter(best[ids].tolist()).most_common(MOST_HUBS)
    metrics = {
        "self_share": 1 - len(ids) / len(E),
        "exceptions": len(ids),
        "exceptions_by_group": None if groups is None else {group: groups.count(group) for group in PAIR_GROUPS},
        "equal": int(np.sum(best != np.arange(len(E)))) - len(ids),
        "hubs": [{"id": hub, "absorbs": count} for hub, count in hubs if count > 1],
        "baseline": _baseline(E, U),
        "tied": U is None,
        "n_tokens": len(E),
    }
    return Result(metrics, _tables(metrics, arrays, tokens.vocabulary), arrays)


def _arrays(E: Float[Array, "V d"], U: Float[Array, "V d"], best: Int[Array, " V"]) -> dict[str, Array]:
    """Return ids, norms and cosine of exceptions and what they yield, and the ratio of both products less 1."""
    ids, margin = exceptions(E, U, best)
    norm, best_norm = np.sqrt(products(E, E, ids, ids)), np.sqrt(products(U, U, best[ids], best[ids]))
    lengths = np.where(norm * best_norm > 0, norm * best_norm, 1)
    cosine = products(E, U, ids, best[ids]) / lengths
    numbers = zip(NUMBERS, (norm, best_norm, cosine, margin), strict=True)
    arrays = {name: column.astype(np.float32) for name, column in numbers}
    return {"ids": ids.astype(np.int32), "best": best[ids].astype(np.int32), **arrays}


def exceptions(
    E: Float[Array, "V d"], U: Float[Array, "V d"], best: Int[Array, " V"]
) -> tuple[Int[Array, " n"], Float[Array, " n"]]:
    """Return the tokens that another one truly beats, most clearly first, and the ratio of the two products less 1.

    A token that shares its embedding with one of a lower id is mapped to that, but isn't beaten by it. Where a
    token's own product isn't positive, the ratio says nothing and counts as infinite.
    """
    others = np.flatnonzero(best != np.arange(len(E)))
    own, winning = products(E, U, others, others), products(E, U, others, best[others])
    beaten = winning - own > ROUNDING * np.maximum(np.abs(own), np.abs(winning))
    ratio = np.divide(winning - own, own, out=np.full(len(others), np.inf), where=own > 0)[beaten]
    order = np.argsort(-ratio, kind="stable")
    return others[beaten][order], ratio[order]


def products(
    E: Float[Array, "V d"], U: Float[Array, "V d"], u: Int[Array, " n"], v: Int[Array, " n"]
) -> Float[Array, " n"]:
    """Return E_u . U_v pair by pair, in float64."""
    out = np.empty(len(u))
    for begin in range(0, len(u), BLOCK):
        part = slice(begin, begin + BLOCK)
        out[part] = np.einsum("ij,ij->i", E[u[part]], U[v[part]], dtype=np.float64)
    return out


def _baseline(E: Float[Array, "V d"], U: Float[Array, "V d"] | None) -> dict[str, Any]:
    """Return the self share of Gaussian tokens with the model's mean and covariance, and of as many real ones."""
    n = min(BASELINE_TOKENS, len(E))
    chosen = np.unique(np.linspace(0, len(E) - 1, n).astype(np.int64))
    inputs, outputs = gaussian_like(E, U, n)
    return {
        "self_share": _self_share(inputs, outputs),
        "same_number_of_tokens": _self_share(E[chosen], None if U is None else U[chosen]),
        "n_tokens": n,
    }


def gaussian_like(
    E: Float[Array, "V d"], U: Float[Array, "V d"] | None, n: int
) -> tuple[Float[Array, "n d"], Float[Array, "n d"] | None]:
    """Return n Gaussian tokens, inputs and outputs, with the joint mean and covariance of all tokens.

    Mixing all centred tokens with Gaussian weights has exactly their covariance, and needs no covariance matrix.
    """
    rng = np.random.default_rng(SEED)
    sides = [E] if U is None else [E, U]
    mixed = [np.zeros((n, side.shape[1])) for side in sides]
    weight = np.zeros(n)
    for begin in range(0, len(E), BLOCK):
        mixture = rng.standard_normal((n, len(E[begin : begin + BLOCK])), dtype=np.float32)
        weight += mixture.sum(axis=1)
        for side, total in zip(sides, mixed, strict=True):
            total += mixture @ side[begin : begin + BLOCK]
    drawn = []
    for side, total in zip(sides, mixed, strict=True):
        mean = side.mean(axis=0, dtype=np.float64)
        drawn.append((mean + (total - np.outer(weight, mean)) / np.sqrt(len(E))).astype(np.float32))
    return drawn[0], None if U is None else drawn[1]


def _self_share(E: Float[Array, "n d"], U: Float[Array, "n d"] | None) -> float:
    return 1 - len(exceptions(E, E if U is None else U, best_match(E, U))[0]) / len(E)


def _tables(metrics: dict[str, Any], arrays: dict[str, Array], vocabulary: Vocabulary | None) -> dict[str, Table]:
    count = len(arrays["ids"])
    which = f", the {MOST_ROWS} of {count} with the largest margin" if count > MOST_ROWS else ""
    best = [f"best_{column}" for column in labels.COLUMNS]
    tables = {
        "exceptions": Table(
            f"Tokens that yield another token{which}; the margin is by how much its product is larger than their own",
            (*labels.COLUMNS, *best, "group", *NUMBERS),
            tuple(_exception(arrays, i, vocabulary) for i in range(min(count, MOST_ROWS))),
        )
    }
    if metrics["hubs"]:
        tables["hubs"] = Table(
            "Tokens that more than one other token yields",
            (*labels.COLUMNS, "absorbs"),
            tuple((*labels.cells(vocabulary, hub["id"]), hub["absorbs"]) for hub in metrics["hubs"]),
        )
    return tables


def _exception(arrays: dict[str, Array], i: int, vocabulary: Vocabulary | None) -> tuple[Any, ...]:
    return (
        *labels.cells(vocabulary, int(arrays["ids"][i])),
        *labels.cells(vocabulary, int(arrays["best"][i])),
        PAIR_GROUPS[arrays["group"][i]] if "group" in arrays else None,
        *(float(arrays[name][i]) for name in NUMBERS),
    )


def claims(result: Result) -> list[Claim]:
    """Return no claim: noise copies itself too, and the exceptions are the finding."""
    return []


def figures_of(result: Result) -> list[Figure]:
    """Return the exceptions by norm, pair by pair, by group, and the hubs; nothing where there are none."""
    m, arrays = result.metrics, result.arrays
    count, V = m["exceptions"], m["n_tokens"]
    if not count:
        return []
    longer = int(np.sum(arrays["best_norm"] > arrays["norm"]))
    nature = f"{count} of {V} tokens yield another token without layers; {longer} of these others are longer"
    pairs = _pairs_to_draw(result)
    shown = [
        Figure(
            "zero-layer-norms",
            "Exceptions: how long both tokens are",
            "One dot per token that yields another one: its own norm across, that of the other upwards. On the "
            "dashed line both are equally long; where inputs and outputs are one matrix, all dots lie above it.",
            f"Norms of the {count} exceptions. {nature}.",
            lambda: draw_norms(arrays),
            lambda: search_norms(result),
        )
    ]
    if pairs:
        first = ", ".join(f"{u} yields {v}" for u, v in pairs[:4])
        shown.append(
            Figure(
                "zero-layer-pairs",
                "What some tokens yield",
                "Tokens on the left yield those on the right. Pairs that differ by a leading space and those with "
                "unprintable bytes are left out; ␣ is a space.",
                f"{len(pairs)} of the {count} exceptions by name: {first}{', and so on' if len(pairs) > 4 else ''}.",
                lambda: draw_pairs(pairs),
            )
        )
    if m["exceptions_by_group"]:
        told = ", ".join(f"{group} {n}" for group, n in m["exceptions_by_group"].items() if n)
        shown.append(
            Figure(
                "zero-layer-groups",
                "How the two tokens differ",
                "The exceptions by how a token differs from what it yields, each in the first group that fits.",
                f"Exceptions by group: {told}.",
                lambda: draw_groups(m["exceptions_by_group"]),
            )
        )
    if m["hubs"]:
        hubs = [(labels.label(row[0], row[1]), row[-1]) for row in result.tables["hubs"].rows]
        shown.append(
            Figure(
                "zero-layer-hubs",
                "Tokens that absorb others",
                "How many other tokens yield each of these; only tokens that absorb more than one are shown.",
                f"{len(hubs)} tokens absorb more than one other; {hubs[0][0]} absorbs most, {hubs[0][1]}.",
                lambda: draw_hubs(hubs),
            )
        )
    return shown


def _pairs_to_draw(result: Result) -> list[tuple[str, str]]:
    """Return labels of exceptions to draw, the clearest, side by side where they yield the same token."""
    table = result.tables["exceptions"]
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    telling = [row for row in rows if row["group"] not in PLAIN_GROUPS][:MOST_PAIRS]
    absorbed = Counter(row["best_id"] for row in telling)
    telling.sort(key=lambda row: (-absorbed[row["best_id"]], row["best_id"], row["id"]))
    return [
        (labels.label(row["id"], row["readable"]), labels.label(row["best_id"], row["best_readable"]))
        for row in telling
    ]


def search_norms(result: Result) -> Scatter:
    """Return the norms of the exceptions and of what they yield, by name and group."""
    arrays = result.arrays
    x, y, ids = arrays["norm"], arrays["best_norm"], arrays["ids"]
    if "group" in arrays:
        pairs = zip(arrays["token_name"], arrays["best_name"], strict=True)
        names = np.array([f"{token} yields {best}" for token, best in pairs], np.str_)
        parts = [(name, arrays["group"] == i) for i, name in enumerate(PAIR_GROUPS)]
        groups = [Group(name, i, ids[p], x[p], y[p], names[p]) for i, (name, p) in enumerate(parts)]
    else:
        groups = [Group("exceptions", 0, ids, x, y)]
    x_label, y_label = "norm of the token's input embedding", "norm of the output embedding it yields"
    return Scatter(x_label, y_label, tuple(groups), result.metrics["n_tokens"], diagonal=True)


def draw_norms(arrays: dict[str, Array]) -> Any:
    """Draw the norm of what a token yields against its own, with groups apart where they are known."""
    figure = style.canvas(width=6.4, height=4.6)
    ax = figure.add_subplot()
    x, y = arrays["norm"], arrays["best_norm"]
    if "group" in arrays:
        parts = [(arrays["group"] == i, f"{group}, ") for i, group in enumerate(PAIR_GROUPS)]
    else:
        parts = [(np.ones(len(x), bool), "")]
    for index, ((chosen, name), marker) in enumerate(zip(parts, "os^Dvp", strict=False)):
        if chosen.any():
            ax.plot(
                x[chosen],
                y[chosen],
                marker,
                ms=4,
                alpha=0.7,
                mec="none",
                color=style.COLOURS[index],
                label=f"{name}{chosen.sum()}",
                rasterized=True,
            )
    ends = min(x.min(), y.min()), max(x.max(), y.max())
    ax.plot(ends, ends, "--", color=style.INK, lw=0.8, alpha=0.6)
    ax.set_xlabel("norm of the token's input embedding")
    ax.set_ylabel("norm of the output embedding it yields")
    if "group" in arrays:
        ax.legend()
    return figure


def draw_pairs(pairs: list[tuple[str, str]]) -> Any:
    """Draw tokens on the left, joined by lines with what they yield on the right."""
    figure = style.canvas(width=6.4, height=0.21 * len(pairs) + 0.5)
    ax = figure.add_subplot()
    ax.set_axis_off()
    ax.set_xlim(0, 1)
    ax.set_ylim(len(pairs), -1)
    rows: dict[str, list[int]] = {}
    for row, (_, right) in enumerate(pairs):
        rows.setdefault(right, []).append(row)
    style = {"va": "center", "fontsize": 8.5, "parse_math": False}
    for row, (left, right) in enumerate(pairs):
        middle = float(np.mean(rows[right]))
        ax.plot((0.4, 0.6), (row, middle), color=style.COLOURS[0], lw=0.9, alpha=0.7)
        ax.text(0.39, row, left, ha="right", **style)
    for right, at in rows.items():
        ax.text(0.61, float(np.mean(at)), right, ha="left", **style)
    return figure


def draw_groups(groups: dict[str, int]) -> Any:
    """Draw how many exceptions each group has."""
    return _bars(list(groups.items()), "exceptions")


def draw_hubs(hubs: list[tuple[str, int]]) -> Any:
    """Draw how many tokens each hub absorbs."""
    return _bars(hubs, "other tokens that yield it")


def _bars(bars: list[tuple[str, int]], label: str) -> Any:
    figure = style.canvas(width=6.4, height=0.26 * len(bars) + 0.8)
    ax = figure.add_subplot()
    at = np.arange(len(bars))[::-1]
    drawn = ax.barh(at, [count for _, count in bars], height=0.7, color=style.COLOURS[0])
    ax.bar_label(drawn, padding=3, fontsize=8)
    ax.set_yticks(at, [name for name, _ in bars], parse_math=False)
    ax.margins(x=0.1)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel(label)
    return figure


ZERO_LAYER = Finding(
    name="zero_layer",
    title="Zero layers",
    version=2,
    needs=("token_embedding",),
    uses=("unembedding",),
    parameters={"baseline_tokens": BASELINE_TOKENS, "seed": SEED},
    compute=compute,
    claims=claims,
    figures=figures_of,
    signature="zero-layer-norms",
    reads_vocabulary=True,
)
