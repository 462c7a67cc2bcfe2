from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.inputs import Inputs, Vocabulary
from generators.findings.sizes import nonconstant_positions

BLOCK = 1024  # keys per block
ROUNDING = 1e-5  # relative; float32 products that differ by less count as equal
Rows = Float[Array, "m d"]


class YieldVariant(TypedDict):
    """What tokens yield with the final norm or without, at a position or at none.

    `self_share` is that of some tokens among all; `absorbed` the share of them that yield the one token, not
    themselves, that most do (`readable` is its name). `same_number` is the self share of other tokens of the model
    left to themselves, and `gaussian` that of as many Gaussian ones.
    """

    final_norm: bool
    position: int | None
    self_share: float
    most_yielded: int | None
    readable: str | None
    absorbed: float
    same_number: float
    gaussian: float


@dataclass(frozen=True)
class FinalNorm:
    """A model's final norm: of layer norms or of root mean squares."""

    gain: Float[Array, " d"]
    bias: Float[Array, " d"] | None
    centres: bool
    eps: float


@dataclass(frozen=True)
class Way:
    """What stands between a token's two embeddings: a position, of which the row is added, and the final norm."""

    norm: FinalNorm | None
    position: int | None
    added: Float[Array, " d"]


def ways_of(inputs: Inputs, d: int) -> list[Way]:
    """Return the ways of a model: no position, its first, the next, one in the middle, the last; its final norm.

    What has another width than the embeddings is left out, since something stands between the two.
    """
    P, arch = nonconstant_positions(inputs.weights), inputs.architecture
    rows: dict[int | None, Float[Array, " d"]] = {None: np.zeros(d, np.float32)}
    if P is not None and P.shape[1] == d:
        rows |= {place: P[place].astype(np.float32) for place in sorted({0, 1, len(P) // 2, len(P) - 1})}
    gain, bias = (inputs.weights.get(f"final_norm.{name}") for name in ("gain", "bias"))
    norms: list[FinalNorm | None] = [None]
    if gain is not None and len(gain) == d:
        norms.append(FinalNorm(gain, bias, arch.norm == "layer", arch.norm_eps))
    return [Way(norm, position, added) for norm in norms for position, added in rows.items()]


class Answer(NamedTuple):
    """Which key every query yields, and whether that is its own or one as good."""

    best: Int[Array, " m"]
    itself: Bool[Array, " m"]


def answers(queries: Rows, own: Int[Array, " m"], keys: Float[Array, "V d"], ways: list[Way]) -> list[Answer]:
    """Return for every way which key has the largest product with each query; `own` is the place of its own.

    Two matrix products serve all: a position or a norm adds a few outer products of numbers per query and per key.
    """
    sides, norm = [_queries_side(queries, way) for way in ways], ways[-1].norm
    shape = (len(sides), len(queries))
    best, top, mine = np.zeros(shape, np.int64), np.full(shape, -np.inf), np.zeros(shape)
    for begin in range(0, len(keys), BLOCK):
        block = keys[begin : begin + BLOCK].astype(np.float32)
        here = np.flatnonzero((own >= begin) & (own < begin + len(block)))
        plain = queries @ block.T
        normed = plain if norm is None else queries @ (block * norm.gain.astype(np.float32)).T
        for i, way in enumerate(ways):
            scores = sides[i] @ _keys_side(block, way)
            scores += plain if way.norm is None else normed
            mine[i, here] = scores[here, own[here] - begin]
            at = scores.argmax(axis=1)
            found = scores[np.arange(len(at)), at]
            better = found > top[i]
            best[i, better], top[i, better] = at[better] + begin, found[better]
    close = top - mine <= ROUNDING * np.maximum(np.abs(top), np.abs(mine))
    return [Answer(np.where(close[i], own, best[i]), close[i]) for i in range(len(sides))]


def _queries_side(queries: Rows, way: Way) -> Float[Array, "m 3"]:
    """Return what of each query multiplies what of each key: (1, -centre, spread) in the products times spread."""
    one = np.ones(len(queries))
    if way.norm is None:
        return np.stack([one, 0 * one, 0 * one], axis=1).astype(np.float32)
    rows = queries + way.added
    centre = rows.mean(axis=1, dtype=np.float64) if way.norm.centres else np.zeros(len(rows))
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64) / rows.shape[1] - centre**2
    spread = np.sqrt(np.clip(squares, 0, None) + way.norm.eps)
    return np.stack([one, -centre, spread], axis=1).astype(np.float32)


def _keys_side(block: Float[Array, "b d"], way: Way) -> Float[Array, "3 b"]:
    """Return a key's product with the position, its sum, and its product with the norm's bias."""
    nothing = np.zeros(len(block), np.float32)
    if way.norm is None:
        return np.stack([block @ way.added, nothing, nothing])
    gain = way.norm.gain.astype(np.float32)
    biased = nothing if way.norm.bias is None else block @ way.norm.bias.astype(np.float32)
    return np.stack([block @ (gain * way.added), block @ gain, biased])


def variants(
    of_all: list[Answer],
    of_some: list[Answer],
    gaussian: list[Answer],
    ways: list[Way],
    vocabulary: Vocabulary | None,
) -> list[YieldVariant]:
    """Return every way in numbers: what some tokens yield of all, what tokens yield that are left to themselves, and
    what as many Gaussian ones yield.
    """
    rows = []
    for way, found, some, drawn in zip(ways, of_all, of_some, gaussian, strict=True):
        others = Counter(found.best[~found.itself].tolist()).most_common(1)
        token, count = others[0] if others else (None, 0)
        rows.append(
            YieldVariant(
                final_norm=way.norm is not None,
                position=way.position,
                self_share=float(found.itself.mean()),
                most_yielded=token,
                readable=None if token is None or vocabulary is None else vocabulary.readable[token],
                absorbed=count / len(found.best),
                same_number=float(some.itself.mean()),
                gaussian=float(drawn.itself.mean()),
            )
        )
    return rows
