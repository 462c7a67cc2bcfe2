from collections.abc import Iterator, Mapping
from typing import Any, Literal, NotRequired

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.attention.heads import Kernels, positional_heads
from generators.findings.attention.query_bias import QueryBias, query_bias
from generators.findings.attention.with_tokens import can_have_tokens, kernels_with_tokens
from generators.findings.inputs import Inputs, NotApplicableError, Weights
from generators.findings.measured import Measurements, StoredChance, Table, table_of
from generators.findings.nulls import DRAWS, drawn, strictest
from generators.findings.sizes import InStream, check_positions, check_width, nonconstant_positions
from generators.maths.resampling import Sense
from generators.maths.rotations import rivalries, shares_in_subspace
from generators.maths.spectra import (
    block_means,
    energy_share,
    gram,
    numerical_rank,
    right_singular_vectors,
    squared_overlaps,
    subspace_size,
)

Source = Literal["P", "E"]
Matrix = Literal["Q", "K", "V", "O", "MLP in"]
ROLES: dict[Matrix, str] = {"Q": "attn.q", "K": "attn.k", "V": "attn.v", "O": "attn.o", "MLP in": "mlp.in"}
PRECEDING_NORM: dict[Matrix, str] = {"Q": "ln1", "K": "ln1", "V": "ln1", "MLP in": "ln2"}  # O writes: none before it
SEED = 20240820
CORNER = 5
READING: tuple[Matrix, ...] = ("Q", "K")
TURNED = "matrices with the same spectrum, turned at random"
REORDERED = "matrices with their channels in another order"
PANEL_PIXELS = 96
EMBEDDING: dict[Source, str] = {"P": "position_embedding", "E": "token_embedding"}
Bases = dict[Source, Float[Array, "d d"]]


class RawAndFolded(TypedDict):
    """A sum of squared overlaps in the raw weights, and with the gain of the norm before them folded in."""

    raw: float
    folded: float | None


class LayerShare(TypedDict):
    """A matrix's share in one layer, raw and with the gain folded in; None where the weights are all 0."""

    layer: int
    raw: float | None
    folded: float | None


ByMatrix = dict[Matrix, list[LayerShare]]


class Shares(TypedDict):
    P: ByMatrix | None
    E: ByMatrix | None


class Turned(TypedDict):
    """What a matrix gives by chance: turned at random, or its channels in another order, whichever is stricter.

    The second null keeps what single channels have: where P or E has loud channels and a norm's gain differs between
    channels, it spreads more. Of the share in k directions, `most` is the 99th percentile and `least` the 1st: in
    tokens' directions (positions' for O), and in positions'. `read` is how strongly queries or keys read positions.
    """

    most: StoredChance | None
    least: StoredChance | None
    read: StoredChance | None


class TurnedBoth(TypedDict):
    raw: Turned
    folded: Turned | None


class AttentionChances(TypedDict):
    """What chance gives: for matrices of layer 0; for kernels, queries paired with keys at random."""

    turned: dict[Matrix, TurnedBoth]
    previous_token: StoredChance | None
    previous_token_with_tokens: StoredChance | None


class AttentionMetrics(TypedDict):
    """`reads` is how strongly layer-0 queries and keys read positions: 1 is a random direction of the stream.

    `directions_of_P` is there where P has fewer than k: the others are rounding.
    """

    k: int
    chance_share: float
    chance_top5: float
    shares: Shares
    top5: dict[Source, dict[Matrix, RawAndFolded]]
    reads: dict[Matrix, RawAndFolded]
    positional_kernels: Kernels | None
    token_kernels: Kernels | None
    query_bias: QueryBias | None
    chance: AttentionChances
    directions_of_P: NotRequired[int]


