import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.architecture import Architecture
from generators.findings.inputs import Inputs, NotApplicableError, Weights
from generators.findings.measured import Interval, Measurements, StoredChance, finite, table_of
from generators.findings.nulls import DRAWS, RESAMPLES, drawn
from generators.findings.position_reading import forms
from generators.findings.sizes import InStream, check_positions, check_width, nonconstant_positions
from generators.maths import curve, turning
from generators.maths.resampling import block_weights

SEED = 20230716
NULL = "curves in random directions"


class HeadReading(TypedDict):
    """How one head of layer 0 reads the curve.

    `rotation` is the share of its reading in the main plane that is a rotation, None where it reads none of it.
    `best_offset` is how many tokens before the query the best matching key lies on average, of those that a query can
    reach; 0 is the query's own position.
    """

    head: int
    times_median: float | None
    in_plane: float | None
    rotation: float | None
    best_offset: int


class MainPlane(TypedDict):
    share: float


class ReadingEffects(TypedDict):
    """The largest size over the median; the share of all heads' reading that lies in the plane."""

    times_median: float | None
    in_plane: float


class ReadingChances(TypedDict):
    """What chance gives, by effect: the larger of queries and keys turned together, and turned apart."""

    times_median: StoredChance | None
    in_plane: StoredChance


class ReadingIntervals(TypedDict):
    """Stability ranges by effect; positions are resampled in blocks."""

    times_median: Interval | None
    in_plane: Interval


class PositionReadingMetrics(TypedDict):
    """How layer 0 reads the curve; `rotation` is the share of all reading in the plane that is a rotation."""

    heads: list[HeadReading]
    plane: MainPlane
    effects: ReadingEffects
    rotation: float
    chance: ReadingChances
    intervals: ReadingIntervals
    n_heads: int


def measure(inputs: Inputs) -> Measurements[PositionReadingMetrics]:
    """Measure how the first layer's heads read the position curve.

    Biases of queries and keys are left out: they add the same to all keys of a query, or to a key for all queries.
    """
    weights, architecture = InStream(inputs.weights), inputs.architecture
    P = _curve(weights, architecture)
    key_heads = architecture.n_kv_head or architecture.n_head
    queries = _by_head(weights, architecture, "blocks.0.attn.q", architecture.n_head)
    keys = _by_head(weights, architecture, "blocks.0.attn.k", key_heads)
    heads = queries, np.repeat(keys, architecture.n_head // key_heads, axis=0)
    leading = curve.principal_scores(P, turning.COMPONENTS)
    if leading.values.shape[1] < 2:
        raise NotApplicableError("The rows of P vary along one direction only: there is no plane to read.")
    lengths = np.linalg.norm(leading.values, axis=0)
    raw = forms.between(heads, leading.axes, leading.axes)
    c = forms.on_curve(raw, lengths)
    if not forms.plane_energy(c).any():
        raise NotApplicableError("Queries or keys of layer 0 are all zeros, or blind to the main plane of P.")
    effects = forms.effects(c)
    reach = max(1, len(P) // 4)
    offsets = np.arange(0 if architecture.causal else -reach, reach + 1)
    profiles = forms.profiles(raw, leading.values, offsets)
    metrics = PositionReadingMetrics(
        heads=_described(c, offsets[profiles.argmax(axis=1)]),
        plane={"share": float(np.sum(lengths[:2] ** 2)) / leading.energy},
        effects={"times_median": finite(effects[0]), "in_plane": float(effects[1])},
        rotation=float(forms.rotation_energy(c).sum() / forms.plane_energy(c).sum()),
        chance=_chance(heads, lengths),
        intervals=_intervals(raw, leading.values, effects),
        n_heads=architecture.n_head,
    )
    title = "How each head of layer 0 reads the position curve"
    return Measurements(metrics, {"heads": table_of(title, HeadReading, metrics["heads"])})


def _curve(weights: Weights, architecture: Architecture) -> Float[Array, "rows d"]:
    """Return the longest run of positions without an outlier, channels centred where a layer norm centres them."""
    check_positions(weights["position_embedding"])
    check_width(weights["position_embedding"], weights["blocks.0.attn.q"])
    P = nonconstant_positions(weights)
    if P is None:
        raise NotApplicableError("The rows of P are alike, all or all but the first: there is no curve to read.")
    run = curve.longest_run(len(P), curve.outlier_positions(P)[0])
    centred = architecture.norm == "layer" and bool(_gains(weights))
    return P[run] - P[run].mean(axis=1, keepdims=True) if centred else P[run]


def _gains(weights: Weights) -> list[Float[Array, " d"]]:
    """Return the gains between P and the queries, the nearest to the queries first."""
    roles = ("blocks.0.ln1.gain", "embedding_norm.gain")
    return [np.asarray(weights[role], np.float64) for role in roles if role in weights]


def _by_head(weights: Weights, architecture: Architecture, role: str, heads: int) -> Float[Array, "heads d d_head"]:
    """Return a matrix with the gains, and the centering, of the norms before it folded in."""
    W = np.asarray(weights[role], np.float64)
    for gain in _gains(weights):
        W = gain[:, None] * W
        if architecture.norm == "layer":
            W = W - W.mean(axis=0)
    return W.reshape(len(W), heads, -1).transpose(1, 0, 2)


def _described(c: Float[Array, "heads k k"], best: Int[Array, " heads"]) -> list[HeadReading]:
    size, plane, rotation = forms.sizes(c), forms.plane_energy(c), forms.rotation_energy(c)
    median = float(np.median(size))
    return [
        {
            "head": head,
            "times_median": float(size[head]) / median if median else None,
            "in_plane": float(plane[head] / size[head] ** 2) if size[head] else None,
            "rotation": float(rotation[head] / plane[head]) if plane[head] > 0 else None,
            "best_offset": int(best[head]),
        }
        for head in range(len(c))
    ]


def _chance(heads: forms.Heads, lengths: Float[Array, " k"]) -> ReadingChances:
    rng = np.random.default_rng(SEED)
    together, apart = (forms.turned_effects(heads, lengths, DRAWS, rng, together=both) for both in (True, False))
    larger = np.maximum(together, apart)
    return {
        "times_median": drawn(NULL, larger[:, 0]) if np.isfinite(larger[:, 0]).all() else None,
        "in_plane": drawn(NULL, larger[:, 1]),
    }


def _intervals(
    raw: Float[Array, "heads k k"], scores: Float[Array, "rows k"], measured: Float[Array, "2"]
) -> ReadingIntervals:
    """Return the intervals, widened to what was measured where resampling can only lower or raise it."""
    weights = block_weights(len(scores), RESAMPLES, np.random.default_rng(SEED))
    values = np.vstack([forms.resampled_effects(raw, scores, weights), measured])
    low, high = np.quantile(values, [0.025, 0.975], axis=0)
    low, high = np.minimum(low, measured), np.maximum(high, measured)
    return {
        "times_median": [float(low[0]), float(high[0])] if np.isfinite(high[0]) else None,
        "in_plane": [float(low[1]), float(high[1])],
    }
