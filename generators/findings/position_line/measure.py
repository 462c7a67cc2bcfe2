import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.runs import Run, WindowLoss
from generators.findings import running
from generators.findings.inputs import Inputs, Weights, model_of
from generators.findings.measured import Measurements, StoredChance, table_of
from generators.findings.nulls import DRAWS, drawn
from generators.findings.position_means import PositionMeans
from generators.maths import surrogates
from generators.maths.curve import principal_scores
from generators.maths.ranks import pearson
from generators.maths.rotations import channel_variances
from generators.maths.turning import COMPONENTS

WINDOWS = 256
HELD_WINDOWS = 32
SWEPT_WINDOWS = 4  # windows for other channels, whose costs are compared only with one another
OTHERS = 99
FEWEST_OTHERS = 99  # needed for a rank as rare as 1 in 100
CHANNEL_SEED = 126
PASSES = WINDOWS + 4 * HELD_WINDOWS + OTHERS * SWEPT_WINDOWS


class ChannelCost(TypedDict):
    """Loss that holding one channel at its mean adds, over windows and positions, and at its mean per position.

    `swept` is the first of these on few windows, `others` are other channels there, drawn with a seed or all.
    """

    channel: int
    unit: str
    at_its_mean: running.WindowMean
    per_position: running.WindowMean
    swept: float
    others: list[float]


class LineRow(TypedDict):
    """The curve at one depth: `layer` i is what block i is given, the last is what the model returns.

    `line_share` is that of the curve's variance in its first component, `r` and `r_log` the |correlation| of that
    component with the position and with its logarithm. `channel` holds the largest share of the curve's variance.
    Gains are those of the next two norms there, over the median |gain|.
    """

    layer: int
    line_share: float
    line_low: float
    line_high: float
    r: float
    r_log: float
    reliability: float
    channel: int
    channel_share: float
    channel_low: float
    channel_high: float
    ln1_gain: float | None
    ln2_gain: float | None


class PositionLineMetrics(TypedDict):
    """Numbers by layer; `middle` is the layer at half the depth, whose strongest channel `cost` is about."""

    layers: list[LineRow]
    middle: int
    straight_by_chance: list[StoredChance]
    channel_by_chance: StoredChance
    cost: ChannelCost
    ran: running.Ran


def measure(inputs: Inputs) -> Measurements[PositionLineMetrics]:
    """Measure the mean hidden state at each position over 256 windows, layer by layer, and hold channels constant."""
    run = model_of(inputs)
    windows = run.windows(WINDOWS, running.SEED)
    n_layer, d = inputs.architecture.n_layer, inputs.architecture.d_model
    n = windows.ids.shape[1]
    text, folds = running.text_columns(windows), running.folds_of(windows.files)
    stages = [PositionMeans(folds=folds, n=n, d=d, text=text) for _ in range(n_layer + 1)]
    run.hidden_states(windows.ids, lambda stage, begin, states: stages[stage].add(begin, states))
    rows = [_row(layer, sums, inputs.weights if layer < n_layer else {}) for layer, sums in enumerate(stages)]
    middle = n_layer // 2
    curve = stages[middle].curve()
    metrics = PositionLineMetrics(
        layers=rows,
        middle=middle,
        straight_by_chance=_straight(curve),
        channel_by_chance=_turned(curve),
        cost=cost_of(run, rows[middle]["channel"], d, not inputs.architecture.post_norm),
        ran=running.ran(run, windows),
    )
    table = table_of("The curve of positions by layer", LineRow, rows)
    points = np.stack([_scores(sums.curve()) for sums in stages]).astype(np.float32)
    positions = np.arange(n, dtype=np.int32)[text]
    return Measurements(metrics, {"line": table}, {"scores": points, "positions": positions})


def _row(layer: int, sums: PositionMeans, weights: Weights) -> LineRow:
    curve = sums.curve()
    shares = channel_shares(curve)
    channel = int(np.argmax(shares))
    line, first = first_component(curve)
    without = [sums.curve(fold) for fold in range(running.FOLDS)]
    line_low, line_high = sums.interval(line, lambda fold: first_component(without[fold])[0])
    channel_share = float(shares[channel])
    channel_low, channel_high = sums.interval(channel_share, lambda fold: channel_shares(without[fold])[channel])
    positions = np.arange(float(sums.n))[sums.text]
    even, odd = sums.halves()
    return LineRow(
        layer=layer,
        line_share=line,
        line_low=line_low,
        line_high=line_high,
        r=abs(pearson(first, positions) or 0.0),
        r_log=abs(pearson(first, np.log(positions)) or 0.0),
        reliability=pearson(even.ravel(), odd.ravel()) or 0.0,
        channel=channel,
        channel_share=channel_share,
        channel_low=channel_low,
        channel_high=channel_high,
        ln1_gain=_gain(weights, f"blocks.{layer}.ln1.gain", channel),
        ln2_gain=_gain(weights, f"blocks.{layer}.ln2.gain", channel),
    )


