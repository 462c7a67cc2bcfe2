"""A head's scores of positions from a few numbers: P's principal scores, and a small matrix for each head.

A layer reads P through its norm, so a query is z A with z_t = (s_t / sigma_t, |m| / sigma_t, 1): s_t are the scores
of position t on the leading principal components, m is the mean position, and sigma_t what the norm divides by, which
follows from s_t. The product of a query with a key is z_t M z_u, with one matrix M for each head. Averaging positions
averages s: what blurring does to a head follows without the weights.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.base.architecture import Architecture
from generators.findings.inputs import Weights
from generators.findings.positional import Rows, score_scale
from generators.maths.kernels import by_head

COMPONENTS = 24  # principal components used


@dataclass(frozen=True)
class Reduced:
    """P's scores (n, k), what of the norm follows from them, and a matrix (k + 2, k + 2) for each head.

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
        """Return z for positions with these scores."""
        ones = np.ones((len(scores), 1))
        if not self.width:
            return np.hstack([scores, self.mean_norm * ones, ones])
        squares = np.sum(scores**2, axis=1) + 2 * scores @ self.along_mean + self.mean_norm**2
        sigma = np.sqrt(np.maximum(squares, 0) / self.width + self.eps)[:, None]
        return np.hstack([scores / sigma, self.mean_norm / sigma, ones])


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
    heads = {"q": architecture.n_head, "k": architecture.n_kv_head or architecture.n_head}
    queries, keys = (
        _affine(read, weights[role], weights.get(f"{role}.bias"), heads[role[-1]])
        for role in (f"blocks.{layer}.attn.q", f"blocks.{layer}.attn.k")
    )
    keys = np.repeat(keys, len(queries) // len(keys), axis=0)
    return queries @ keys.transpose(0, 2, 1) * score_scale(architecture, queries.shape[-1], layer)


def _affine(
    read: Float[Array, "z d"], weight: Float[Array, "d a"], bias: Float[Array, " a"] | None, n_head: int
) -> Float[Array, "heads z d_head"]:
    """Return what each head makes of the basis; the bias goes with the last coordinate, which is always 1."""
    made = by_head(read, weight, None, n_head).astype(np.float64)
    if bias is not None:
        made[:, -1] += np.asarray(bias, np.float64).reshape(n_head, -1)
    return made
