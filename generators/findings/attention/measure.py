"""How attention weights and MLP inputs overlap with P (and E), and what positions alone attend to."""

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.attention.heads import Head, positional_heads
from generators.findings.contract import Inputs, Measurements, NotApplicableError, Table, Weights, table_of
from generators.maths.kernels import first_query
from generators.maths.spectra import (
    block_means,
    energy_share,
    right_singular_vectors,
    squared_overlaps,
    subspace_size,
)

Source = Literal["P", "E"]
Matrix = Literal["Q", "K", "V", "O", "MLP in"]
ROLES: dict[Matrix, str] = {"Q": "attn.q", "K": "attn.k", "V": "attn.v", "O": "attn.o", "MLP in": "mlp.in"}
PRECEDING_NORM: dict[Matrix, str] = {"Q": "ln1", "K": "ln1", "V": "ln1", "MLP in": "ln2"}  # O writes: none before it
FEWEST_POSITIONS = 3
CORNER = 5
PANEL_PIXELS = 96
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


class Shares(TypedDict):
    """Shares by matrix in the top directions of P and, where it is there, of E."""

    P: dict[Matrix, list[LayerShare]]
    E: dict[Matrix, list[LayerShare]] | None


class PositionalKernels(TypedDict):
    """What every head attends to by position alone; `uniform_at_1` is what uniform attention gives at offset 1."""

    first_query: int
    causal: bool
    uniform_at_1: float
    heads: list[Head]


class Metrics(TypedDict):
    """Overlaps of weights with the k strongest directions of P and E, and the positional kernels."""

    k: int
    chance_share: float
    chance_top5: float
    shares: Shares
    top5: dict[Source, dict[Matrix, RawAndFolded]]
    positional_kernels: PositionalKernels
    n_layers: int
    n_heads: int


class ShareRow(TypedDict):
    """One matrix of one layer; the last two are None without E."""

    layer: int
    matrix: Matrix
    in_P: float | None
    in_P_folded: float | None
    in_E: float | None
    in_E_folded: float | None


class CornerRow(TypedDict):
    """The leading corner of one panel of layer 0."""

    embedding: Source
    matrix: Matrix
    raw: float
    folded: float | None
    chance: float


def measure(inputs: Inputs) -> Measurements[Metrics]:
    """Measure how attention weights and MLP inputs overlap with P (and E), and what positions alone attend to.

    Reads `position_embedding` (n, d) and `blocks.*.attn.q/k/v/o` (d, m) with their norms and biases;
    `blocks.*.mlp.in` (d, f) and `token_embedding` (V, d) when there.

    Raises:
        NotApplicableError: P has fewer than three rows.
    """
    weights, architecture = inputs.weights, inputs.architecture
    P = np.asarray(weights["position_embedding"], np.float64)
    n, d = P.shape
    if n < FEWEST_POSITIONS:
        raise NotApplicableError(f"P has only {n} positions; there is nothing to look back at.")
    k = subspace_size(n, d)
    bases = _bases(weights, P)
    shares = _share_rows(weights, architecture.n_layer, bases, k)
    top5, panels = _layer_0(weights, bases)
    heads = positional_heads(weights, architecture, P)
    metrics = Metrics(
        k=k,
        chance_share=k / d,
        chance_top5=CORNER**2 / d,
        shares=_shares(shares, "E" in bases),
        top5=top5,
        positional_kernels={
            "first_query": first_query(n),
            "causal": architecture.causal,
            "uniform_at_1": heads.uniform.at(1),
            "heads": heads.described,
        },
        n_layers=architecture.n_layer,
        n_heads=architecture.n_head,
    )
    return Measurements(metrics, _tables(metrics, shares), {**panels, **heads.near()})


def _bases(weights: Weights, P: Float[Array, "n d"]) -> Bases:
    """Return all right singular vectors of P, and of E where it is there, as columns, strongest first."""
    bases: Bases = {"P": right_singular_vectors(P, P.shape[1])}
    if "token_embedding" in weights:
        bases["E"] = right_singular_vectors(weights["token_embedding"], P.shape[1])
    return bases


# Shares of every layer


