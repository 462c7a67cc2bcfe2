"""Bilinear forms by which heads compare two positions, on the leading components of the position curve.

A head scores query row x_i against key row x_j by x_i A x_j, where A = W_Q W_K^T with the gains of the norms before
it folded in. On scores of unit length along k components, A becomes a (k, k) form c; everything here is read from it.
"""

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.maths.rotations import frames

Forms = Float[Array, "*draws heads k k"]
# Queries and keys of all heads with gains folded in, stream side first.
Heads = tuple[Float[Array, "heads d d_head"], Float[Array, "heads d d_head"]]


def between(heads: Heads, left: Float[Array, "d k"], right: Float[Array, "d k"]) -> Float[Array, "heads k k"]:
    """Return every head's form between directions of the stream: queries along `left`, keys along `right`."""
    queries, keys = heads
    return np.matmul(left.T @ queries, (right.T @ keys).transpose(0, 2, 1))


def on_curve(forms: Forms, lengths: Float[Array, " k"]) -> Forms:
    """Return forms between components of these lengths as forms between components of length 1."""
    return lengths[:, None] * forms * lengths


def sizes(c: Forms) -> Float[Array, "*draws heads"]:
    """Return how much the scores of each head vary over all pairs of positions (Frobenius norm)."""
    return np.linalg.norm(c, axis=(-2, -1))


def plane_energy(c: Forms) -> Float[Array, "*draws heads"]:
    """Return the part of each head's squared size that lies in the two leading components."""
    return np.sum(c[..., :2, :2] ** 2, axis=(-2, -1))


def rotation_energy(c: Forms) -> Float[Array, "*draws heads"]:
    """Return, in the plane, the energy of the form's rotation part; a reflection has none."""
    return ((c[..., 0, 0] + c[..., 1, 1]) ** 2 + (c[..., 1, 0] - c[..., 0, 1]) ** 2) / 2


def effects(c: Forms) -> Float[Array, "*draws 2"]:
    """Return the values that claims judge: largest size over the median; share in the plane of all heads together."""
    return _effects(sizes(c), plane_energy(c))


def _effects(size: Float[Array, "*draws heads"], plane: Float[Array, "*draws heads"]) -> Float[Array, "*draws 2"]:
    median = np.median(size, axis=-1)
    largest = np.divide(size.max(axis=-1), median, out=np.full_like(median, np.inf), where=median > 0)
    return np.stack([largest, plane.sum(axis=-1) / np.sum(size**2, axis=-1)], axis=-1)


def turned_effects(
    heads: Heads, lengths: Float[Array, " k"], draws: int, rng: np.random.Generator, *, together: bool
) -> Float[Array, "draws 2"]:
    """Return the same for a curve of the same lengths in random directions.

    Turned `together`, queries and keys see the same random directions: a head that compares any direction with itself
    still does. Otherwise each sees its own, and what they have in common is lost.
    """
    d, k = heads[0].shape[1], len(lengths)
    found = []
    for frame in frames(d, k, draws, rng):
        other = frame if together else next(iter(frames(d, k, 1, rng)))
        found.append(on_curve(between(heads, frame.astype(np.float64), other.astype(np.float64)), lengths))
    return effects(np.stack(found))


def resampled_effects(
    forms: Float[Array, "heads k k"], scores: Float[Array, "rows k"], weights: Float[Array, "draws rows"]
) -> Float[Array, "draws 2"]:
    """Return the same for every resampling of positions; the main plane stays that of all positions."""
    # For scores X with second moments M = X^T X, the squared size of X B X^T is tr(B M B^T M). In a resampling the
    # components correlate, so what the others read along the plane counts as the plane's: `onto` projects on it.
    moments = _moments(scores, weights)
    plane = moments[:, :2, :2]
    onto = np.linalg.solve(plane, moments[:, :2, :])[:, None]
    within = onto @ forms @ onto.transpose(0, 1, 3, 2)
    return _effects(np.sqrt(_energy(forms, moments)), _energy(within, plane))


def _moments(scores: Float[Array, "rows k"], weights: Float[Array, "draws rows"]) -> Float[Array, "draws k k"]:
    k, total = scores.shape[1], weights.sum(axis=1)[:, None]
    products = (scores[:, :, None] * scores[:, None, :]).reshape(len(scores), -1)
    mean = weights @ scores / total
    return (weights @ products / total).reshape(-1, k, k) - mean[:, :, None] * mean[:, None, :]


def _energy(
    forms: Float[Array, "*draws heads k k"], moments: Float[Array, "draws k k"]
) -> Float[Array, "draws heads"]:
    M = moments[:, None]
    products = (forms @ M) * (M @ forms)  # tr(B M B^T M) is the sum of these
    return np.clip(products.sum(axis=(-2, -1)), 0, None)


def profiles(
    forms: Float[Array, "heads k k"], scores: Float[Array, "rows k"], offsets: Int[Array, " offsets"]
) -> Float[Array, "heads offsets"]:
    """Return each head's mean score by offset, in tokens from the query back to the key; negative ones lie ahead."""
    n = len(scores)
    lagged = [scores[abs(o) :].T @ scores[: n - abs(o)] / (n - abs(o)) for o in offsets]
    moments = np.stack([one.T if o < 0 else one for o, one in zip(offsets, lagged, strict=True)])
    return np.einsum("hkl,okl->ho", forms, moments)
