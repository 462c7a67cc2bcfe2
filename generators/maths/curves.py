"""The statistics of shape of many surrogate curves at once, a stack of them at a time.

The numbers are those of `curve_statistics`, in half the time: for such small matrices most of the time is spent on
calls. Special cases (an outlier position, too few components, more channels than rows) are measured one by one.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.maths import curve, turning
from generators.maths.curve_statistics import OF_SHAPE, Name, statistics

STACK_BYTES = 2**22  # bytes of curves measured together: fits the processor's cache
Stack = Float[Array, "draws n c"]
Found = dict[Name, Float[Array, " draws"]]


def shape_statistics(curves: Iterable[Float[Array, "n d"]]) -> Found:
    """Return the statistics `OF_SHAPE` of every curve, those that their length allows."""
    found = [_measured(np.stack(stack)) for stack in _stacks(curves)]
    return {name: np.concatenate([values[name] for values in found]) for name in found[0]}


def _stacks(curves: Iterable[Float[Array, "n d"]]) -> Iterator[list[Float[Array, "n d"]]]:
    stack: list[Float[Array, "n d"]] = []
    for rows in curves:
        if stack and (rows.shape != stack[0].shape or len(stack) * rows.nbytes >= STACK_BYTES):
            yield stack
            stack = []
        stack.append(rows)
    if stack:
        yield stack


def _measured(curves: Stack) -> Found:
    n, channels = curves.shape[1:]
    alone = np.ones(len(curves), bool)
    found: Found = {}
    if turning.COMPONENTS <= channels < n:
        scores, energies, plain = _scores(curves)
        alone = ~(plain & ~_interrupted(curves))
        found = {"explained_variance_3d": _three(curves[:, 1:]), "winding": _winding(scores, energies)}
        gains = [_gain(scores, k) for k in turning.offsets(n) if k in turning.JUDGED_OFFSETS]
        if gains:
            found["median_gain"] = np.median(gains, axis=0)
    for draw in np.flatnonzero(alone):
        for name, values in statistics(curves[draw], OF_SHAPE).items():
            found.setdefault(name, np.empty(len(curves)))[draw] = values[0]
    return found


def _interrupted(curves: Stack) -> Array:
    steps = np.linalg.norm(np.diff(curves, axis=1), axis=2)
    ends = np.full((len(curves), 1), np.inf)
    nearer = np.minimum(np.hstack([steps, ends]), np.hstack([ends, steps]))
    return np.asarray((nearer > curve.OUTLIER_FACTOR * np.median(nearer, axis=1, keepdims=True)).any(axis=1))


def _gram(curves: Stack) -> tuple[Stack, Float[Array, "draws c c"]]:
    centred = curves - curves.mean(axis=1, keepdims=True)
    return centred, centred.mT @ centred


def _three(curves: Stack) -> Float[Array, " draws"]:
    energies = np.linalg.eigvalsh(_gram(curves)[1])
    whole = energies.sum(axis=1)
    return np.divide(energies[:, -3:].sum(axis=1), whole, out=np.zeros_like(whole), where=whole > 0)


def _scores(curves: Stack) -> tuple[Float[Array, "draws n k"], Float[Array, " draws"], Array]:
    """Return leading scores, the energy of each curve, and which curves have as many components as are looked at."""
    centred, gram = _gram(curves)
    energies, vectors = np.linalg.eigh(gram)
    plain = energies[:, -turning.COMPONENTS] > curve.NO_VARIANCE * energies[:, -1]
    return centred @ vectors[:, :, : -turning.COMPONENTS - 1 : -1], np.trace(gram, axis1=1, axis2=2), plain


def _rotations(source: Stack, target: Stack) -> Float[Array, "draws c c"]:
    left, _, right = np.linalg.svd(source.mT @ target)
    return left @ right


def _winding(scores: Stack, energies: Float[Array, " draws"]) -> Float[Array, " draws"]:
    axes = np.zeros((len(scores), scores.shape[2], scores.shape[2]))
    for draw, rotation in enumerate(_rotations(scores[:, :-1], scores[:, 1:])):
        for plane, pair in enumerate(turning.rotation_planes(rotation)):
            axes[draw, :, 2 * plane : 2 * plane + 2] = pair
    points = scores @ axes
    x, y = points[:, :, 0::2], points[:, :, 1::2]
    steps = np.diff(np.arctan2(y, x), axis=1)
    steps -= turning.FULL_TURN * np.round(steps / turning.FULL_TURN)
    net, summed = np.abs(steps.sum(axis=1)), np.abs(steps).sum(axis=1)
    steadiness = np.divide(net, summed, out=np.zeros_like(net), where=summed > 0)
    share = np.einsum("ijk,ijk->ik", x, x) + np.einsum("ijk,ijk->ik", y, y)
    share = np.divide(share, energies[:, None], out=np.zeros_like(share), where=energies[:, None] > 0)
    return np.asarray((share * net / turning.FULL_TURN * steadiness).max(axis=1, initial=0.0))


def _gain(scores: Stack, k: int) -> Float[Array, " draws"]:
    """Return the gain of looking back k rows by a rotation of one half of the curve, tested on the other."""
    n = scores.shape[1]
    half = (n - k) // 2
    sides = scores[:, :half], scores[:, half + k :]
    rotated, identity, spread = np.zeros((3, len(scores)))
    for fitted, tested in (sides[::-1], sides):
        source, target = tested[:, k:], tested[:, :-k]
        guess = source @ _rotations(fitted[:, k:], fitted[:, :-k])
        rotated += _squares(target - guess)
        identity += _squares(target - source)
        spread += _squares(target - target.mean(axis=1, keepdims=True))
    moves = identity > turning.NO_RESIDUAL * spread
    return 1 - np.divide(rotated, identity, out=np.ones_like(identity), where=moves)


def _squares(away: Stack) -> Float[Array, " draws"]:
    return np.einsum("ijk,ijk->i", away, away)