def measure(inputs: Inputs) -> Measurements[AttentionMetrics]:
    """Measure how attention weights and MLP inputs overlap with P and E, and what positions alone attend to."""
    weights, architecture = inputs.weights, inputs.architecture
    P = _positions(weights)
    sides = _sides(InStream(weights))
    n, d = min(len(weights[EMBEDDING[source]]) for source in sides), weights["blocks.0.attn.q"].shape[0]
    k = subspace_size(n, d)
    bases: Bases = {source: right_singular_vectors(rows, d) for source, rows in sides.items()}
    shares, rows = _shares(weights, architecture.n_layer, bases, k)
    top5, panels = _layer_0(weights, bases)
    alone = None if P is None else positional_heads(weights, architecture, P)
    with_tokens = kernels_with_tokens(inputs, P) if P is not None and can_have_tokens(weights, architecture) else None
    bias, bias_table = query_bias(weights, architecture)
    metrics = AttentionMetrics(
        k=k,
        chance_share=k / d,
        chance_top5=CORNER**2 / d,
        shares=shares,
        top5=top5,
        reads=_reads(weights, sides["P"]) if "P" in sides else {},
        positional_kernels=None if alone is None else alone.kernels,
        token_kernels=None if with_tokens is None else with_tokens.kernels,
        query_bias=bias,
        chance={
            "turned": _turned(weights, k, sides, bases),
            "previous_token": None if alone is None else alone.chance,
            "previous_token_with_tokens": None if with_tokens is None else with_tokens.chance,
        },
    )
    if "P" in sides and (directions := numerical_rank(sides["P"])) < k:
        metrics["directions_of_P"] = directions
    looked = {"positional_kernels": alone, "token_kernels": with_tokens}
    tables = _tables(metrics, rows) | {name: one.table for name, one in looked.items() if one is not None}
    arrays = {name: array for one in looked.values() if one is not None for name, array in one.arrays.items()}
    return Measurements(metrics, tables | bias_table, panels | arrays)


def _positions(weights: Weights) -> Float[Array, "n d"] | None:
    if "position_embedding" not in weights:
        return None
    check_positions(weights["position_embedding"])
    P = nonconstant_positions(weights)
    if P is None:
        raise NotApplicableError("The rows of P are alike, all or all but the first: no position to attend to.")
    return P


def _sides(weights: Weights) -> dict[Source, Array]:
    """Return positions and tokens about their means: what all have in common tells nobody which one it is."""
    P, E = _positions(weights), weights.get("token_embedding")
    sides: dict[Source, Array] = {} if P is None else {"P": _centred(P[1:])}
    if E is not None and np.ptp(E, axis=0).any():
        sides["E"] = _centred(E)
    if not sides:
        raise NotApplicableError("There are neither tokens nor a table of positions to compare these weights with.")
    for rows in sides.values():
        check_width(rows, weights["blocks.0.attn.q"])
    return sides


def _centred(rows: Float[Array, "rows d"]) -> Float[Array, "rows d"]:
    return rows - rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)


def _reads(weights: Weights, rows: Float[Array, "m d"]) -> dict[Matrix, RawAndFolded]:
    """Return d |P W|^2 / (|P|^2 |W|^2) for queries and keys; None where the weights are all 0."""

    def strength(W: Array) -> float:
        energy = np.sum(rows**2) * np.sum(np.square(W, dtype=np.float64))
        return float(W.shape[0] * np.sum((rows @ W) ** 2) / energy)

    return {
        name: {"raw": strength(W), "folded": None if folded is None else strength(folded)}
        for name, W, folded in _matrices(weights, 0)
        if name in READING and W.any() and (folded is None or folded.any())
    }


def _turned(weights: Weights, k: int, sides: dict[Source, Array], bases: Bases) -> dict[Matrix, TurnedBoth]:
    rng, again = np.random.default_rng(SEED), np.random.default_rng([SEED, 1])
    tops: dict[Source, Array] = {source: basis[:, :k] for source, basis in bases.items()}
    positions = gram(sides["P"]) if "P" in sides else None
    of_P = None if positions is None else np.linalg.eigvalsh(positions)

    def turned(name: Matrix, W: Array) -> Turned:
        W = np.asarray(W, np.float64)
        energies, d = W @ W.T / np.sum(W**2), len(W)
        spectrum = np.clip(np.linalg.eigvalsh(energies), 0, None)
        shares = shares_in_subspace(spectrum, k, d, DRAWS, rng)
        others = shares_reordered(energies, tops, again)
        most, least = others.get("P" if name == "O" else "E"), others.get("P")
        read = None
        if of_P is not None and positions is not None and name in READING:
            form, orders = positions / np.trace(positions) * d, (again.permutation(d) for _ in range(DRAWS))
            reads = np.array([np.vdot(form, energies[order][:, order]) for order in orders])
            read = _stricter(rivalries(of_P, spectrum, d, DRAWS, rng), reads)
        return {
            "most": None if most is None else _stricter(shares, most),
            "least": None if least is None else _stricter(shares, least, "at most"),
            "read": read,
        }

    return {
        name: {"raw": turned(name, W), "folded": None if folded is None else turned(name, folded)}
        for name, W, folded in _matrices(weights, 0)
        if W.any() and (folded is None or folded.any())
    }


