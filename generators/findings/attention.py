"""Attention: do the first layer's weights read positions, and which heads attend by position alone?

Observed by James Simon, "Insights into GPT-2's positional encodings" (the eight panels, the MLP's indifference), and
Adam Yedidia, "The positional embedding matrix and previous-token heads: how do they actually work?" (2023).
"""

from collections.abc import Iterator
from dataclasses import dataclass
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
from generators.base.text import number
from generators.maths.spectra import block_means, energy_share, right_singular_vectors, squared_overlaps, subspace_size
from generators.base.architecture import Architecture

MATRICES = {"Q": "attn.q", "K": "attn.k", "V": "attn.v", "O": "attn.o", "MLP in": "mlp.in"}
PRECEDING_NORM = {"Q": "ln1", "K": "ln1", "V": "ln1", "MLP in": "ln2"}  # O writes: no norm stands before it
FEWEST_POSITIONS = 3
CORNER = 5
FIRST_QUERY = 100
FEWEST_FOR_LATE_QUERIES = 200
SMALLEST_WEIGHT = 0.5
CHANCE_FACTOR = 5
PANEL_PIXELS = 96
LARGEST_LOG_RATIO = 0.8  # of squared overlap to chance, beyond which the panels' colours saturate
KERNEL_REACH = 32  # offsets kept for the figures, on either side


def compute(weights: Weights, architecture: Architecture, tokens: TokenFacts = NO_TOKENS) -> Result:
    """Compute how attention weights and MLP inputs overlap with P (and E), and what positions alone attend to.

    Args:
        weights: `position_embedding` (n, d), `blocks.*.attn.q/k/v/o` (d, m) with their norms and biases;
            `blocks.*.mlp.in` (d, f) and `token_embedding` (V, d) are used when there.
        architecture: numbers of layers and heads, the norms' epsilon, causal or not.

    Raises:
        NotApplicableError: P has fewer than three rows.
    """
    P = np.asarray(weights["position_embedding"], np.float64)
    n, d = P.shape
    if n < FEWEST_POSITIONS:
        raise NotApplicableError(f"P has only {n} positions; there is nothing to look back at.")
    k = subspace_size(n, d)
    bases = {"P": right_singular_vectors(P, d)}
    if "token_embedding" in weights:
        bases["E"] = right_singular_vectors(weights["token_embedding"], d)
    shares = [row for layer in range(architecture.n_layer) for row in _shares(weights, layer, bases, k)]
    panels, top5 = _layer_0(weights, bases)
    heads, kernels = _all_kernels(weights, architecture, P)
    metrics = {
        "k": k,
        "chance_share": k / d,
        "chance_top5": CORNER**2 / d,
        "shares": {
            "P": _layer_shares(shares, "in_P", "in_P_folded"),
            "E": _layer_shares(shares, "in_E", "in_E_folded") if "E" in bases else None,
        },
        "top5": {
            source: {name: top5[source, name] for name in MATRICES if (source, name) in top5} for source in bases
        },
        "positional_kernels": {
            "first_query": _first_query(n),
            "causal": architecture.causal,
            "uniform_at_1": float(kernels["uniform"][kernels["offsets"] == 1][0]),
            "heads": heads,
        },
        "n_layers": architecture.n_layer,
        "n_heads": architecture.n_head,
    }
    return Result(metrics, _tables(metrics, shares), {**panels, **_kept_kernels(kernels)})


def _layer_shares(rows: list[dict[str, Any]], raw: str, folded: str) -> dict[str, Any]:
    """Return shares as {matrix: [{layer, raw, folded} per layer where it is there]}."""
    return {
        name: [
            {"layer": row["layer"], "raw": row[raw], "folded": row[folded]} for row in rows if row["matrix"] == name
        ]
        for name in MATRICES
        if any(row["matrix"] == name for row in rows)
    }


def _matrices(weights: Weights, layer: int) -> Iterator[tuple[str, Array, Array | None]]:
    """Yield name, weights (d, m) and gain-folded weights of every matrix of a layer that is there."""
    for name, role in MATRICES.items():
        if f"blocks.{layer}.{role}" not in weights:
            continue
        W = weights[f"blocks.{layer}.{role}"]
        gain = f"blocks.{layer}.{PRECEDING_NORM.get(name)}.gain"
        yield name, W, weights[gain][:, None] * W if gain in weights else None


