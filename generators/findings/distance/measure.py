import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.architecture import Architecture
from generators.base.runs import Run, Windows
from generators.findings.inputs import Inputs, NotApplicableError, model_of
from generators.findings.measured import Measurements, StoredChance, table_of
from generators.findings.nulls import DRAWS, drawn, interval
from generators.findings.running import SEED, WINDOWS, Ran, file_weights, ran
from generators.findings.sizes import nonconstant_positions

REACH = 64  # offsets: 0 to 63 tokens back
FEWEST = 8  # offsets needed for a profile
LEAST_SCORE = -1e4  # masks add far lower values


class DistanceRow(TypedDict):
    layer: int
    head: int
    share: float
    low: float
    high: float


class DistanceMetrics(TypedDict):
    """Numbers of all heads; `knows_positions` is None where nothing says whether the model has any."""

    heads: list[DistanceRow]
    largest_by_chance: StoredChance
    largest_first_by_chance: StoredChance
    knows_positions: bool | None
    ran: Ran


def measure(inputs: Inputs) -> Measurements[DistanceMetrics]:
    """Measure every head's scores on 64 windows at offsets up to 63, centred within each query.

    Attention doesn't change with a constant of the query, which centring removes: so tables, rotations and biases
    are on one scale.
    """
    run = model_of(inputs)
    windows = run.windows(WINDOWS, SEED)
    offsets = _offsets(windows, inputs.architecture)
    profiles, squares, queries = _scores(run, windows, offsets)
    (count, heads, _), n_head = profiles.shape, inputs.architecture.n_head
    explained = shares(np.full(count, 1 / count), profiles, squares)
    rows = []
    for head, share in enumerate(explained.tolist()):
        low, high = interval(shares(file_weights(windows.files), profiles[:, head], squares[:, head]))
        rows.append(DistanceRow(layer=head // n_head, head=head % n_head, share=share, low=low, high=high))
    metrics = DistanceMetrics(
        heads=rows,
        largest_by_chance=_by_chance(heads, len(offsets), queries),
        largest_first_by_chance=_by_chance(n_head, len(offsets), queries),
        knows_positions=_knows_positions(inputs, run),
        ran=ran(run, windows),
    )
    table = table_of("Heads by how much distance alone explains", DistanceRow, rows)
    mean = profiles.mean(axis=0)
    alone = np.exp(mean - mean.max(axis=1, keepdims=True))
    arrays = {
        "offsets": offsets.astype(np.int32),
        "by_distance": (alone / alone.sum(axis=1, keepdims=True)).astype(np.float32),
    }
    return Measurements(metrics, {"heads": table}, arrays)


def _offsets(windows: Windows, architecture: Architecture) -> Int[Array, " offsets"]:
    """Return the offsets at which every counted query has a key that its head sees; in encoders on both sides."""
    first, last = windows.inner
    sees = [window for window in architecture.windows if window is not None]
    reach = min([REACH, (last - first) // (2 if architecture.causal else 3), *sees])
    if reach < FEWEST:
        raise NotApplicableError("Heads see too few keys here to speak of a profile over distances.")
    return np.arange(0 if architecture.causal else 1 - reach, reach)


def _scores(
    run: Run, windows: Windows, offsets: Int[Array, " offsets"]
) -> tuple[Float[Array, "windows heads offsets"], Float[Array, "windows heads"], int]:
    """Return every window's mean score by offset and mean square of scores, and how many queries were counted.

    Both are of scores centred within each query; the square is a sum over offsets. Queries count in the second half,
    in encoders where both sides have keys: positions that a model makes for itself are coarse early in a text, and
    the first token, on which heads rest for other reasons, is no key of such queries.
    """
    first, last = windows.inner
    begin = max(first + int(offsets.max()) + 1, (first + last) // 2 if offsets.min() >= 0 else 0)
    end = last + min(0, int(offsets.min()))
    shape = (len(windows.ids), run.architecture.n_layer, run.architecture.n_head)
    profiles, squares = np.zeros((*shape, len(offsets))), np.zeros(shape)
    keys = np.arange(begin, end)[:, None] - offsets

    def see(layer: int, at: int, given: Float[Array, "batch heads n n"]) -> None:
        scores = np.maximum(given[:, :, np.arange(begin, end)[:, None], keys], LEAST_SCORE)
        scores -= scores.mean(axis=-1, keepdims=True)
        batch = slice(at, at + len(given))
        profiles[batch, layer] = scores.mean(axis=2, dtype=np.float64)
        squares[batch, layer] = np.einsum("bhqo,bhqo->bh", scores, scores, dtype=np.float64) / len(keys)

    run.attention(windows.ids, see, scores=True)
    count = len(windows.ids)
    return profiles.reshape(count, -1, len(offsets)), squares.reshape(count, -1), count * len(keys)


def shares(
    weights: Float[Array, "*draws windows"],
    profiles: Float[Array, "windows *heads offsets"],
    squares: Float[Array, "windows *heads"],
) -> Float[Array, "..."]:
    """Return which share of the variance of centred scores the mean profile explains; of nothing, 0."""
    wholes = np.tensordot(weights, squares, 1)
    explained = np.sum(np.tensordot(weights, profiles, 1) ** 2, axis=-1)
    return np.divide(explained, wholes, out=np.zeros_like(wholes), where=wholes > 0)


def _by_chance(heads: int, offsets: int, queries: int) -> StoredChance:
    """Return the largest share over heads where offsets are shuffled within every query.

    A profile is then a mean of many independent rows, so its squares are those of Gaussian numbers.
    """
    drawn_squares = np.random.default_rng(SEED).chisquare(offsets - 1, (DRAWS, heads))
    return drawn("offsets shuffled within every query", drawn_squares.max(axis=1) / ((offsets - 1) * queries))


def _knows_positions(inputs: Inputs, run: Run) -> bool | None:
    scheme = inputs.architecture.positions
    if scheme == "none":
        return False
    if scheme in ("learned", "formula") and run.position_kind == "table":
        there = "position_embedding" in inputs.weights
        return nonconstant_positions(inputs.weights) is not None if there else None
    return True
