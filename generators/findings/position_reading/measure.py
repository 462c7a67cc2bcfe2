import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.architecture import Architecture
from generators.findings.inputs import Inputs, NotApplicableError, Weights
from generators.findings.measured import Interval, Measurements, StoredChance, finite, table_of
from generators.findings.nulls import DRAWS, RESAMPLES, drawn
from generators.findings.position_reading import forms
from generators.findings.position_reading.forms import HeadWeights
from generators.findings.sizes import check_positions, check_width, nonconstant_positions
from generators.maths import curve, turning
from generators.maths.resampling import block_weights

SEED = 20230716
NULL = "curves in random directions"


class HeadReading(TypedDict):
    """How one head of layer 0 reads the curve.

    `rotation` is the share of its reading in the main plane that is a rotation, `degrees_back` by how much the best
    matching key lies before the query along the curve, `tokens_back` the same in tokens. The last two are None where
    the curve makes less than 0.6 turns in the plane, all three where the head doesn't read the plane.
    """

    head: int
    times_median: float | None
    in_plane: float | None
    rotation: float | None
    degrees_back: float | None
    tokens_back: float | None


class MainPlane(TypedDict):
    share: float
    turns: float
    tokens_per_turn: float | None


class ReadingEffects(TypedDict):
    """The largest size over the median; of all heads, the share in the plane, and in it a quarter turn apart."""

    times_median: float | None
    in_plane: float
    turned: float


class ReadingChances(TypedDict):
    """What chance gives, by effect: the larger of queries and keys turned together, and turned apart."""

    times_median: StoredChance | None
    in_plane: StoredChance
    turned: StoredChance


class ReadingIntervals(TypedDict):
    """95 % intervals by effect; positions are resampled in blocks."""

    times_median: Interval | None
    in_plane: Interval
    turned: Interval


class PositionReadingMetrics(TypedDict):
    """How layer 0 reads the curve; `rotation` is the share of all reading in the plane that is a rotation."""

    heads: list[HeadReading]
    plane: MainPlane
    effects: ReadingEffects
    rotation: float
    chance: ReadingChances
    intervals: ReadingIntervals
    rows_without_outliers: list[int]
    causal: bool
    n_heads: int


