"""Stand-ins that meet a claim's conditions, with what the claim is about drawn at random.

Some claims ask for something that untrained models lack: rotations, a head that copies, a channel that carries
position. Here it is planted, and what the claim says of it is drawn alike for it and for everything beside it.
Costs are drawn so that a few parts have most of the whole: only then can one part reach a threshold by accident.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.special import softmax

from generators.base.architecture import Rotary
from generators.findings import anchor, distance, induction, position_line, rogue, rotary_use, rotation_check, stream
from generators.findings.contract import Finding
from generators.findings.inputs import Inputs
from generators.findings.measured import Measurements
from generators.tokens.frequency import TokenFrequency
from tests import synthetic
from tests.findings.by_reference import attention_to
from tests.findings.stand_in import StandIn, measure_run

Array = np.ndarray
Verdicts = dict[str, str]
D, V = 128, 400  # channels and tokens
SPARSE = 0.25  # shape of the gamma distribution that amounts are drawn from
UNEVEN = 1 / np.arange(1, D + 1)  # variances of directions


def amounts(rng: np.random.Generator, count: int) -> Array:
    """Return shares of a whole, drawn alike for all parts; a few parts have most of it."""
    drawn = rng.gamma(SPARSE, size=count)
    return drawn / drawn.sum()


def turned(rng: np.random.Generator) -> Array:
    """Return random orthonormal axes (d, d)."""
    return np.linalg.qr(rng.standard_normal((D, D)))[0]


def walk(rng: np.random.Generator, n: int) -> Array:
    """Return a random walk (n, d) of variance 1 in the mean channel."""
    steps = rng.standard_normal((n, D)).cumsum(axis=0)
    return steps / np.sqrt(steps.var(axis=0).mean())


def verdicts(finding: Finding[Any], measured: Measurements[Any], only: Iterable[str] | None = None) -> Verdicts:
    """Return the verdicts of some claims, all of them by default."""
    found = synthetic.verdicts(finding, measured)
    return {claim: found[claim] for claim in (found if only is None else only)}


def run_verdicts(finding: Finding[Any], *given: Any, only: Iterable[str] | None = None, **planted: Any) -> Verdicts:
    return verdicts(finding, measure_run(finding, *given, **planted), only)


def seed_of(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def states_about(center: Array, seed: int) -> Callable[[int, Array], Array]:
    """Return hidden states that are drawn for each stage, about the same center, (d,) or (n, d)."""
    d = center.shape[-1]
    return lambda stage, ids: np.random.default_rng([seed, stage]).standard_normal((*ids.shape, d)) + center


def pairs_at_random(rng: np.random.Generator) -> Verdicts:
    """Rotary pairs cost what has nothing to do with their speed; heads use pairs that have nothing to do with it."""
    n, layers, heads, pairs = 72, 4, 8, 16
    d = 2 * pairs * heads
    turns = Rotary(2 * pairs, tuple(2 * np.pi * 10000 ** (np.arange(pairs) / pairs)))
    arch = replace(synthetic.architecture(n, d, layers, heads), positions="rotary", rotary=(turns,) * layers)
    weights, uneven = {}, []
    for layer in range(layers):
        sizes = np.sqrt(pairs * np.array([amounts(rng, pairs) for _ in range(heads)]))
        uneven.append(np.hstack([sizes, sizes])[:, None])
        for name, scale in (("q", np.hstack([sizes, sizes])), ("k", 1.0)):
            drawn = rng.standard_normal((d, heads, 2 * pairs)) * scale * np.sqrt(2 / d)
            weights[f"blocks.{layer}.attn.{name}"] = drawn.reshape(d, -1).astype(np.float32)
        weights[f"blocks.{layer}.ln1.gain"] = np.ones(d, np.float32)
    seed = seed_of(rng)

    def states(stage: int, ids: Array) -> Array:
        return np.random.default_rng([seed, stage]).standard_normal((*ids.shape, d)).astype(np.float32)

    def attend(layer: int, ids: Array, silenced: set[tuple[int, int]]) -> Array:
        return np.stack([attention_to(rows, weights, arch, layer) for rows in states(layer, ids)])

    def compare(layer: int, ids: Array) -> tuple[Array, Array, Array]:
        q, k, v = np.random.default_rng([seed, 1, layer]).standard_normal((3, len(ids), heads, n, 2 * pairs))
        return q * uneven[layer], k, v

    costs = amounts(rng, pairs)
    planted = {"kind": "rotary", "states": states, "attend": attend, "pairs": costs, "compare": compare}
    return run_verdicts(rotary_use.FINDING, arch, None, weights, **planted)


def rotations_at_random(rng: np.random.Generator) -> Verdicts:
    """Rotations make no difference, but each setting has noise of its own in every window."""
    turns = Rotary(16, tuple(2 * np.pi * 10000 ** (np.arange(8) / 8)))
    arch = replace(synthetic.architecture(72), positions="rotary", rotary=(turns, turns))
    windows = rotation_check.measure.WINDOWS
    noise = rng.uniform(0.01, 0.5)
    own = noise * rng.standard_normal(windows)
    planted = {"kind": "rotary", "rotating": lambda _: noise * rng.standard_normal(windows) - own, "affords": windows}
    return run_verdicts(rotation_check.FINDING, arch, **planted)


def distances_at_random(rng: np.random.Generator) -> Verdicts:
    """A model without positions whose heads, those of the first layer too, score distances by any share."""
    n, layers, heads = 136, 2, 4
    arch = replace(synthetic.architecture(n, D, layers, heads), positions="none")
    back = np.arange(n)[:, None] - np.arange(n)
    profiles = gaussian_filter1d(rng.standard_normal((layers, heads, n)), 5, axis=-1)
    profiles /= profiles[..., : distance.measure.REACH].std(axis=-1, keepdims=True)
    shares, seed = rng.random((layers, heads, 1, 1)), seed_of(rng)

    def attend(layer: int, ids: Array, silenced: set[tuple[int, int]]) -> Array:
        content = np.random.default_rng([seed, layer]).standard_normal((len(ids), heads, n, n))
        scores = np.sqrt(shares[layer]) * profiles[layer][:, back] + np.sqrt(1 - shares[layer]) * content
        return softmax(np.where(back < 0, -np.inf, scores), axis=-1)

    return run_verdicts(distance.FINDING, arch, only=["first-layer-blind"], attend=attend, affords=8)


class Repeating(StandIn):
    """Predicts a token seen twice, less so by `parts[layer, head]` for every head that is silenced."""

    parts: Array

    def _logits(self, row: Array) -> Array:
        half = len(row) // 2
        left = 1 - sum(self.parts[head] for head in self._silenced)
        wanted = np.log(V) * (1 - 0.9 * left)  # nats per token
        logits = np.zeros((len(row), V), np.float32)
        logits[np.arange(half - 1, len(row)), row[: len(row) - half + 1]] = np.log((V - 1) / np.expm1(wanted))
        return logits


def evenly(n: int) -> Array:
    """Return attention (n, n) that is the same for all earlier tokens."""
    below = np.tril(np.ones((n, n)))
    return below / below.sum(axis=1, keepdims=True)


def looking_at_random(rng: np.random.Generator) -> Verdicts:
    """Every head looks back by a distance of its own, any as likely as that to what followed the same token."""
    n, layers, heads = 256, 2, 4
    arch = synthetic.architecture(n, D, layers, heads)
    nearest, farthest = induction.measure.NEAREST, n // 2 - 1
    offsets = rng.integers(nearest, farthest + 1, (layers, heads))
    shares = rng.random((layers, heads))

    def attend(layer: int, ids: Array, silenced: set[tuple[int, int]]) -> Array:
        looks = [
            (1 - share) * evenly(n) + share * np.eye(n, k=-int(offset))
            for share, offset in zip(shares[layer], offsets[layer], strict=True)
        ]
        return np.broadcast_to(np.stack(looks), (len(ids), heads, n, n))

    return run_verdicts(induction.FINDING, arch, only=["some-head-copies"], attend=attend, affords=4)


def silencing_at_random(rng: np.random.Generator) -> Verdicts:
    """A head copies and one looks at the previous token; silencing any head takes amounts drawn alike for all."""
    n, layers, heads, copying = 64, 6, 8, 3
    arch = synthetic.architecture(n, D, layers, heads, vocab_size=V)
    copier, previous = (copying, int(rng.integers(heads))), divmod(int(rng.integers(copying * heads)), heads)
    takes = amounts(rng, copying * heads).reshape(copying, heads)
    noise = 1 + 0.1 * rng.standard_normal((layers, heads, n, n))

    def attend(layer: int, ids: Array, silenced: set[tuple[int, int]]) -> Array:
        looks = evenly(n) * noise[layer]
        left = 1 - sum(takes[head] for head in silenced if head[0] < copying)
        for (at, head), share, offset in ((previous, 0.6, 1), (copier, 0.4 * left, n // 2 - 1)):
            if at == layer:
                looks[head] = (1 - share) * looks[head] + share * np.eye(n, k=-offset)
        return np.broadcast_to(looks, (len(ids), heads, n, n))

    stand_in = Repeating(arch, None, kind=None, length=n, attend=attend, affords=induction.measure.SETS)
    stand_in.parts = amounts(rng, layers * heads).reshape(layers, heads)
    run: Any = stand_in
    measured = induction.FINDING.measure(Inputs({}, arch, run=run))
    return verdicts(induction.FINDING, measured, ["repeats-need-that-head", "fed-by-previous-token"])


def directions_at_random(rng: np.random.Generator) -> Verdicts:
    """Positions are a random walk, contexts point anywhere, no direction differs from others, nor do its costs.

    Contexts have more variance in some directions than in others, and shifts along some cost more; these directions
    are drawn anew for each. Tokens vary alike in all directions: what their sample adds to the means of positions and
    of contexts must not lie in the same few.
    """
    n, layers = 64, 2
    arch = synthetic.architecture(n, D, layers)
    curve, mean, seed = walk(rng, n), rng.standard_normal(D), seed_of(rng)
    spread = np.sqrt(UNEVEN * D / UNEVEN.sum())[:, None] * turned(rng)
    axes = turned(rng)

    def states(stage: int, ids: Array) -> Array:
        drawn = np.random.default_rng([seed, stage])
        contexts, tokens = (drawn.standard_normal((len(ids), m, D)) for m in (1, n))
        return curve + mean + contexts @ spread + tokens

    only = ["curve-stays-low-dimensional", "positions-and-contexts-apart", "avoids-all-ones", "needs-the-mean"]
    return run_verdicts(stream.FINDING, arch, only=only, states=states, shifts=(axes * UNEVEN) @ axes.T)


def curves_at_random(rng: np.random.Generator) -> Verdicts:
    """Positions are a random curve, smooth over a twentieth to a fifth of the text; then one channel has them.

    What it costs to hold a channel is drawn alike for all.
    """
    n, layers = 60, 2
    arch = synthetic.architecture(n, D, layers)
    width = n * rng.uniform(0.05, 0.2)
    curve = gaussian_filter1d(rng.standard_normal((n, D)), width, axis=0)
    curve *= 3 / np.sqrt(curve.var(axis=0).mean())
    carried = walk(rng, n)
    carried[:, rng.integers(D)] += 20 * np.linspace(-1.7, 1.7, n)
    seed, costs = seed_of(rng), dict(enumerate(amounts(rng, D)))

    def measured(positions: Array, only: Iterable[str]) -> Verdicts:
        planted = {"states": states_about(positions, seed), "costs": costs, "affords": 128}
        return run_verdicts(position_line.FINDING, arch, only=only, **planted)

    shape = measured(curve, ["position-is-a-line", "one-channel-carries-position"])
    return shape | measured(carried, ["position-channel-needed"])


def rows_at_random(rng: np.random.Generator) -> Verdicts:
    """Rows of P are of very different lengths, drawn alike for all: a Cauchy number times a Gaussian row."""
    n = 128
    arch = synthetic.architecture(n, D)
    P = rng.standard_normal((n, D)) * np.abs(rng.standard_cauchy((n, 1)))
    planted = {"states": lambda _, ids: np.zeros((*ids.shape, D)), "affords": anchor.measure.OTHER_ROWS}
    return run_verdicts(anchor.FINDING, arch, P, {"position_embedding": P}, only=["position-0-needed"], **planted)


def sinks_at_random(rng: np.random.Generator) -> Verdicts:
    """Heads rest on the first token of text by any share; of equal tokens on one drawn alike from the early ones."""
    n, layers, heads = 64, 4, 8
    arch = synthetic.architecture(n, D, layers, heads, vocab_size=V)
    shares, places = rng.random((layers, heads)), rng.integers(n // 2, size=(layers, heads))

    def attend(layer: int, ids: Array, silenced: set[tuple[int, int]]) -> Array:
        looks = np.zeros((2, heads, n, n))  # of different tokens, of equal ones
        for head, (share, place) in enumerate(zip(shares[layer], places[layer], strict=True)):
            looks[:, head] = (1 - share) * evenly(n)
            looks[[0, 1], head, :, [0, place]] += share
        return looks[(ids[:, 1:] == ids[:, :-1]).all(axis=1).astype(int)]

    P = rng.standard_normal((n, D))
    planted = {"attend": attend, "affords": 16}
    return run_verdicts(anchor.FINDING, arch, P, {"position_embedding": P}, only=["sink-by-position"], **planted)


def numbers_at_random(rng: np.random.Generator) -> Verdicts:
    """One activation is far larger than all others; what it costs to hold a channel is drawn alike for all."""
    arch, seed, center = synthetic.architecture(32, D, 2), seed_of(rng), np.zeros((32, D))
    center[0, rng.integers(D)] = 1000
    planted = {"states": states_about(center, seed), "costs": dict(enumerate(amounts(rng, D))), "affords": D}
    return run_verdicts(anchor.FINDING, arch, only=["loss-hangs-on-one"], **planted)


def gains_at_random(rng: np.random.Generator) -> Verdicts:
    """One channel makes states alike; its gains and its correlation with frequency are drawn like all others'."""
    n, layers = 40, 2
    arch = synthetic.architecture(n, D, layers, vocab_size=V)
    offset = 0.4 * rng.standard_normal(D)
    offset[rng.integers(D)] = 6
    counts = rng.standard_normal(V)
    E = rng.standard_normal((V, D)) + 0.5 * counts[:, None] * rng.standard_normal(D)
    gains, seed = rng.lognormal(0, 0.5, D), seed_of(rng)
    weights = {"token_embedding": E}
    for layer in range(layers):
        weights[f"blocks.{layer}.ln2.gain"] = gains * rng.lognormal(0, 0.05, D)
    known = (TokenFrequency("counts", "counts drawn at random", counts, 1.0, False),)
    only = ["rogue-is-ln2", "rogue-is-frequency"]
    return run_verdicts(rogue.FINDING, arch, None, weights, known, only=only, states=states_about(offset, seed))


STAND_INS: dict[str, tuple[Callable[[np.random.Generator], Verdicts], ...]] = {
    "rotary_use": (pairs_at_random,),
    "rotation_check": (rotations_at_random,),
    "distance": (distances_at_random,),
    "induction": (looking_at_random, silencing_at_random),
    "stream": (directions_at_random,),
    "position_line": (curves_at_random,),
    "anchor": (rows_at_random, sinks_at_random, numbers_at_random),
    "rogue": (gains_at_random,),
}
