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


class Treatment(NamedTuple):
    final_norm: bool
    position: int | None


@dataclass(frozen=True)
class FinalNorm:
    """A model's final norm: of layer norms or of root mean squares."""

    gain: Float[Array, " d"]
    bias: Float[Array, " d"] | None
    centres: bool
    eps: float


@dataclass(frozen=True)
class Ways:
    """All that may stand between a token's two embeddings: positions that are added, and the final norm."""

    positions: tuple[int, ...]
    rows: Float[Array, "positions d"]  # rows of these positions
    norm: FinalNorm | None
    scale: float  # scale of tokens before positions are added

    @property
    def treatments(self) -> list[Treatment]:
        places: tuple[int | None, ...] = (None, *self.positions)
        return [Treatment(norm, place) for norm in ((False, True) if self.norm else (False,)) for place in places]


def ways_of(inputs: Inputs, d: int) -> Ways:
    """Return the ways of a model: its first position, the next, one in the middle and the last; its final norm.

    What has another width than the embeddings is left out, since something stands between the two.
    """
    P, arch = nonconstant_positions(inputs.weights), inputs.architecture
    if P is None or P.shape[1] != d:
        P = np.zeros((0, d), np.float32)
    places = sorted({place for place in (0, 1, len(P) // 2, len(P) - 1) if 0 <= place < len(P)})
    gain, bias = (inputs.weights.get(f"final_norm.{name}") for name in ("gain", "bias"))
    norm = None
    if gain is not None and len(gain) == d:
        norm = FinalNorm(gain, bias, arch.norm == "layer", arch.norm_eps)
    return Ways(tuple(places), np.asarray(P[places], np.float32), norm, arch.embedding_scale)


class Answer(NamedTuple):
    """Which key every query yields, and whether that is its own or one as good."""

    best: Int[Array, " m"]
    itself: Bool[Array, " m"]


def answers(queries: Rows, own: Int[Array, " m"], keys: Float[Array, "V d"], ways: Ways) -> list[Answer]:
    """Return for every treatment which key has the largest product with each query; `own` is the place of its own.

    Two matrix products serve all: a position or a norm adds a few outer products of numbers per query and per key.
    """
    scaled = queries.astype(np.float32) * np.float32(ways.scale)
    sides = [_queries_side(scaled, treatment, ways) for treatment in ways.treatments]
    shape = (len(sides), len(queries))
    best, top, mine = np.zeros(shape, np.int64), np.full(shape, -np.inf), np.zeros(shape)
    for begin in range(0, len(keys), BLOCK):
        block = keys[begin : begin + BLOCK].astype(np.float32)
        here = np.flatnonzero((own >= begin) & (own < begin + len(block)))
        products = {False: scaled @ block.T}
        if ways.norm is not None:
            products[True] = scaled @ (block * ways.norm.gain.astype(np.float32)).T
        for i, treatment in enumerate(ways.treatments):
            scores = sides[i] @ _keys_side(block, treatment, ways)
            scores += products[treatment.final_norm]
            mine[i, here] = scores[here, own[here] - begin]
            at = scores.argmax(axis=1)
            found = scores[np.arange(len(at)), at]
            better = found > top[i]
            best[i, better], top[i, better] = at[better] + begin, found[better]
    close = top - mine <= ROUNDING * np.maximum(np.abs(top), np.abs(mine))
    return [Answer(np.where(close[i], own, best[i]), close[i]) for i in range(len(sides))]


def _queries_side(scaled: Rows, treatment: Treatment, ways: Ways) -> Float[Array, "m 3"]:
    """Return what of each query multiplies what of each key: (1, -centre, spread) in the products times spread."""
    one = np.ones(len(scaled))
    if not treatment.final_norm or ways.norm is None:
        return np.stack([one, 0 * one, 0 * one], axis=1).astype(np.float32)
    rows = scaled + _added(treatment, ways)
    centre = rows.mean(axis=1, dtype=np.float64) if ways.norm.centres else np.zeros(len(rows))
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64) / rows.shape[1] - centre**2
    spread = np.sqrt(np.clip(squares, 0, None) + ways.norm.eps)
    return np.stack([one, -centre, spread], axis=1).astype(np.float32)


def _keys_side(block: Float[Array, "b d"], treatment: Treatment, ways: Ways) -> Float[Array, "3 b"]:
    """Return a key's product with the position, its sum, and its product with the norm's bias."""
    added, nothing = _added(treatment, ways), np.zeros(len(block), np.float32)
    if not treatment.final_norm or ways.norm is None:
        return np.stack([block @ added, nothing, nothing])
    gain = ways.norm.gain.astype(np.float32)
    biased = nothing if ways.norm.bias is None else block @ ways.norm.bias.astype(np.float32)
    return np.stack([block @ (gain * added), block @ gain, biased])


def _added(treatment: Treatment, ways: Ways) -> Float[Array, " d"]:
    if treatment.position is None:
        return np.zeros(ways.rows.shape[1], np.float32)
    return ways.rows[ways.positions.index(treatment.position)]


def variants(
    of_all: list[Answer],
    of_some: list[Answer],
    gaussian: list[Answer],
    ways: Ways,
    vocabulary: Vocabulary | None,
) -> list[YieldVariant]:
    """Return every treatment in numbers: what some tokens yield of all, what tokens yield that are left to
    themselves, and what as many Gaussian ones yield.
    """
    rows = []
    for treatment, found, some, drawn in zip(ways.treatments, of_all, of_some, gaussian, strict=True):
        others = Counter(found.best[~found.itself].tolist()).most_common(1)
        token, count = others[0] if others else (None, 0)
        rows.append(
            YieldVariant(
                final_norm=treatment.final_norm,
                position=treatment.position,
                self_share=float(found.itself.mean()),
                most_yielded=token,
                readable=None if token is None or vocabulary is None else vocabulary.readable[token],
                absorbed=count / len(found.best),
                same_number=float(some.itself.mean()),
                gaussian=float(drawn.itself.mean()),
            )
        )
    return rows
