import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.inputs import Inputs, model_of
from generators.findings.measured import Interval, Measurements, StoredChance, table_of
from generators.findings.nonconstant_rows import nonconstant_positions
from generators.findings.nulls import DRAWS, drawn
from generators.findings.running import FOLDS, SEED, Ran, first_windows, folds_of, ran
from generators.findings.stream.mlps import MlpRow, mlp_rows
from generators.findings.stream.moments import Moments
from generators.findings.stream.removed import MeanRemoved, mean_removed
from generators.maths.curve import principal_scores
from generators.maths.ranks import pearson
from generators.maths.resampling import chance, jackknife
from generators.maths.spectra import energy_share, right_singular_vectors, signed, subspace_size, variance_ratio
from generators.maths.turning import look_back, offsets, planes, winding

WINDOWS = 256
COMPONENTS = 8
LOOK_BACK = 10  # tokens back
MLP_WINDOWS = 64
ROTATIONS = 199  # rotations of one side, for the null of the incoherence


class StageRow(TypedDict):
    """The stream at one depth: `layer` i is what block i is given, the last is what the model returns.

    `share` is that of the variance between positions, `winding` how often the curve goes round (the strongest plane's
    share x turns x steadiness), `look_back_gain` that of a rotation over predicting no movement, ten tokens back,
    `in_P` the share of the curve's energy in the leading directions of P, `along_ones` the mean squared
    cosine of states with the vector of ones, times d.
    """

    layer: int
    share: float
    share_low: float
    share_high: float
    reliability: float | None
    ev3: float
    ev3_low: float
    ev3_high: float
    winding: float
    look_back_gain: float | None
    in_P: float | None
    participation_ratio: float
    decoded: float
    incoherence: float
    along_ones: float


class AllOnes(TypedDict):
    """How much of the states at the middle lies along the vector of ones, which centering in a layer norm removes.

    `value` is the mean squared cosine times d, with its 95 % interval; `chance` is that of vectors of random signs.
    """

    value: float
    interval: Interval
    chance: StoredChance


class Incoherence(TypedDict):
    """What chance gives for the incoherence at the middle, one side rotated at random."""

    median: float
    limit: float
    draws: int


class StreamMetrics(TypedDict):
    """Numbers by layer; `middle` is the layer at half the depth."""

    layers: list[StageRow]
    middle: int
    incoherence_by_chance: Incoherence
    has_position_embedding: bool
    chance_in_P: float | None
    all_ones: AllOnes
    mlps: list[MlpRow]
    mean_removed: MeanRemoved
    ran: Ran


def measure(inputs: Inputs) -> Measurements[StreamMetrics]:
    """Measure the mean hidden state at each position over 256 windows, layer by layer.

    On the first of these windows also what the MLPs write for one token at different positions, and what is lost with
    the mean of what the first block is given. Reads `position_embedding` (n, d) where there is one, to compare
    directions.
    """
    run = model_of(inputs)
    windows = run.windows(WINDOWS, SEED)
    n_layer, d = inputs.architecture.n_layer, inputs.architecture.d_model
    n, folds = windows.ids.shape[1], folds_of(windows.files)
    stages = [Moments(folds=folds, n=n, d=d) for _ in range(n_layer + 1)]
    run.hidden_states(windows.ids, lambda stage, begin, states: stages[stage].add(begin, states))
    basis = _basis(inputs)
    rows, points = [], []
    for layer, moments in enumerate(stages):
        row, scores = _stage(layer, moments, basis)
        rows.append(row)
        points.append(scores)
    middle = n_layer // 2
    mlps = mlp_rows(run, first_windows(windows, MLP_WINDOWS))
    metrics = StreamMetrics(
        layers=rows,
        middle=middle,
        incoherence_by_chance=_chance(stages[middle]),
        has_position_embedding=basis is not None,
        chance_in_P=None if basis is None else basis.shape[1] / d,
        all_ones=_all_ones(stages[middle]),
        mlps=mlps,
        mean_removed=mean_removed(run, windows, *stages[0].mean()),
        ran=ran(run, windows),
    )
    tables = {"layers": table_of("Positions by layer", StageRow, rows)}
    if mlps:
        title = "What the MLPs write, by position and by token"
        tables["mlps"] = table_of(title, MlpRow, mlps)
    return Measurements(metrics, tables, {"curves": np.stack(points).astype(np.float32)})


