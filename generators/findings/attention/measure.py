from collections.abc import Iterator
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.attention.heads import Head, positional_heads
from generators.findings.attention.query_bias import QueryBias, query_bias
from generators.findings.attention.with_tokens import (
    Seen,
    TokenHead,
    TokenKernels,
    can_have_tokens,
    kernels_with_tokens,
)
from generators.findings.inputs import Inputs, NotApplicableError, Weights
from generators.findings.measured import Interval, Measurements, StoredChance, Table, table_of
from generators.findings.nulls import DRAWS, drawn
from generators.findings.sizes import check_positions, check_width, nonconstant_positions
from generators.maths.kernels import first_query
from generators.maths.resampling import Sense
from generators.maths.rotations import shares_in_subspace, top_overlaps
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
SEED = 20240820
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


ByMatrix = dict[Matrix, list[LayerShare]]


class Shares(TypedDict):
    P: ByMatrix
    E: ByMatrix | None


class PositionalKernels(TypedDict):
    """What every head attends to by position alone; `uniform_at_1` is what uniform attention gives at offset 1.

    It is that of the best head's layer, and the interval that of this head's weight at offset 1.
    """

    first_query: int
    causal: bool
    uniform_at_1: float
    heads: list[Head]
    interval_of_best: Interval


class SubspaceChances(TypedDict):
    """What chance gives for weights; None where what a claim is about isn't there.

    Layer-0 matrices, with the gain of the norm before them folded in, each turned at random with its own spectrum; of
    two or three of them the smallest share.
    """

    top5: StoredChance
    reads_tokens: StoredChance | None
    writes_positions: StoredChance | None
    mlp_reads_tokens: StoredChance | None
    mlp_reads_positions: StoredChance | None
    writes_tokens: StoredChance | None


class AttentionChances(SubspaceChances):
    """And for the kernels, by position alone and with tokens: queries paired with keys at random."""

    previous_token: StoredChance
    previous_token_with_tokens: StoredChance | None


class AttentionMetrics(TypedDict):
    k: int
    chance_share: float
    chance_top5: float
    shares: Shares
    top5: dict[Source, dict[Matrix, RawAndFolded]]
    positional_kernels: PositionalKernels
    token_kernels: TokenKernels | None
    query_bias: QueryBias | None
    chance: AttentionChances
    n_layers: int
    n_heads: int


class ShareRow(TypedDict):
    layer: int
    matrix: Matrix
    in_P: float | None
    in_P_folded: float | None
    in_E: float | None
    in_E_folded: float | None


def measure(inputs: Inputs) -> Measurements[AttentionMetrics]:
    """Measure how attention weights and MLP inputs overlap with P (and E), and what positions alone attend to."""
    weights, architecture = inputs.weights, inputs.architecture
    P = _positions(weights)
    n, d = P.shape
    check_width(P, weights["blocks.0.attn.q"])
    k = subspace_size(n, d)
    bases = _bases(weights, P)
    shares = _share_rows(weights, architecture.n_layer, bases, k)
    top5, panels = _layer_0(weights, bases)
    heads = positional_heads(weights, architecture, P)
    seen = kernels_with_tokens(inputs, P) if can_have_tokens(weights, architecture) else None
    bias, bias_table, bias_arrays = query_bias(weights, architecture)
    metrics = AttentionMetrics(
        k=k,
        chance_share=k / d,
        chance_top5=CORNER**2 / d,
        shares=_shares(shares, "E" in bases),
        top5=top5,
        positional_kernels={
            "first_query": first_query(n),
            "causal": architecture.causal,
            "uniform_at_1": heads.uniform_at_1,
            "heads": heads.described,
            "interval_of_best": heads.interval_of_best,
        },
        token_kernels=None if seen is None else seen.kernels,
        query_bias=bias,
        chance={
            **_chance(weights, k, d, "E" in bases),
            "previous_token": _on_random_keys(heads.unordered),
            "previous_token_with_tokens": None if seen is None else _on_random_keys(seen.unordered),
        },
        n_layers=architecture.n_layer,
        n_heads=architecture.n_head,
    )
    arrays = {**panels, **heads.near(), **_near(seen), **bias_arrays}
    return Measurements(metrics, _tables(metrics, shares) | bias_table, arrays)


