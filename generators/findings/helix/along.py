import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.measured import Interval, StoredChance
from generators.findings.nulls import drawn, interval
from generators.maths import curve, surrogates, turning

SEED = 20230714
DRAWS = 100
WINDOWS = 20  # windows along the curve for measuring its turn rate
MOST_CHANNELS = 40  # channels tested for their wave shape
PERIODS = 120  # periods tried per channel
LEAST_CYCLES, MOST_CYCLES = 0.5, 12.0
ROWS_PER_CYCLE = 16  # minimum: faster waves hardly sample their third harmonic
SQUARE_ROOT_OF_ROUNDING = 1e-8
BLOCK = 512
MOST_COMPARED = 1024  # evenly spaced rows used to rebuild cosines
MOST_ASKED = 8192  # rows searched for their nearest other row

GROUPS = 16  # groups of similar values (4 bits)
ROWS_PER_BLOCK = 16  # neighboring positions treated as one
SHUFFLES = 100
SHUFFLES_SEED = 20230715
FEWEST_IN_GROUP = 4
ROUNDING = 1e-6  # relative to the largest value: float32 rounding after a few sums
ANGLE_EPSILON = 1e-6  # radians: keeps rounding from moving the first row to the end of the circle


class Information(TypedDict):
    """What one number says about the position: mutual information in bits, and a share of variance.

    `norm` is the distance from the center of the curve in its three leading components, `angle` the angle in its
    strongest plane (from that of the first row), None where there is none. Bits are those between the group of a
    value (`groups` of equal size, so log2(groups) at most) and the block of 16 positions; `chance_bits` is the median
    of shuffled positions. `norm`, `angle` and `chance` are the share of the position's variance between these groups,
    which is low for an angle that comes round more than once, however much it says.
    """

    norm: float
    angle: float | None
    groups: int
    chance: float
    norm_bits: float
    angle_bits: float | None
    chance_bits: float


class StartSpeed(TypedDict):
    """How fast the curve turns in its first window, in times the median window."""

    times_median: float
    chance: StoredChance


class ToldApart(TypedDict):
    """How often the row nearest to another is a neighbor, and how far away it is in the median.

    Of whole rows, and of rows in the three leading components.
    """

    neighbor_share: float
    neighbor_share_3d: float
    median_offset: float
    median_offset_3d: float


class SmallestDistance(TypedDict):
    """The two rows that lie closest together, and how close, in median steps between neighbors."""

    distance: float
    positions: list[int]
    median_steps: float


class WaveShape(TypedDict):
    """The third harmonic of the strongest channels over their first: 0 in sines, 1/9 in triangle waves.

    `quartiles` are over channels, `chance` takes another channel's phase, `fit` is the median R^2 of the sines.
    """

    third_harmonic: float
    quartiles: list[float]
    interval: Interval
    chance: StoredChance
    fit: float
    channels: int


class AlongCurve(TypedDict):
    """Numbers along the curve; `start` is None where it has no plane, `waves` where there are too few rows.

    `cosine_rebuilt` is how much of the variance of the cosines between rows three components reproduce (R^2).
    """

    start: StartSpeed | None
    told_apart: ToldApart
    smallest_distance: SmallestDistance
    cosine_rebuilt: float | None
    waves: WaveShape | None


def along(P: Float[Array, "n d"], run: slice, plane: Float[Array, "rows 2"] | None) -> AlongCurve:
    """Return these numbers; `run` has no outlier, `plane` is it in its strongest plane."""
    rows = P[run]
    late = rows[max(0, curve.START - run.start) :] if len(P) >= 2 * curve.START else rows
    return {
        "start": _start_speed(rows, plane),
        "told_apart": told_apart(rows),
        "smallest_distance": smallest_distance(P),
        "cosine_rebuilt": cosine_rebuilt(P[1:]),
        "waves": wave_shape(late),
    }


