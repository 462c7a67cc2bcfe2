from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.architecture import Architecture
from generators.findings.inputs import Inputs, NotApplicableError, Weights
from generators.findings.measured import Measurements, table_of
from generators.findings.positional import Rows, queries_and_keys, score_scale, scoring, stream_of
from generators.findings.sizes import InStream, check_positions, check_width, nonconstant_positions
from generators.maths.curve import grouped
from generators.maths.kernels import Scoring, by_head, first_query

GROUP = 10  # positions averaged together, as Yedidia did
FIRST = (0,)  # row excluded from averaging
QUERIES = 64  # query positions, spread over those that count
COMPONENTS = 24  # principal components used


@dataclass(frozen=True)
class Reduced:
    """A head's scores of positions from a few numbers: P's principal scores (n, k), and a (k + 2, k + 2) matrix M.

    A layer reads P through its norm, so a query is z A with z_t = (s_t / sigma_t, |m| / sigma_t, 1): s_t are the
    scores of position t on the leading principal components, m is the mean position, and sigma_t what the norm
    divides by, which follows from s_t. A query times a key is z_t M z_u. Averaging positions averages s:
    what blurring does to a head follows without the weights.

    `along_mean` is the mean position along each component, `mean_norm` its length; `width` is 0 where no norm is read
    through.
    """

    scores: Float[Array, "n k"]
    along_mean: Float[Array, " k"]
    mean_norm: float
    width: int
    eps: float
    heads: Float[Array, "all_heads z z"]

    def arrays(self) -> dict[str, Array]:
        """Return what a browser needs, in half precision; infinite where that is too small for a number."""
        with np.errstate(over="ignore"):
            return {
                "reduced_scores": self.scores.astype(np.float16),
                "reduced_heads": self.heads.astype(np.float16),
                "reduced_along_mean": self.along_mean.astype(np.float32),
                "reduced_norm": np.array([self.mean_norm, self.width, self.eps], np.float32),
            }

    @classmethod
    def of_arrays(cls, arrays: dict[str, Array]) -> "Reduced":
        mean_norm, width, eps = arrays["reduced_norm"].astype(np.float64).tolist()
        scores, heads, along = (
            arrays[f"reduced_{name}"].astype(np.float64) for name in ("scores", "heads", "along_mean")
        )
        return cls(scores, along, mean_norm, int(width), eps, heads)

    def coordinates(self, scores: Float[Array, "n k"]) -> Float[Array, "n z"]:
        ones = np.ones((len(scores), 1))
        if not self.width:
            return np.hstack([scores, self.mean_norm * ones, ones])
        squares = np.sum(scores**2, axis=1) + 2 * scores @ self.along_mean + self.mean_norm**2
        sigma = np.sqrt(np.maximum(squares, 0) / self.width + self.eps)[:, None]
        return np.hstack([scores / sigma, self.mean_norm / sigma, ones])


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
    """
    weights, architecture = inputs.weights, inputs.architecture
    check_positions(weights["position_embedding"])
    P = nonconstant_positions(weights)
    if P is None:
        raise NotApplicableError("The rows of P are alike, all or all but the first: there is nothing to blur.")
    check_width(InStream(weights)["position_embedding"], weights["blocks.0.attn.q"])
    reason = why_not(weights, architecture)
    found, variance = (None, 0.0) if reason else reduce(weights, architecture, P)
    arrays = {} if found is None else found.arrays()
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
        uniform=float(np.mean(1 / (queries + 1))) if architecture.causal else 1 / len(P),
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


def _reduction(reduced: Reduced, variance: float, rows: list[BlurredHeadRow]) -> Reduction:
    errors = [max(row["error"] or 0.0, row["error_in_groups"] or 0.0) for row in rows]
    return {
        "components": reduced.scores.shape[1],
        "variance": variance,
        "median_error": float(np.median(errors)),
        "largest_error": max(errors),
    }


def why_not(weights: Weights, architecture: Architecture) -> str | None:
    """Return why a model's heads can't be reduced to matrices that positions alone multiply, None where they can."""
    if any(architecture.rotary or ()):
        return "its queries and keys are turned by their position as well"
    if architecture.slopes or architecture.buckets is not None:
        return "its scores have a bias by distance as well"
    if architecture.score_cap is not None or any(window is not None for window in architecture.windows or ()):
        return "its scores are capped, or its heads see a window of positions only"
    if "embedding_norm.gain" in weights:
        return "a norm stands between its positions and its layers"
    if len({f"blocks.{layer}.ln1.gain" in weights for layer in range(architecture.n_layer)}) > 1:
        return "some of its layers read through a norm and others don't"
    return None


def reduce(weights: Weights, architecture: Architecture, P: Rows) -> tuple[Reduced, float]:
    """Return the reduction of a model for which `why_not` has no reason, and the share of variance that it keeps."""
    normed = "blocks.0.ln1.gain" in weights
    rows = P - P.mean(axis=1, keepdims=True) if normed and architecture.norm != "rms" else P
    mean = rows.mean(axis=0)
    u, s, vt = np.linalg.svd(rows - mean, full_matrices=False)
    k = min(COMPONENTS, len(s))
    length = float(np.linalg.norm(mean))
    basis = np.vstack([vt[:k], mean / length if length else mean])
    reduced = Reduced(
        u[:, :k] * s[:k],
        vt[:k] @ mean,
        length,
        P.shape[1] if normed else 0,
        architecture.norm_eps,
        np.concatenate([_of_layer(weights, architecture, basis, layer) for layer in range(architecture.n_layer)]),
    )
    return reduced, float(np.sum(s[:k] ** 2) / np.sum(s**2)) if s.any() else 1.0


def _of_layer(
    weights: Weights, architecture: Architecture, basis: Float[Array, "k1 d"], layer: int
) -> Float[Array, "heads z z"]:
    norm, d = f"blocks.{layer}.ln1", basis.shape[1]
    gain, shift = weights.get(f"{norm}.gain"), weights.get(f"{norm}.bias")
    read = np.vstack([basis if gain is None else basis * gain, np.zeros(d) if shift is None else shift])

    def affine(name: str, n_head: int) -> Float[Array, "heads z d_head"]:
        """Return what each head makes of the basis; the bias goes with the last coordinate, which is always 1."""
        role = f"blocks.{layer}.attn.{name}"
        made = by_head(read, weights[role], None, n_head).astype(np.float64)
        if f"{role}.bias" in weights:
            made[:, -1] += np.asarray(weights[f"{role}.bias"], np.float64).reshape(n_head, -1)
        return made

    queries = affine("q", architecture.n_head)
    keys = affine("k", architecture.n_kv_head or architecture.n_head)
    keys = np.repeat(keys, len(queries) // len(keys), axis=0)
    return queries @ keys.transpose(0, 2, 1) * score_scale(architecture, queries.shape[-1], layer)