def _basis(inputs: Inputs) -> Float[Array, "d k"] | None:
    P = nonconstant_positions(inputs.weights)
    if P is None or P.shape[1] != inputs.architecture.d_model:
        return None
    return right_singular_vectors(P, subspace_size(*P.shape))


def _stage(layer: int, moments: Moments, basis: Float[Array, "d k"] | None) -> tuple[StageRow, Float[Array, "m 3"]]:
    """Return the numbers of one stage and its curve in three components, position 0 left out."""
    curve = moments.position_means()[1:]
    found = principal_scores(curve, COMPONENTS)
    scores, ratio = found.values, variance_ratio(curve)
    share, ev3, counts = moments.share(), float(ratio[:3].sum()), moments.counts()
    share_low, share_high = jackknife(np.array([moments.share(fold) for fold in range(FOLDS)]), share, counts)
    ev3_low, ev3_high = jackknife(
        np.array([_ev3(moments.position_means(fold)[1:]) for fold in range(FOLDS)]), ev3, counts
    )
    even, odd = (half[1:] - half[1:].mean(axis=0) for half in moments.halves())
    row = StageRow(
        layer=layer,
        share=share,
        share_low=share_low,
        share_high=share_high,
        reliability=pearson(even.ravel(), odd.ravel()),
        ev3=ev3,
        ev3_low=ev3_low,
        ev3_high=ev3_high,
        winding=winding(planes(scores, found.energy)) if ev3 else 0.0,
        look_back_gain=look_back(scores, LOOK_BACK).gain if ev3 and LOOK_BACK in offsets(len(curve)) else None,
        in_P=None if basis is None else energy_share((curve - curve.mean(axis=0)).T, basis),
        participation_ratio=float(1 / np.sum(ratio**2)) if ev3 else 0.0,
        decoded=moments.decoded(),
        incoherence=_largest_cosine(*_sides(moments)),
        along_ones=float(moments.along(_ones(moments.d))[0]),
    )
    return row, np.pad(scores[:, :3], ((0, 0), (0, max(0, 3 - scores.shape[1]))))


def _ev3(rows: Float[Array, "m d"]) -> float:
    centred = rows - rows.mean(axis=0)
    small = centred @ centred.T if len(centred) < centred.shape[1] else centred.T @ centred
    energies = np.linalg.eigvalsh(small)[::-1]
    total = float(energies.sum())
    return float(energies[:3].sum()) / total if total > 0 else 0.0


def _sides(moments: Moments) -> tuple[Float[Array, "m d"], Float[Array, "windows d"]]:
    """Return the centred means of positions and of windows, each at unit length."""
    return _unit(moments.position_means()[1:]), _unit(moments.contexts)


def _unit(rows: Float[Array, "m d"]) -> Float[Array, "m d"]:
    centred = rows - rows.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.divide(centred, lengths, out=np.zeros_like(centred), where=lengths > 0)


def _largest_cosine(positions: Float[Array, "m d"], contexts: Float[Array, "windows d"]) -> float:
    return float(np.abs(positions @ contexts.T).max())


def _chance(moments: Moments) -> Incoherence:
    """Return what the incoherence is when the positions are turned at random against the windows."""
    positions, contexts = _sides(moments)
    rng = np.random.default_rng(SEED)
    # Turning acts on the span alone: random orthonormal directions take the place of its own.
    u, s, _ = np.linalg.svd(positions, full_matrices=False)
    u *= signed(u.T)
    nonzero = s > s[0] * 1e-12 if len(s) and s[0] > 0 else np.zeros(len(s), bool)
    span = u[:, nonzero] * s[nonzero]
    drawn = []
    for _ in range(ROTATIONS):
        turned = np.linalg.qr(rng.standard_normal((positions.shape[1], span.shape[1])))[0]
        drawn.append(_largest_cosine(span @ turned.T, contexts))
    null = chance(np.array(drawn), "at most")
    return Incoherence(median=null.median, limit=null.limit, draws=null.draws)


def _ones(d: int) -> Float[Array, "1 d"]:
    return np.ones((1, d))


def _all_ones(moments: Moments) -> AllOnes:
    value = float(moments.along(_ones(moments.d))[0])
    without = np.array([moments.along(_ones(moments.d), fold)[0] for fold in range(FOLDS)])
    signs = np.random.default_rng(SEED).choice([-1.0, 1.0], (DRAWS, moments.d))
    return AllOnes(
        value=value,
        interval=list(jackknife(without, value, moments.counts())),
        chance=drawn("vectors of random signs", moments.along(signs), "at most"),
    )