def turn_rates(points: Float[Array, "rows 2"], window: int) -> Float[Array, " windows"]:
    """Return the turns per token in windows that follow one another; negative where the curve turns back."""
    steps = turning.angle_steps(points)
    whole = steps[: len(steps) // window * window].reshape(-1, window).mean(axis=1) / turning.FULL_TURN
    return whole if steps.sum() >= 0 else -whole


def _start_speed(rows: Float[Array, "rows d"], plane: Float[Array, "rows 2"] | None) -> StartSpeed | None:
    window = max(2, len(rows) // WINDOWS)
    if plane is None or len(rows) <= 3 * window:
        return None
    curves = surrogates.at_other_times(rows, np.random.default_rng(SEED), DRAWS)
    by_chance = [_start(turn_rates(points, window)) for each in curves if (points := _in_plane(each)) is not None]
    if len(by_chance) < DRAWS:
        return None
    chance = drawn("curves that begin P's waves at other times", np.array(by_chance))
    return {"times_median": _start(turn_rates(plane, window)), "chance": chance}


def _start(rates: Float[Array, " windows"]) -> float:
    median = float(np.median(np.abs(rates)))
    return abs(float(rates[0])) / median if median else 0.0


def _in_plane(rows: Float[Array, "rows d"]) -> Float[Array, "rows 2"] | None:
    scores = curve.principal_scores(rows, turning.COMPONENTS)
    planes = turning.planes(scores.values, scores.energy)
    return scores.values @ planes[0].axes if planes else None


def nearest_rows(
    rows: Float[Array, "n c"],
) -> tuple[Int[Array, " asked"], Int[Array, " asked"], Float[Array, " asked"]]:
    """Return rows, which other row is nearest to each, and its distance.

    All rows are asked; of a long table some, evenly spaced. Each is compared with all.
    """
    squares = np.einsum("ij,ij->i", rows, rows)
    asked = np.arange(0, len(rows), -(-len(rows) // MOST_ASKED))
    nearest = np.empty(len(asked), np.intp)
    for begin in range(0, len(asked), BLOCK):
        block = asked[begin : begin + BLOCK]
        away = squares - 2 * rows[block] @ rows.T
        away[np.arange(len(block)), block] = np.inf
        nearest[begin : begin + len(block)] = away.argmin(axis=1)
    return asked, nearest, np.linalg.norm(rows[asked] - rows[nearest], axis=1)


def told_apart(rows: Float[Array, "n d"]) -> ToldApart:
    whole, in_three = (_offsets(each) for each in (rows, curve.principal_scores(rows, 3).values))
    return {
        "neighbor_share": float(np.mean(whole == 1)),
        "neighbor_share_3d": float(np.mean(in_three == 1)),
        "median_offset": float(np.median(whole)),
        "median_offset_3d": float(np.median(in_three)),
    }


def _offsets(rows: Float[Array, "n c"]) -> Int[Array, " asked"]:
    asked, nearest, _ = nearest_rows(rows - rows.mean(axis=0))
    return np.abs(nearest - asked)


def smallest_distance(P: Float[Array, "n d"]) -> SmallestDistance:
    asked, nearest, distances = nearest_rows(P - P.mean(axis=0))
    first, step = int(distances.argmin()), float(np.median(curve.step_lengths(P)))
    return {
        "distance": float(distances[first]),
        "positions": sorted([int(asked[first]), int(nearest[first])]),
        "median_steps": float(distances[first]) / step if step else 0.0,
    }


def cosine_rebuilt(rows: Float[Array, "n d"]) -> float | None:
    """Return R^2 of the cosines between rows when these are rebuilt from three components; None where it has none."""
    three = curve.principal_scores(rows, 3)
    rebuilt = rows.mean(axis=0) + three.values @ three.axes.T
    lengths = [np.linalg.norm(each, axis=1) for each in (rows, rebuilt)]
    if min(length.min() for length in lengths) <= SQUARE_ROOT_OF_ROUNDING * lengths[0].max():
        return None
    some = slice(None, None, -(-len(rows) // MOST_COMPARED))
    above = np.triu_indices(len(rows[some]), 1)
    units = [(each / length[:, None])[some] for each, length in zip((rows, rebuilt), lengths, strict=True)]
    whole, three_only = ((unit @ unit.T)[above] for unit in units)
    spread = float(np.sum((whole - whole.mean()) ** 2))
    return 1 - float(np.sum((whole - three_only) ** 2)) / spread if spread else None


def wave_shape(rows: Float[Array, "n d"]) -> WaveShape | None:
    most = min(MOST_CYCLES, len(rows) / ROWS_PER_CYCLE)
    if most <= 2 * LEAST_CYCLES:
        return None
    spreads = rows.std(axis=0)
    channels = np.argsort(-spreads, kind="stable")[: min(MOST_CHANNELS, rows.shape[1] // 4)]
    channels = channels[spreads[channels] > SQUARE_ROOT_OF_ROUNDING * np.abs(rows).max()]
    if len(channels) < 2:
        return None
    first, third, fit = _harmonics(rows[:, channels], np.linspace(LEAST_CYCLES, most, PERIODS))
    phases, rng = np.angle(first), np.random.default_rng(SEED)

    def in_phase(phases: Float[Array, " channels"]) -> Float[Array, " channels"]:
        """Return each third harmonic along three times a phase, over the size of its own first."""
        return np.real(third * np.exp(-3j * phases)) / np.abs(first)

    own = in_phase(phases)
    shuffled = [np.median(in_phase(phases[rng.permutation(len(own))])) for _ in range(DRAWS)]
    resampled = [np.median(rng.choice(own, len(own))) for _ in range(DRAWS)]
    return {
        "third_harmonic": float(np.median(own)),
        "quartiles": np.quantile(own, [0.25, 0.75]).tolist(),
        "interval": interval(np.array(resampled)),
        "chance": drawn("channels with the phase of another", np.array(shuffled)),
        "fit": float(np.median(fit)),
        "channels": len(own),
    }


def _harmonics(
    columns: Float[Array, "n channels"], cycles: Float[Array, " periods"]
) -> tuple[Array, Array, Float[Array, " channels"]]:
    """Return every channel's complex amplitudes once and three times its best period, and R^2 of that sine alone."""
    t = np.arange(len(columns)) / len(columns)
    columns = columns - columns.mean(axis=0)
    energy = np.sum(columns**2, axis=0)
    fits = np.stack([np.sum((np.linalg.qr(_waves(t, [each]))[0].T @ columns) ** 2, axis=0) for each in cycles])
    best = fits.argmax(axis=0)
    amplitudes = np.array(
        [
            np.linalg.lstsq(_waves(t, [cycles[at], 3 * cycles[at]]), columns[:, i], rcond=None)[0]
            for i, at in enumerate(best)
        ]
    )
    first, third = amplitudes[:, 1] - 1j * amplitudes[:, 2], amplitudes[:, 3] - 1j * amplitudes[:, 4]
    return first, third, fits.max(axis=0) / energy


def _waves(t: Float[Array, " n"], cycles: list[float]) -> Float[Array, "n columns"]:
    waves = [wave(2 * np.pi * each * t) for each in cycles for wave in (np.cos, np.sin)]
    return np.column_stack([np.ones_like(t), *waves])


def information(scores: Float[Array, "rows c"], plane: Float[Array, "rows 2"] | None) -> Information:
    groups = max(1, min(GROUPS, len(scores) // FEWEST_IN_GROUP))
    norm, angle = np.linalg.norm(scores[:, :3], axis=1), None if plane is None else _angle_from_start(plane)
    rng = np.random.default_rng(SHUFFLES_SEED)
    shuffled = [bits(rng.permutation(len(scores)).astype(float), groups) for _ in range(SHUFFLES)]
    return {
        "norm": variance_explained_by(norm, groups),
        "angle": None if angle is None else variance_explained_by(angle, groups),
        "groups": groups,
        "chance": (groups - 1) / max(1, len(scores) - 1),
        "norm_bits": bits(norm, groups),
        "angle_bits": None if angle is None else bits(angle, groups),
        "chance_bits": float(np.median(shuffled)),
    }


def bits(values: Float[Array, " rows"], groups: int) -> float:
    """Return the mutual information, in bits, of groups of like values and blocks of neighbouring rows.

    0 where values differ by rounding only. Plug-in estimate: with few rows it is biased upwards, as chance is.
    """
    if np.ptp(values) <= ROUNDING * np.abs(values).max():
        return 0.0
    n = len(values)
    group = np.empty(n, np.intp)
    group[np.argsort(values, kind="stable")] = np.arange(n) * groups // n
    block = np.arange(n) // ROWS_PER_BLOCK
    joint = np.zeros((groups, block[-1] + 1))
    np.add.at(joint, (group, block), 1 / n)
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    met = joint > 0
    return float(np.sum(joint[met] * np.log2(joint[met] / apart[met])))


def _angle_from_start(plane: Float[Array, "rows 2"]) -> Float[Array, " rows"]:
    angles = np.arctan2(plane[:, 1], plane[:, 0])
    return (angles - angles[0] + ANGLE_EPSILON) % (2 * np.pi)


def variance_explained_by(values: Float[Array, " rows"], groups: int) -> float:
    """Return the share of the variance of the row index that lies between groups of rows of like value.

    0 where values differ by rounding only.
    """
    if np.ptp(values) <= ROUNDING * np.abs(values).max():
        return 0.0
    order = np.argsort(values, kind="stable")
    rows = order - order.mean()
    total = float(np.sum(rows**2))
    between = sum(float(part.sum()) ** 2 / len(part) for part in np.array_split(rows, groups))
    return between / total if total else 0.0
