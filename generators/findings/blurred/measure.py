import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.inputs import Inputs, NotApplicableError
from generators.findings.measured import Measurements, table_of
from generators.findings.positional import Rows, queries_and_keys, scoring, stream_of
from generators.findings.sizes import InStream, check_positions, check_width, nonconstant_positions
from generators.maths.curve import grouped
from generators.maths.kernels import Scoring, first_query

GROUP = 10  # positions averaged together, as Yedidia did
FIRST = (0,)  # row excluded from averaging
QUERIES = 64  # query positions, spread over those that count


class BlurredHeadRow(TypedDict):
    """One head's mean weight on the previous token by position alone: as they are, and averaged in groups."""

    layer: int
    head: int
    as_they_are: float
    in_groups: float


class BlurredMetrics(TypedDict):
    """Every head; `uniform` is the weight on the previous token under uniform attention."""

    group: int
    heads: list[BlurredHeadRow]
    uniform: float


def measure(inputs: Inputs) -> Measurements[BlurredMetrics]:
    """Measure every head's weight on the previous token by P alone, as it is and averaged in groups of ten.

    Row 0, which lies off the curve, is averaged with no others.
    """
    weights, architecture = inputs.weights, inputs.architecture
    check_positions(weights["position_embedding"])
    P = nonconstant_positions(weights)
    if P is None:
        raise NotApplicableError("The rows of P are alike, all or all but the first: there is nothing to blur.")
    check_width(InStream(weights)["position_embedding"], weights["blocks.0.attn.q"])
    queries = np.unique(np.linspace(max(1, first_query(len(P))), len(P) - 1, QUERIES).astype(np.intp))
    rows = _heads(inputs, P, queries)
    metrics = BlurredMetrics(
        group=GROUP,
        heads=rows,
        uniform=float(np.mean(1 / (queries + 1))) if architecture.causal else 1 / len(P),
    )
    title = "Weight on the previous token by position alone, as they are and averaged in groups of ten"
    return Measurements(metrics, {"heads": table_of(title, BlurredHeadRow, rows)})


def _heads(inputs: Inputs, P: Rows, at: Int[Array, " m"]) -> list[BlurredHeadRow]:
    weights, architecture = inputs.weights, inputs.architecture
    streams = [stream_of(weights, architecture, rows) for rows in (P, grouped(P, GROUP, FIRST))]
    rows: list[BlurredHeadRow] = []
    for layer in range(architecture.n_layer):
        scored = scoring(weights, architecture, layer, len(P))
        both = [queries_and_keys(weights, architecture, stream, layer) for stream in streams]
        for head in range(architecture.n_head):
            exact, blurred = (_previous(queries[head][at], keys[head], at, scored, head) for queries, keys in both)
            rows.append({"layer": layer, "head": head, "as_they_are": exact, "in_groups": blurred})
    return rows


def _previous(
    queries: Float[Array, "m a"], keys: Float[Array, "n a"], at: Int[Array, " m"], scored: Scoring, head: int
) -> float:
    from scipy.special import softmax

    offsets = at[:, None] - np.arange(len(keys))
    attention = softmax(scored.of((queries @ keys.T)[None], offsets, head)[0], axis=1)
    return float(attention[np.arange(len(at)), at - 1].mean())
