from math import ceil

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.inputs import Inputs, NotApplicableError
from generators.findings.measured import Interval, Measurements, StoredChance, Table, table_of
from generators.findings.nulls import DRAWS, RESAMPLES, drawn, interval
from generators.findings.sizes import check_positions, check_tokens
from generators.maths.blocks import blocks
from generators.maths.resampling import block_weights, ratio_of, resample_items
from generators.maths.rotations import rivalries, shares_in_subspace
from generators.maths.spectra import gram, subspace_size, svd

PARTS = 10  # equal parts of E's directions; head and tail are one part each
SEED = 20240820
SIDES = (("positions", "tokens"), ("tokens", "positions"))
NOTHING = 1e-12  # share of the tokens' energy below which their variance is rounding


class FirstCapture(TypedDict):
    """How much of E's strongest direction P's top directions capture, and what the tokens' mean has to do with it.

    `of_mean` is the share of the mean's energy there, `without_mean` the capture of the strongest direction of
    centred E, `mean_in_first` the squared cosine of the mean with the strongest direction.
    """

    value: float
    of_mean: float | None
    without_mean: float
    mean_in_first: float | None


class SubspaceNulls(TypedDict):
    """What a number is where one side is turned at random, and where its channels are exchanged at random."""

    turned: StoredChance
    exchanged: StoredChance


class SubspacesChances(TypedDict):
    rivalry: SubspaceNulls
    position_energy_in_tail: SubspaceNulls
    token_energy_in_tail: SubspaceNulls


class SubspacesIntervals(TypedDict):
    """95 % intervals, by number: positions are resampled in blocks, tokens one by one."""

    rivalry: Interval
    position_energy_in_tail: Interval
    token_energy_in_tail: Interval


class SubspacesMetrics(TypedDict):
    """Spectra of P and E and how their directions overlap; lists are by index, strongest first."""

    k: int
    chance_share: float
    singular_values_P: list[float]
    singular_values_E: list[float]
    capture: list[float]
    capture_head: float
    capture_tail: float
    position_energy_in_tail: float
    token_energy_in_tail: float
    chance_in_tail: float
    rivalry: float
    first_capture: FirstCapture
    chance: SubspacesChances
    intervals: SubspacesIntervals


def measure(inputs: Inputs) -> Measurements[SubspacesMetrics]:
    """Measure how the directions of P and of E share the stream."""
    P, E = np.asarray(inputs.weights["position_embedding"], np.float64), inputs.weights["token_embedding"]
    check_positions(P)
    check_tokens(E)
    n, d = P.shape
    k, tail = subspace_size(n, d), ceil(d / PARTS)
    mean = E.mean(axis=0, dtype=np.float64)
    total = gram(E)
    centred = total - len(E) * np.outer(mean, mean)
    positions = P[1:] - P[1:].mean(axis=0)
    energy, right_E = _spectrum(total)
    if not positions.any() or np.trace(centred) <= NOTHING * energy.sum():
        raise NotApplicableError("Positions or tokens do not vary: there is nothing to keep apart.")
    _, s_P, right_P = svd(P)
    top = right_P[:k]
    capture = np.sum((top @ right_E) ** 2, axis=0)
    spread, right_centred = _spectrum(centred)
    weak, length = right_centred[:, -tail:], float(mean @ mean)
    unused, counted = _weak_directions_of(positions, tail)
    metrics = SubspacesMetrics(
        k=k,
        chance_share=k / d,
        singular_values_P=s_P.tolist(),
        singular_values_E=np.sqrt(energy).tolist(),
        capture=capture.tolist(),
        capture_head=float(capture[:tail].mean()),
        capture_tail=float(capture[-tail:].mean()),
        position_energy_in_tail=float(np.sum((positions @ weak) ** 2) / np.sum(positions**2)),
        token_energy_in_tail=counted * float(np.sum((unused @ centred) * unused) / np.trace(centred)),
        chance_in_tail=tail / d,
        # d tr(C_P C_E) / (tr C_P tr C_E): 1 for unrelated spreads, 0 for disjoint ones
        rivalry=d * float(np.vdot(gram(positions), centred) / (np.sum(positions**2) * np.trace(centred))),
        first_capture={
            "value": float(capture[0]),
            "of_mean": float(np.sum((top @ mean) ** 2)) / length if length else None,
            "without_mean": float(np.sum((top @ right_centred[:, 0]) ** 2)),
            "mean_in_first": float(right_E[:, 0] @ mean) ** 2 / length if length else None,
        },
        chance=_chance(positions, centred, spread, weak, unused, counted),
        intervals=_intervals(positions, centred, weak, _token_interval(E, mean, unused, counted)),
    )
    return Measurements(metrics, {"capture": _table(capture, k / d)})


def _spectrum(gram_matrix: Float[Array, "d d"]) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
    """Return squared singular values, largest first, and the right singular vectors as columns."""
    values, vectors = np.linalg.eigh(gram_matrix)
    return np.clip(values[::-1], 0, None), vectors[:, ::-1]