def channel_shares(curve: Float[Array, "m d"]) -> Float[Array, " d"]:
    """Return the share of a curve's variance in every channel; shares of nothing are 0."""
    variances = curve.var(axis=0)
    total = variances.sum()
    return variances / total if total > 0 else variances


def first_component(curve: Float[Array, "m d"]) -> tuple[float, Float[Array, " m"]]:
    """Return the share of a curve's variance in its first principal component, and that component."""
    leading = principal_scores(curve, 1)
    if not leading.values.size:
        return 0.0, np.zeros(len(curve))
    scores = leading.values[:, 0]
    return float(scores @ scores) / leading.energy, scores


def _scores(curve: Float[Array, "m d"]) -> Float[Array, "m 3"]:
    scores = principal_scores(curve, 3).values
    return np.pad(scores, ((0, 0), (0, 3 - scores.shape[1])))


def _gain(weights: Weights, role: str, channel: int) -> float | None:
    """Return a norm's gain at a channel relative to its median |gain|, None where there is no such norm."""
    if role not in weights:
        return None
    gains = np.abs(np.asarray(weights[role], np.float64))
    typical = float(np.median(gains))
    return float(gains[channel]) / typical if typical > 0 else None


def _straight(curve: Float[Array, "m d"]) -> list[StoredChance]:
    """Return the share that the first component of random curves has: as smooth as this one, and random walks."""
    rng = np.random.default_rng(running.SEED)
    m = len(curve)
    smoothness = surrogates.lag_one(principal_scores(curve, COMPONENTS).values)
    widths = surrogates.matched_widths(smoothness, m, DRAWS, rng)
    smooth = np.array([first_component(surrogates.smooth_curve(m, width, rng))[0] for width in widths])
    walks = np.array([first_component(surrogates.random_walk(m, rng))[0] for _ in range(DRAWS)])
    return [drawn("curves as smooth as this one", smooth), drawn("random walks", walks)]


def _turned(curve: Float[Array, "m d"]) -> StoredChance:
    """Return the largest share of a channel where the stream is turned at random."""
    energies = np.linalg.svd(curve - curve.mean(axis=0), compute_uv=False) ** 2
    spreads = channel_variances(energies, curve.shape[1], DRAWS, np.random.default_rng(running.SEED))
    totals = spreads.sum(axis=1)
    shares = np.divide(spreads.max(axis=1), totals, out=np.zeros(DRAWS), where=totals > 0)
    return drawn("streams turned at random", shares)


def cost_of(run: Run, channel: int, d: int, last: bool) -> ChannelCost:
    """Hold a channel, and others beside it; `last` also before the final norm, which some models don't have."""
    windows = run.windows(HELD_WINDOWS, running.SEED, 4)
    loss = run.loss(windows)
    base = loss.per_window()
    by_position = run.stage_means(windows.ids)
    means = by_position.mean(axis=1)

    def held(loss: WindowLoss, channel: int, values: Float[Array, "stages ... d"]) -> Float[Array, " windows"]:
        with run.held([channel], values[..., [channel]], last=last):
            return loss.per_window()

    flat, exact = (held(loss, channel, values) - base for values in (means, by_position))
    few = running.first_windows(windows, SWEPT_WINDOWS)
    count = run.affordable(OTHERS, few.ids.shape[1], len(few.ids))
    order = np.random.default_rng(CHANNEL_SEED).permutation(d).tolist()
    swept = [channel, *[other for other in order if other != channel][:count]]
    few_loss = run.loss(few)
    few_base = few_loss.per_window().mean()
    costs = [float(held(few_loss, other, means).mean() - few_base) for other in swept]
    return ChannelCost(
        channel=channel,
        unit=loss.unit,
        at_its_mean=running.mean_over_windows(flat, windows.files),
        per_position=running.mean_over_windows(exact, windows.files),
        swept=costs[0],
        others=costs[1:],
    )
