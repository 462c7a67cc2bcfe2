from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.blurred.reduced import Reduced, reduce, why_not
from generators.findings.inputs import Inputs, NotApplicableError
from generators.findings.measured import Measurements, table_of
from generators.findings.nonconstant_rows import nonconstant_positions
from generators.findings.positional import Rows, queries_and_keys, scoring, stream_of
from generators.findings.sizes import check_positions, check_width
from generators.maths.curve import grouped
from generators.maths.kernels import Scoring, first_query

GROUP = 10  # positions averaged together, as Yedidia did
FIRST = (0,)  # row excluded from averaging
QUERIES = 64  # query positions, spread over those that count


class BlurredHeadRow(TypedDict):
    """One head's mean weight on the previous token by position alone: as they are, and averaged in groups.

    `error` and `error_in_groups` are how much of its attention the reduction puts elsewhere, on average over queries;
    None where a model can't be reduced.
    """

    layer: int
    head: int
    as_they_are: float
    in_groups: float
    error: float | None
    error_in_groups: float | None


class Reduction(TypedDict):
    """How many components are used, their share of P's variance, and the median and largest error of heads."""

    components: int
    variance: float
    median_error: float
    largest_error: float


class BlurredMetrics(TypedDict):
    """Every head, and the reduction; `uniform` is the weight on the previous token under uniform attention."""

    group: int
    queries: int
    causal: bool
    heads: list[BlurredHeadRow]
    uniform: float
    reduction: Reduction | None
    why_not: str | None
    n_positions: int


def measure(inputs: Inputs) -> Measurements[BlurredMetrics]:
    """Measure every head's weight on the previous token by P alone, as it is and averaged in groups of ten.

    Row 0, which lies off the curve, is averaged with no others.

    Reads `position_embedding` (n, d), `blocks.*.attn.q` and `blocks.*.attn.k` (d, m) with their norms and biases.
    """
    weights, architecture = inputs.weights, inputs.architecture
    check_positions(weights["position_embedding"])
    P = nonconstant_positions(weights)
    if P is None:
        raise NotApplicableError("The rows of P are alike, all or all but the first: there is nothing to blur.")
    check_width(P, weights["blocks.0.attn.q"])
    reason = why_not(weights, architecture)
    arrays, variance = ({}, 0.0) if reason else _reduced(inputs, P)
    if not all(np.isfinite(array).all() for array in arrays.values()):
        reason, arrays = "its numbers are too large for the half precision in which a page has them", {}
    reduced = None if reason else Reduced.of_arrays(arrays)
    queries = np.unique(np.linspace(max(1, first_query(len(P))), len(P) - 1, QUERIES).astype(np.intp))
    rows = _heads(inputs, P, queries, reduced)
    metrics = BlurredMetrics(
        group=GROUP,
        queries=len(queries),
        causal=architecture.causal,
        heads=rows,
        uniform=_previous(_uniform(len(P), queries, architecture.causal), queries),
        reduction=None if reduced is None else _reduction(reduced, variance, rows),
        why_not=reason,
        n_positions=len(P),
    )
    title = "Weight on the previous token by position alone, as they are and averaged in groups of ten"
    return Measurements(metrics, {"heads": table_of(title, BlurredHeadRow, rows)}, arrays)


def looks(
    queries: Float[Array, "m a"], keys: Float[Array, "n a"], at: Int[Array, " m"], scored: Scoring, head: int = 0
) -> Float[Array, "m n"]:
    from scipy.special import softmax

    offsets = at[:, None] - np.arange(len(keys))
    return np.asarray(softmax(scored.of((queries @ keys.T)[None], offsets, head)[0], axis=1))


def _heads(inputs: Inputs, P: Rows, at: Int[Array, " m"], reduced: Reduced | None) -> list[BlurredHeadRow]:
    weights, architecture = inputs.weights, inputs.architecture
    streams = [stream_of(weights, architecture, rows) for rows in (P, grouped(P, GROUP, FIRST))]
    z = [] if reduced is None else [reduced.coordinates(grouped(reduced.scores, size, FIRST)) for size in (1, GROUP)]
    rows: list[BlurredHeadRow] = []
    for layer in range(architecture.n_layer):
        scored = scoring(weights, architecture, layer, len(P))
        both = [queries_and_keys(weights, architecture, stream, layer) for stream in streams]
        for head in range(architecture.n_head):
            exact = [looks(queries[head][at], keys[head], at, scored, head) for queries, keys in both]
            errors: list[Any] = [None, None]
            if reduced is not None:
                matrix = reduced.heads[layer * architecture.n_head + head]
                near = [looks(one[at] @ matrix, one, at, scored, head) for one in z]
                errors = [float(np.abs(a - b).sum(axis=1).mean() / 2) for a, b in zip(exact, near, strict=True)]
            rows.append(
                {
                    "layer": layer,
                    "head": head,
                    "as_they_are": _previous(exact[0], at),
                    "in_groups": _previous(exact[1], at),
                    "error": errors[0],
                    "error_in_groups": errors[1],
                }
            )
    return rows


def _previous(attention: Float[Array, "m n"], at: Int[Array, " m"]) -> float:
    return float(attention[np.arange(len(at)), at - 1].mean())


def _uniform(n: int, at: Int[Array, " m"], causal: bool) -> Float[Array, "m n"]:
    nothing = np.zeros((n, 1))
    return looks(nothing[at], nothing, at, Scoring(causal))


def _reduced(inputs: Inputs, P: Rows) -> tuple[dict[str, Array], float]:
    reduced, variance = reduce(inputs.weights, inputs.architecture, P)
    return reduced.arrays(), variance


def _reduction(reduced: Reduced, variance: float, rows: list[BlurredHeadRow]) -> Reduction:
    errors = [max(row["error"] or 0.0, row["error_in_groups"] or 0.0) for row in rows]
    return {
        "components": reduced.scores.shape[1],
        "variance": variance,
        "median_error": float(np.median(errors)),
        "largest_error": max(errors),
    }