def _weak_directions_of(positions: Float[Array, "n d"], tail: int) -> tuple[Float[Array, "weak d"], float]:
    """Return the directions, `tail` of them, in which positions vary least, and what share of them counts.

    Where positions leave out more directions than that altogether, which of these are the last can't be said: then
    they are all given, and what they hold counts as much as a random choice among them would hold on average.
    """
    # Directions that no position has are wanted too; where there are none, the full U would be n x n for nothing.
    lengths, right = np.linalg.svd(positions, full_matrices=len(positions) < positions.shape[1])[1:]
    rank = int(np.sum(lengths > lengths[0] * max(positions.shape) * np.finfo(np.float64).eps))
    weak = right[-max(tail, len(right) - rank) :]
    return weak, tail / len(weak)


def _chance(
    positions: Float[Array, "n d"],
    token_gram: Float[Array, "d d"],
    token_energy: Float[Array, " d"],
    weak: Float[Array, "d tail"],
    unused: Float[Array, "weak d"],
    counted: float,
) -> SubspacesChances:
    """Return what turning one side at random gives, and what exchanging its channels at random does.

    Turning preserves each side's spectrum; exchanging channels also preserves how it spreads over channels. If few
    channels are strong on either side, the strong ones rarely coincide.
    """
    rng, d = np.random.default_rng(SEED), len(token_gram)
    tail, energy = weak.shape[1], np.linalg.svd(positions, compute_uv=False) ** 2
    by_positions, by_tokens = (f"{side} turned at random against the {other}" for side, other in SIDES)
    rivalry, position_tail, token_tail = exchanged(
        positions, token_gram, weak, unused, np.random.default_rng([SEED, 1])
    )
    mixed, mixed_tokens = (f"{side} with their channels exchanged at random" for side, _ in SIDES)
    return {
        "rivalry": {
            "turned": drawn(by_positions, rivalries(energy, token_energy, d, DRAWS, rng), "at most"),
            "exchanged": drawn(mixed, rivalry, "at most"),
        },
        "position_energy_in_tail": {
            "turned": drawn(by_positions, shares_in_subspace(energy, tail, d, DRAWS, rng)),
            "exchanged": drawn(mixed, position_tail),
        },
        "token_energy_in_tail": {
            "turned": drawn(by_tokens, shares_in_subspace(token_energy, tail, d, DRAWS, rng)),
            "exchanged": drawn(mixed_tokens, counted * token_tail),
        },
    }


def exchanged(
    positions: Float[Array, "n d"],
    token_gram: Float[Array, "d d"],
    weak: Float[Array, "d tail"],
    unused: Float[Array, "weak d"],
    rng: np.random.Generator,
) -> Float[Array, "3 draws"]:
    """Return rivalry and both energies in a tail, one row each, with channels exchanged at random."""
    rows = gram(positions)
    of_positions, of_tokens, d = np.trace(rows), np.trace(token_gram), len(rows)
    found = np.empty((3, DRAWS))
    for draw in range(DRAWS):
        order = rng.permutation(d)
        mixed = rows[np.ix_(order, order)]
        shuffled = unused[:, order]
        found[0, draw] = d * np.vdot(mixed, token_gram) / (of_positions * of_tokens)
        found[1, draw] = np.vdot(weak, mixed @ weak) / of_positions
        found[2, draw] = np.vdot(shuffled, shuffled @ token_gram) / of_tokens
    return found


def _intervals(
    positions: Float[Array, "n d"],
    token_gram: Float[Array, "d d"],
    weak: Float[Array, "d tail"],
    of_tokens: Interval,
) -> SubspacesIntervals:
    n, d = positions.shape
    weights = block_weights(n, RESAMPLES, np.random.default_rng(SEED))
    energy = np.einsum("ij,ij->i", positions, positions)
    shared = np.einsum("ij,ij->i", positions @ token_gram, positions) * d / np.trace(token_gram)
    in_tail = np.sum((positions @ weak) ** 2, axis=1)
    return {
        "rivalry": interval(ratio_of(shared, energy)(weights)),
        "position_energy_in_tail": interval(ratio_of(in_tail, energy)(weights)),
        "token_energy_in_tail": of_tokens,
    }


def _token_interval(
    E: Float[Array, "V d"], mean: Float[Array, " d"], weak: Float[Array, "weak d"], counted: float
) -> Interval:
    inside, energy = np.empty((2, len(E)))
    for part, block in blocks(E):
        block -= mean
        energy[part] = np.einsum("ij,ij->i", block, block)
        inside[part] = np.sum((block @ weak.T) ** 2, axis=1)
    rng = np.random.default_rng(SEED)
    return interval(resample_items(ratio_of(counted * inside, energy), len(E), RESAMPLES, rng))


def _table(capture: Float[Array, " d"], chance: float) -> Table:
    parts = np.array_split(np.arange(len(capture)), PARTS)
    rows = [
        {
            "from": int(part[0]) + 1,
            "to": int(part[-1]) + 1,
            "mean_capture": float(capture[part].mean()),
            "chance": chance,
        }
        for part in parts
    ]
    title = "How much of each tenth of E's directions P's top directions capture"
    return table_of(title, rows[0], rows)