def _matrices(weights: Weights, layer: int) -> Iterator[tuple[Matrix, Array, Array | None]]:
    """Yield name, weights (d, m) and gain-folded weights of every matrix of a layer that is there."""
    for name, role in ROLES.items():
        if f"blocks.{layer}.{role}" not in weights:
            continue
        W = weights[f"blocks.{layer}.{role}"]
        gain = weights.get(f"blocks.{layer}.{PRECEDING_NORM[name]}.gain") if name in PRECEDING_NORM else None
        yield name, W, None if gain is None else gain[:, None] * W


def _share_rows(weights: Weights, n_layer: int, bases: Bases, k: int) -> list[ShareRow]:
    top = {source: basis[:, :k].astype(np.float32) for source, basis in bases.items()}

    def share(W: Array | None, source: Source) -> float | None:
        return None if W is None or source not in top else energy_share(W, top[source])

    return [
        {
            "layer": layer,
            "matrix": name,
            "in_P": share(W, "P"),
            "in_P_folded": share(folded, "P"),
            "in_E": share(W, "E"),
            "in_E_folded": share(folded, "E"),
        }
        for layer in range(n_layer)
        for name, W, folded in _matrices(weights, layer)
    ]


def _shares(rows: list[ShareRow], with_tokens: bool) -> Shares:
    def in_positions(row: ShareRow) -> LayerShare:
        return {"layer": row["layer"], "raw": row["in_P"], "folded": row["in_P_folded"]}

    def in_tokens(row: ShareRow) -> LayerShare:
        return {"layer": row["layer"], "raw": row["in_E"], "folded": row["in_E_folded"]}

    return {"P": _by_matrix(rows, in_positions), "E": _by_matrix(rows, in_tokens) if with_tokens else None}


def _by_matrix(rows: list[ShareRow], share: Callable[[ShareRow], LayerShare]) -> dict[Matrix, list[LayerShare]]:
    """Return the shares of every matrix, of the layers that have it."""
    found = {name: [share(row) for row in rows if row["matrix"] == name] for name in ROLES}
    return {name: layers for name, layers in found.items() if layers}


# Overlaps of layer 0


def _layer_0(
    weights: Weights, bases: Bases
) -> tuple[dict[Source, dict[Matrix, RawAndFolded]], dict[str, Float[Array, "a b"]]]:
    """Return the sums of the leading corners of layer 0's squared-overlap panels, and the panels themselves."""
    top5: dict[Source, dict[Matrix, RawAndFolded]] = {source: {} for source in bases}
    panels: dict[str, Array] = {}
    for name, W, folded in _matrices(weights, 0):
        leading = _left_vectors(W)
        leading_folded = None if folded is None else _left_vectors(folded)
        for source, basis in bases.items():
            overlaps = squared_overlaps(basis, leading)
            panels[f"panel_{source}_{name}"] = block_means(overlaps * len(basis), PANEL_PIXELS).astype(np.float16)
            top5[source][name] = {
                "raw": _corner(overlaps),
                "folded": None if leading_folded is None else _corner(squared_overlaps(basis, leading_folded)),
            }
    return top5, panels


def _left_vectors(W: Float[Array, "d m"]) -> Float[Array, "d r"]:
    return right_singular_vectors(np.asarray(W, np.float64).T, min(W.shape))


def _corner(overlaps: Float[Array, "p q"]) -> float:
    return float(overlaps[:CORNER, :CORNER].sum())


# Tables


def _tables(metrics: Metrics, shares: list[ShareRow]) -> dict[str, Table]:
    corners: list[CornerRow] = [
        {"embedding": source, "matrix": name, **both, "chance": metrics["chance_top5"]}
        for source, matrices in metrics["top5"].items()
        for name, both in matrices.items()
    ]
    without_E = () if metrics["shares"]["E"] else ("in_E", "in_E_folded")
    return {
        "shares": table_of(
            f"Share of each matrix in the top {metrics['k']} directions; chance {metrics['chance_share']:.4f}",
            [column for column in ShareRow.__annotations__ if column not in without_E],
            shares,
        ),
        "top5": table_of(
            "Layer 0: squared overlap of the five leading directions with five of P or E",
            list(CornerRow.__annotations__),
            corners,
        ),
        "positional_kernels": table_of(
            "What each head attends to if it sees positions alone",
            list(Head.__annotations__),
            metrics["positional_kernels"]["heads"],
        ),
    }