def _positions(weights: Weights) -> Float[Array, "n d"]:
    check_positions(weights["position_embedding"])
    P = nonconstant_positions(weights)
    if P is None:
        raise NotApplicableError("The rows of P are alike, all or all but the first: no position to attend to.")
    return P


def _near(seen: Seen | None) -> dict[str, Array]:
    if seen is None:
        return {}
    return {
        "token_kernel_offsets": seen.offsets.astype(np.int32),
        "token_kernels": seen.near.astype(np.float32),
    }


def _chance(weights: Weights, k: int, d: int, with_tokens: bool) -> SubspaceChances:
    rng = np.random.default_rng(SEED)
    spectra = {
        name: np.linalg.svd(np.asarray(W if folded is None else folded, np.float64), compute_uv=False) ** 2
        for name, W, folded in _matrices(weights, 0)
    }

    def shares(*names: Matrix, sense: Sense = "at least") -> StoredChance | None:
        if any(name not in spectra or not spectra[name].any() for name in names):
            return None
        least = np.min([shares_in_subspace(spectra[name], k, d, DRAWS, rng) for name in names], axis=0)
        what = "matrices" if len(names) > 1 else "a matrix"
        return drawn(f"shares of {what} with the same spectrum, turned at random", least, sense)

    corners = np.min([top_overlaps(CORNER, d, DRAWS, rng) for _ in range(2)], axis=0)
    return {
        "top5": drawn("overlaps of five directions with five drawn at random", corners),
        "reads_tokens": shares("Q", "K", "V") if with_tokens else None,
        "writes_positions": shares("O"),
        "mlp_reads_tokens": shares("MLP in") if with_tokens else None,
        "mlp_reads_positions": shares("MLP in", sense="at most"),
        "writes_tokens": shares("O", sense="at most") if with_tokens else None,
    }


def _on_random_keys(unordered: Float[Array, " draws"]) -> StoredChance:
    return drawn("the best head's weights on keys drawn at random", unordered)


def _bases(weights: Weights, P: Float[Array, "n d"]) -> Bases:
    bases: Bases = {"P": right_singular_vectors(P, P.shape[1])}
    if "token_embedding" in weights:
        bases["E"] = right_singular_vectors(weights["token_embedding"], P.shape[1])
    return bases


def _matrices(weights: Weights, layer: int) -> Iterator[tuple[Matrix, Array, Array | None]]:
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
    def by_matrix(raw: Literal["in_P", "in_E"], folded: Literal["in_P_folded", "in_E_folded"]) -> ByMatrix:
        found: ByMatrix = {name: [] for name in ROLES}
        for row in rows:
            found[row["matrix"]].append({"layer": row["layer"], "raw": row[raw], "folded": row[folded]})
        return {name: layers for name, layers in found.items() if layers}

    return {"P": by_matrix("in_P", "in_P_folded"), "E": by_matrix("in_E", "in_E_folded") if with_tokens else None}


def _layer_0(
    weights: Weights, bases: Bases
) -> tuple[dict[Source, dict[Matrix, RawAndFolded]], dict[str, Float[Array, "a b"]]]:
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


def _tables(metrics: AttentionMetrics, shares: list[ShareRow]) -> dict[str, Table]:
    corners = [
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
            "Layer 0: squared overlap of the five leading directions with five of P or E", corners[0], corners
        ),
        "positional_kernels": table_of(
            "What each head attends to if it sees positions alone", Head, metrics["positional_kernels"]["heads"]
        ),
        **_token_table(metrics["token_kernels"]),
    }


def _token_table(kernels: TokenKernels | None) -> dict[str, Table]:
    if kernels is None:
        return {}
    title = f"What each head attends to with tokens on the positions ({kernels['draws']} draws)"
    return {"token_kernels": table_of(title, TokenHead, kernels["heads"])}