def _shares(weights: Weights, layer: int, bases: dict[str, Array], k: int) -> Iterator[dict[str, Any]]:
    for name, W, folded in _matrices(weights, layer):
        row: dict[str, Any] = {"layer": layer, "matrix": name}
        for source, basis in bases.items():
            top = basis[:, :k].astype(np.float32)
            row[f"in_{source}"] = energy_share(W, top)
            row[f"in_{source}_folded"] = None if folded is None else energy_share(folded, top)
        yield row


def _layer_0(weights: Weights, bases: dict[str, Array]) -> tuple[dict[str, Array], dict[tuple[str, str], Any]]:
    """Return the squared-overlap panels of layer 0 and the sums of their leading corners."""
    panels: dict[str, Array] = {}
    top5: dict[tuple[str, str], Any] = {}
    for name, W, folded in _matrices(weights, 0):
        leading = _left_vectors(W)
        leading_folded = None if folded is None else _left_vectors(folded)
        for source, basis in bases.items():
            overlaps = squared_overlaps(basis, leading)
            panels[f"panel_{source}_{name}"] = block_means(overlaps * len(basis), PANEL_PIXELS).astype(np.float16)
            top5[source, name] = {
                "raw": _corner(overlaps),
                "folded": None if leading_folded is None else _corner(squared_overlaps(basis, leading_folded)),
            }
    return panels, top5


def _left_vectors(W: Float[Array, "d m"]) -> Float[Array, "d r"]:
    return right_singular_vectors(np.asarray(W, np.float64).T, min(W.shape))


def _corner(overlaps: Float[Array, "p q"]) -> float:
    return float(overlaps[:CORNER, :CORNER].sum())


def _first_query(n: int) -> int:
    return FIRST_QUERY if n >= FEWEST_FOR_LATE_QUERIES else 1