def shares_reordered(
    energies: Float[Array, "d d"], tops: Mapping[Source, Float[Array, "d k"]], rng: np.random.Generator
) -> dict[Source, Float[Array, " draws"]]:
    """Return what share of W W^T / |W|^2 lies in each subspace with the channels of W in random orders."""
    found: dict[Source, Array] = {source: np.empty(DRAWS) for source in tops}
    for draw in range(DRAWS):
        order = rng.permutation(len(energies))
        for source, top in tops.items():
            moved = np.empty_like(top)
            moved[order] = top  # instead of W's channels, which are more
            found[source][draw] = np.vdot(moved, energies @ moved)
    return found


def _stricter(
    turned: Float[Array, " draws"], others: Float[Array, " draws"], sense: Sense = "at least"
) -> StoredChance | None:
    return strictest((drawn(TURNED, turned, sense), drawn(REORDERED, others, sense)), sense)


def _matrices(weights: Weights, layer: int) -> Iterator[tuple[Matrix, Array, Array | None]]:
    for name, role in ROLES.items():
        if f"blocks.{layer}.{role}" not in weights:
            continue
        W = weights[f"blocks.{layer}.{role}"]
        gain = weights.get(f"blocks.{layer}.{PRECEDING_NORM[name]}.gain") if name in PRECEDING_NORM else None
        yield name, W, None if gain is None else gain[:, None] * W


def _shares(weights: Weights, n_layer: int, bases: Bases, k: int) -> tuple[Shares, list[dict[str, Any]]]:
    """Return the shares of all layers by embedding and matrix, and as rows of a table."""
    top = {source: basis[:, :k].astype(np.float32) for source, basis in bases.items()}
    found: dict[Source, ByMatrix] = {source: {} for source in bases}
    rows: list[dict[str, Any]] = []
    for layer in range(n_layer):
        for name, W, folded in _matrices(weights, layer):
            rows.append({"layer": layer, "matrix": name})
            for source, axes in top.items():
                both = energy_share(W, axes), None if folded is None else energy_share(folded, axes)
                found[source].setdefault(name, []).append({"layer": layer, "raw": both[0], "folded": both[1]})
                rows[-1] |= {f"in_{source}": both[0], f"in_{source}_folded": both[1]}
    return {"P": found.get("P"), "E": found.get("E")}, rows


def _layer_0(
    weights: Weights, bases: Bases
) -> tuple[dict[Source, dict[Matrix, RawAndFolded]], dict[str, Float[Array, "a b"]]]:
    top5: dict[Source, dict[Matrix, RawAndFolded]] = {source: {} for source in bases}
    panels: dict[str, Array] = {}
    for name, W, folded in _matrices(weights, 0):
        leading = _left_vectors(W, min(W.shape))
        leading_folded = None if folded is None else _left_vectors(folded, CORNER)
        for source, basis in bases.items():
            overlaps = squared_overlaps(basis, leading)
            panels[f"panel_{source}_{name}"] = block_means(overlaps * len(basis), PANEL_PIXELS).astype(np.float16)
            top5[source][name] = {
                "raw": _corner(overlaps),
                "folded": None if leading_folded is None else _corner(squared_overlaps(basis, leading_folded)),
            }
    return top5, panels


def _left_vectors(W: Float[Array, "d m"], count: int) -> Float[Array, "d count"]:
    return right_singular_vectors(np.asarray(W, np.float64).T, count)


def _corner(overlaps: Float[Array, "p q"]) -> float:
    return float(overlaps[:CORNER, :CORNER].sum())


def _tables(metrics: AttentionMetrics, shares: list[dict[str, Any]]) -> dict[str, Table]:
    corners = [
        {"embedding": source, "matrix": name, **both, "chance": metrics["chance_top5"]}
        for source, matrices in metrics["top5"].items()
        for name, both in matrices.items()
    ]
    title = f"Share of each matrix in the top {metrics['k']} directions; chance {metrics['chance_share']:.4f}"
    of_five = "Layer 0: squared overlap of the five leading directions with five of P or E"
    return {
        "shares": table_of(title, shares[0], shares),
        "top5": table_of(of_five, corners[0], corners),
    }