def measure(inputs: Inputs) -> Measurements[PositionReadingMetrics]:
    """Measure how the first layer's heads read the position curve.

    Biases of queries and keys are left out: they add the same to all keys of a query, or to a key for all queries.
    """
    weights, architecture = inputs.weights, inputs.architecture
    P, run = _curve(weights, architecture)
    heads = _heads(weights, architecture)
    leading = curve.principal_scores(P, turning.COMPONENTS)
    if leading.values.shape[1] < 2:
        raise NotApplicableError("The rows of P vary along one direction only: there is no plane to read.")
    lengths = np.linalg.norm(leading.values, axis=0)
    raw = heads.forms(leading.axes, leading.axes)
    c = forms.on_curve(raw, lengths)
    if not forms.plane_energy(c).any():
        raise NotApplicableError("Queries or keys of layer 0 are all zeros, or blind to the main plane of P.")
    turns = forms.net_turns(leading.values)
    same, quarter = (float(energy.sum()) for energy in forms.rotation_energy(c))
    metrics = PositionReadingMetrics(
        heads=_described(c, turns, len(P)),
        plane={
            "share": float(np.sum(lengths[:2] ** 2)) / leading.energy,
            "turns": abs(turns),
            "tokens_per_turn": _tokens_per_turn(turns, len(P)),
        },
        effects=_effects(forms.effects(c)),
        rotation=(same + quarter) / float(forms.plane_energy(c).sum()),
        chance=_chance(heads, lengths),
        intervals=_intervals(raw, leading.values, forms.effects(c)),
        rows_without_outliers=[run.start, run.stop - 1],
        causal=architecture.causal,
        n_heads=architecture.n_head,
    )
    reach = max(1, len(P) // 4)
    arrays = {
        "profile_offsets": np.arange(-reach, reach + 1, dtype=np.int32),
        "profiles": forms.profiles(raw, leading.values, reach).astype(np.float32),
    }
    title = "How each head of layer 0 reads the position curve"
    return Measurements(metrics, {"heads": table_of(title, HeadReading, metrics["heads"])}, arrays)


def _curve(weights: Weights, architecture: Architecture) -> tuple[Float[Array, "rows d"], slice]:
    """Return the longest run of positions without an outlier, channels centred where a layer norm centres them."""
    check_positions(weights["position_embedding"])
    check_width(weights["position_embedding"], weights["blocks.0.attn.q"])
    P = nonconstant_positions(weights)
    if P is None:
        raise NotApplicableError("The rows of P are alike, all or all but the first: there is no curve to read.")
    run = curve.longest_run(len(P), curve.outlier_positions(P)[0])
    centred = architecture.norm == "layer" and bool(_gains(weights))
    return (P[run] - P[run].mean(axis=1, keepdims=True) if centred else P[run]), run


def _gains(weights: Weights) -> list[Float[Array, " d"]]:
    """Return the gains between P and the queries, the nearest to the queries first."""
    roles = ("blocks.0.ln1.gain", "embedding_norm.gain")
    return [np.asarray(weights[role], np.float64) for role in roles if role in weights]


def _heads(weights: Weights, architecture: Architecture) -> HeadWeights:
    key_heads = architecture.n_kv_head or architecture.n_head
    queries = _by_head(_folded(weights, architecture, "blocks.0.attn.q"), architecture.n_head)
    keys = _by_head(_folded(weights, architecture, "blocks.0.attn.k"), key_heads)
    return HeadWeights(queries, np.repeat(keys, architecture.n_head // key_heads, axis=0))


def _folded(weights: Weights, architecture: Architecture, role: str) -> Float[Array, "d m"]:
    """Return a matrix with the gains, and the centering, of the norms before it folded in."""
    W = np.asarray(weights[role], np.float64)
    for gain in _gains(weights):
        W = gain[:, None] * W
        if architecture.norm == "layer":
            W = W - W.mean(axis=0)
    return W


def _by_head(W: Float[Array, "d m"], heads: int) -> Float[Array, "heads d d_head"]:
    return W.reshape(len(W), heads, -1).transpose(1, 0, 2)


def _tokens_per_turn(turns: float, rows: int) -> float | None:
    return (rows - 1) / abs(turns) if abs(turns) >= forms.LEAST_TURNS else None


def _described(c: Float[Array, "heads k k"], turns: float, rows: int) -> list[HeadReading]:
    size, plane = forms.sizes(c), forms.plane_energy(c)
    same, quarter = forms.rotation_energy(c)
    median, period = float(np.median(size)), _tokens_per_turn(turns, rows)
    back = np.degrees(forms.angles(c) * np.sign(turns))
    found: list[HeadReading] = []
    for head in range(len(c)):
        there, degrees = plane[head] > 0, None if period is None else float(back[head])
        found.append({
            "head": head,
            "times_median": float(size[head]) / median if median else None,
            "in_plane": float(plane[head] / size[head] ** 2) if size[head] else None,
            "rotation": float((same[head] + quarter[head]) / plane[head]) if there else None,
            "degrees_back": degrees if there else None,
            "tokens_back": degrees / 360 * period if there and period and degrees is not None else None,
        })  # fmt: skip
    return found


def _effects(values: Float[Array, "3"]) -> ReadingEffects:
    times_median, in_plane, turned = (float(value) for value in values)
    return {"times_median": finite(times_median), "in_plane": in_plane, "turned": turned}


def _chance(heads: HeadWeights, lengths: Float[Array, " k"]) -> ReadingChances:
    rng = np.random.default_rng(SEED)
    together, apart = (forms.turned_effects(heads, lengths, DRAWS, rng, together=both) for both in (True, False))
    larger = np.maximum(together, apart)
    return {
        "times_median": drawn(NULL, larger[:, 0]) if np.isfinite(larger[:, 0]).all() else None,
        "in_plane": drawn(NULL, larger[:, 1]),
        "turned": drawn(NULL, larger[:, 2]),
    }


def _intervals(
    raw: Float[Array, "heads k k"], scores: Float[Array, "rows k"], measured: Float[Array, "3"]
) -> ReadingIntervals:
    """Return the intervals, widened to what was measured where resampling can only lower or raise it."""
    weights = block_weights(len(scores), RESAMPLES, np.random.default_rng(SEED))
    values = np.vstack([forms.resampled_effects(raw, scores, weights), measured])
    low, high = np.quantile(values, [0.025, 0.975], axis=0)
    low, high = np.minimum(low, measured), np.maximum(high, measured)
    return {
        "times_median": [float(low[0]), float(high[0])] if np.isfinite(high[0]) else None,
        "in_plane": [float(low[1]), float(high[1])],
        "turned": [float(low[2]), float(high[2])],
    }