def _all_kernels(
    weights: Weights, architecture: Architecture, P: Float[Array, "n d"]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return a description of every head's positional kernel, and the kernels themselves."""
    causal = architecture.causal
    heads, kernels = [], []
    for layer in range(architecture.n_layer):
        queries, keys = _queries_and_keys(weights, architecture, P, layer)
        for head in range(architecture.n_head):
            kernel = positional_kernel(queries[head], keys[head], causal)
            kernels.append(kernel.mean)
            heads.append(
                {
                    "layer": layer,
                    "head": head,
                    "peak_offset": kernel.peak,
                    "weight_at_peak": kernel.at(kernel.peak),
                    "weight_at_-1": None if causal else kernel.at(-1),
                    "weight_at_0": kernel.at(0),
                    "weight_at_1": kernel.at(1),
                    "peak_offset_all_queries": kernel.peak_all_queries,
                    "previous_token_head": kernel.peak == 1 and kernel.at(1) >= SMALLEST_WEIGHT,
                }
            )
    nothing = np.zeros((len(P), 1), np.float32)
    uniform = positional_kernel(nothing, nothing, causal)
    return heads, {"kernels": np.stack(kernels), "uniform": uniform.mean, "offsets": uniform.offsets}


def _queries_and_keys(
    weights: Weights, architecture: Architecture, P: Float[Array, "n d"], layer: int
) -> tuple[Float[Array, "heads n d_head"], Float[Array, "heads n d_head"]]:
    """Return what positions alone give as queries (scaled as the model scales scores) and keys."""
    read = _normed(weights, f"blocks.{layer}.ln1", P, architecture.norm_eps)
    projected = []
    for name in "qk":
        role = f"blocks.{layer}.attn.{name}"
        rows = read @ weights[role]
        if f"{role}.bias" in weights:
            rows = rows + weights[f"{role}.bias"]
        projected.append(rows.reshape(len(P), architecture.n_head, -1).transpose(1, 0, 2).astype(np.float32))
    queries, keys = projected
    scale = np.sqrt(queries.shape[-1]) * (layer + 1 if architecture.scaled_by_layer else 1)
    return queries / np.float32(scale), keys


def _normed(weights: Weights, norm: str, x: Float[Array, "n d"], eps: float) -> Float[Array, "n d"]:
    """Apply a layer norm; where the first layer has none before its attention, x passes unchanged."""
    if f"{norm}.gain" not in weights:
        return x
    centred = x - x.mean(axis=1, keepdims=True)
    scaled = centred / np.sqrt(np.mean(centred**2, axis=1, keepdims=True) + eps)
    shift = weights.get(f"{norm}.bias", 0)
    return scaled * weights[f"{norm}.gain"] + shift


@dataclass(frozen=True)
class Kernel:
    """Mean attention by offset (query position - key position), as far as positions alone decide it.

    Offsets run from 0 in a causal model, otherwise from the most negative one that a counted query has. A far offset
    exists for few queries, so its mean is a mean over few; `peak_all_queries` is the peak within a quarter of the
    context, averaged over all queries.
    """

    offsets: Int[Array, " offsets"]
    mean: Float[Array, " offsets"]
    peak: int
    peak_all_queries: int

    def at(self, offset: int) -> float:
        """Return the mean attention at an offset."""
        return float(self.mean[offset - int(self.offsets[0])])


def positional_kernel(queries: Float[Array, "n d_head"], keys: Float[Array, "n d_head"], causal: bool) -> Kernel:
    """Average a head's attention by offset over the query positions >= 100 (>= 1 in short contexts).

    Queries are already scaled by 1/sqrt(d_head).
    """
    n = len(keys)
    start = _first_query(n)
    scores = queries @ keys.T
    if causal:
        scores[np.triu_indices(n, 1)] = -np.inf
    scores -= scores.max(axis=1, keepdims=True)
    attention = np.exp(scores, out=scores)
    attention /= attention.sum(axis=1, keepdims=True)
    offsets = np.arange(0 if causal else start - (n - 1), n)
    late = _sums_by_offset(attention[start:], start, offsets)
    early = _sums_by_offset(attention[:start], 0, offsets)
    mean = late / _queries_with(offsets, start, n)
    near = np.abs(offsets) < max(2, n // 4)
    mean_all = (late + early)[near] / _queries_with(offsets[near], 0, n)
    return Kernel(offsets, mean, int(offsets[np.argmax(mean)]), int(offsets[near][np.argmax(mean_all)]))


def _queries_with(offsets: Int[Array, " offsets"], start: int, n: int) -> Int[Array, " offsets"]:
    """Return at how many query positions from `start` on each offset exists."""
    return np.minimum(n - 1, n - 1 + offsets) - np.maximum(start, offsets) + 1


def _sums_by_offset(
    attention: Float[Array, "queries n"], start: int, offsets: Int[Array, " offsets"]
) -> Float[Array, " offsets"]:
    """Return attention summed over queries `start`.. at each offset; 0 where it never exists."""
    m, n = attention.shape
    sums = np.zeros(len(offsets))
    diagonals = _diagonal_sums(attention)  # of column - row, from -(m - 1) to n - 1
    diagonal = start - offsets + m - 1
    exists = (diagonal >= 0) & (diagonal < m + n - 1)
    sums[exists] = diagonals[diagonal[exists]]
    return sums


def _diagonal_sums(matrix: Float[Array, "m n"]) -> Float[Array, " diagonals"]:
    """Return the sums along all diagonals, from the lower left corner to the upper right one."""
    m, n = matrix.shape
    sheared = np.zeros((m, n + m), np.float32)
    sheared[:, :n] = matrix[::-1]
    return sheared.ravel()[: m * (n + m - 1)].reshape(m, n + m - 1).sum(axis=0, dtype=np.float64)


def _kept_kernels(kernels: dict[str, Any]) -> dict[str, Array]:
    offsets = kernels["offsets"]
    near = np.abs(offsets) <= KERNEL_REACH
    return {
        "kernel_offsets": offsets[near].astype(np.int32),
        "kernels": kernels["kernels"][:, near].astype(np.float32),
        "uniform_kernel": kernels["uniform"][near].astype(np.float32),
    }


def _tables(metrics: dict[str, Any], shares: list[dict[str, Any]]) -> dict[str, Table]:
    columns = [c for c in ("layer", "matrix", "in_P", "in_P_folded", "in_E", "in_E_folded") if c in shares[0]]
    corners = [
        (source, name, values["raw"], values["folded"], metrics["chance_top5"])
        for source, matrices in metrics["top5"].items()
        for name, values in matrices.items()
    ]
    heads = metrics["positional_kernels"]["heads"]
    return {
        "shares": Table(
            f"Share of each matrix in the top {metrics['k']} directions; chance {metrics['chance_share']:.4f}",
            tuple(columns),
            tuple(tuple(row[column] for column in columns) for row in shares),
        ),
        "top5": Table(
            "Layer 0: squared overlap of the five leading directions with five of P or E",
            ("embedding", "matrix", "raw", "folded", "chance"),
            tuple(corners),
        ),
        "positional_kernels": Table(
            "What each head attends to if it sees positions alone",
            tuple(heads[0]),
            tuple(tuple(head.values()) for head in heads),
        ),
    }


def claims(result: Result) -> list[Claim]:
    """Judge whether layer 0 reads positions, whether its MLP ignores them, and whether a head looks back by one."""
    return [_reads_positions(result.metrics), _mlp_ignores(result.metrics), _previous_token(result.metrics)]


def _reads_positions(m: dict[str, Any]) -> Claim:
    chance, corners = m["chance_top5"], m["top5"]["P"]
    value = min(corners["Q"]["raw"], corners["K"]["raw"])
    answer = (
        f"In the raw weights, the five leading directions of layer-0 Q and K overlap with those of P by "
        f"{corners['Q']['raw']:.2f} and "
        f"{corners['K']['raw']:.2f}, {corners['Q']['raw'] / chance:.3g} and {corners['K']['raw'] / chance:.3g} times "
        f"chance"
    )
    if corners["Q"]["folded"] is not None:
        answer += (
            f"; once the gain of the norm before them is folded in, {corners['Q']['folded'] / chance:.2g} and "
            f"{corners['K']['folded'] / chance:.2g} times chance"
        )
    return judge(
        "qk-read-positions", value, {"fails": f"{answer}."}, baseline=chance, holds_at=CHANCE_FACTOR * chance
    )


def _mlp_ignores(m: dict[str, Any]) -> Claim:
    shares = [row for row in m["shares"]["P"].get("MLP in", []) if row["layer"] == 0]
    if not shares:
        return untested("mlp-ignores-positions", "The MLP matrix of layer 0 isn't in this checkpoint.")
    value, chance = shares[0]["raw"], m["chance_share"]
    if value is None:
        return untested("mlp-ignores-positions", "The MLP matrix of layer 0 is all zeros.")
    return judge(
        "mlp-ignores-positions",
        value,
        {
            "fails": f"{value:.4f} of the energy of the layer-0 MLP input lies in P's top {m['k']} directions; "
            f"chance gives {chance:.4f}."
        },
        baseline=chance,
        holds_at=0.5 * chance,
    )


def _previous_token(m: dict[str, Any]) -> Claim:
    kernels = m["positional_kernels"]
    found = [head for head in kernels["heads"] if head["previous_token_head"]]
    best = max(kernels["heads"], key=lambda head: (head["previous_token_head"], head["weight_at_1"]))
    weight, name = best["weight_at_1"], f"L{best['layer']}H{best['head']}"
    count = len(found)
    return judge(
        "previous-token-head",
        weight,
        {
            "holds": f"{count} of {len(kernels['heads'])} heads would attend to the previous token by position "
            f"alone, {name} most, with weight {weight:.3f}.{_beyond_layer_0(found)}",
            "fails": f"No head attends mainly to the previous token by position alone; the largest weight there is "
            f"{weight:.2f} ({name}), where uniform attention gives {kernels['uniform_at_1']:.4f}.",
        },
        baseline=kernels["uniform_at_1"],
        also=bool(best["previous_token_head"]),
    )


def _beyond_layer_0(heads: list[dict[str, Any]]) -> str:
    deeper = sum(head["layer"] > 0 for head in heads)
    if not deeper:
        return ""
    are = "them is" if deeper == 1 else "them are"
    return f" {deeper} of {are} beyond layer 0, where the input is no longer P: a caricature."


def figures_of(result: Result) -> list[Figure]:
    """Return the overlap panels, the shares by layer and the positional kernels."""
    m, arrays = result.metrics, result.arrays
    heads = m["positional_kernels"]["heads"]
    peaks = [head["peak_offset"] for head in heads]
    at_0, at_1 = peaks.count(0), peaks.count(1)
    corners = ", ".join(f"{name} {values['raw'] / m['chance_top5']:.3g}" for name, values in m["top5"]["P"].items())
    sources = [source for source in ("P", "E") if m["shares"][source]]
    layer_0_best = max(heads[: m["n_heads"]], key=lambda head: head["weight_at_peak"])
    against = " and of E" if "E" in sources else ""
    return [
        Figure(
            "overlap-panels",
            "Layer-0 weights against the directions of the embeddings",
            f"Each panel crosses the singular vectors of P{against} (down, strongest first) with those of one weight "
            "matrix (across). Colour is the squared overlap against chance: red above, blue below. A red upper "
            "left corner means that the matrix reads or writes the embedding's strongest directions.",
            f"Squared overlaps of layer-0 matrices with P{against}. Leading 5 x 5 corner against P, in times chance: "
            f"{corners}.",
            lambda: draw_panels(arrays, sources),
        ),
        Figure(
            "shares-by-layer",
            f"How much of each matrix lies in the top {m['k']} directions",
            "The share of each matrix's energy that lies in the subspace of the strongest directions, by layer. The "
            "dashed line is what a random matrix would have there.",
            f"Shares of Q, K, V, O and (where present) MLP input by layer in P's top {m['k']} directions; chance is "
            f"{m['chance_share']:.3f}. First layer: "
            + ", ".join(f"{name} {number(rows[0]['raw'])}" for name, rows in m["shares"]["P"].items())
            + ".",
            lambda: draw_shares(m, sources),
        ),
        Figure(
            "positional-kernels",
            "What layer-0 heads attend to by position alone",
            "One panel per head of layer 0: mean attention by distance from the query back to the key, if the input "
            "were positions alone. The dotted line marks offset 1, the previous token; negative offsets are tokens "
            "after the query. The grey line is uniform attention. A spike at 1 is a previous-token head.",
            f"Positional kernels of layer 0. The sharpest is head {layer_0_best['head']}, with weight "
            f"{layer_0_best['weight_at_peak']:.2f} at offset {layer_0_best['peak_offset']}.",
            lambda: draw_kernels(arrays, m["n_heads"]),
        ),
        Figure(
            "kernel-map",
            "Every head's weight on the previous token, by position alone",
            "One square per head. Beyond layer 0 this is a caricature: the input there is no longer P.",
            f"Weight at offset 1 of {len(heads)} heads: {at_1} peak there, {at_0} peak at the token itself.",
            lambda: draw_kernel_map(heads, m["n_layers"], m["n_heads"]),
        ),
    ]


def draw_panels(arrays: dict[str, Array], sources: list[str]) -> Any:
    """Draw the squared overlaps of layer 0, one row of panels per embedding."""
    names = [name for name in MATRICES if f"panel_P_{name}" in arrays]
    figure = style.canvas(width=1.9 * len(names) + 0.9, height=2.2 * len(sources) + 0.5)
    axes = figure.subplots(len(sources), len(names), squeeze=False)
    for row, source in enumerate(sources):
        for column, name in enumerate(names):
            ax = axes[row, column]
            ratio = np.maximum(arrays[f"panel_{source}_{name}"].astype(np.float32), 1e-3)
            image = ax.imshow(
                np.log10(ratio),
                cmap=style.diverging_colours(),
                vmin=-LARGEST_LOG_RATIO,
                vmax=LARGEST_LOG_RATIO,
                aspect="auto",
                extent=(0, 1, 1, 0),
                interpolation="none",
            )
            ax.set_xticks([0, 1], ["first", "last"])
            ax.set_yticks([0, 1], ["first", "last"])
            ax.grid(False)
            ax.set_xlabel(f"vectors of {name}")
            if column == 0:
                ax.set_ylabel(f"vectors of {source}")
    bar = figure.colorbar(image, ax=axes, shrink=0.8, label="squared overlap / chance")
    bar.set_ticks(np.log10([0.2, 0.5, 1, 2, 5]), labels=["1/5", "1/2", "1", "2", "5"])
    return figure


def draw_shares(m: dict[str, Any], sources: list[str]) -> Any:
    """Draw the share of each matrix by layer, raw (solid) and with the gain folded in (dotted)."""
    figure = style.canvas(width=3.9 * len(sources) + 1.4, height=3.4)
    for index, source in enumerate(sources):
        ax = figure.add_subplot(1, len(sources), index + 1)
        for order, (name, rows) in enumerate(m["shares"][source].items()):
            colour = style.COLOURS[order]
            layers = [row["layer"] for row in rows]
            raw, folded = (np.array([row[kind] for row in rows], float) for kind in ("raw", "folded"))
            ax.plot(layers, raw, "o-", ms=4, lw=1.2, color=colour, label=name)
            ax.plot(layers, folded, ":", lw=1.2, color=colour)
        ax.axhline(m["chance_share"], ls="--", lw=1, color=style.INK, label="chance")
        ax.set_yscale("log")
        ax.set_xlabel("layer")
        ax.set_ylabel(f"share in {source}'s top {m['k']}\n(dotted: gain folded in)")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def draw_kernels(arrays: dict[str, Array], n_heads: int) -> Any:
    """Draw mean attention by offset for the heads of layer 0."""
    offsets, kernels, uniform = arrays["kernel_offsets"], arrays["kernels"], arrays["uniform_kernel"]
    columns = min(4, n_heads)
    rows = -(-n_heads // columns)
    figure = style.canvas(width=2.0 * columns + 0.6, height=1.4 * rows + 0.5)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for head, ax in enumerate(axes.flat):
        if head >= n_heads:
            ax.set_visible(False)
            continue
        ax.plot(offsets, uniform, lw=1.2, color=style.INK, alpha=0.4)
        ax.plot(offsets, kernels[head], lw=1.2, color=style.COLOURS[0])
        ax.axvline(1, color=style.COLOURS[1], lw=0.8, ls=":")
        ax.set_title(f"head {head}")
    figure.supxlabel("offset: tokens back from the query (dotted line: the previous token)")
    figure.supylabel("mean attention")
    return figure


def draw_kernel_map(heads: list[dict[str, Any]], n_layers: int, n_heads: int) -> Any:
    """Draw the weight at offset 1 of every head as a map of layers and heads."""
    weight = np.array([head["weight_at_1"] for head in heads]).reshape(n_layers, n_heads)
    figure = style.canvas(width=max(4.2, 0.34 * n_heads + 2.2), height=max(2.4, 0.3 * n_layers + 1.2))
    ax = figure.add_subplot()
    image = ax.imshow(weight, cmap=style.SEQUENTIAL, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    ax.set_xlabel("head")
    ax.set_ylabel("layer")
    ax.grid(False)
    figure.colorbar(image, ax=ax, label="attention at offset 1")
    return figure


ATTENTION = Finding(
    name="attention",
    title="Attention",
    version=1,
    needs=("position_embedding", *(f"blocks.*.attn.{name}" for name in "qkvo")),
    uses=(
        "blocks.*.ln1.gain",
        "blocks.*.ln1.bias",
        "blocks.*.attn.q.bias",
        "blocks.*.attn.k.bias",
        "blocks.*.ln2.gain",
        "blocks.*.mlp.in",
        "token_embedding",
    ),
    parameters={"corner": CORNER, "first_query": FIRST_QUERY},
    compute=compute,
    claims=claims,
    figures=figures_of,
    signature="overlap-panels",
)
