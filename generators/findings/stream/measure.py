import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.runs import Run, Windows
from generators.findings import running
from generators.findings.inputs import Inputs, model_of
from generators.findings.measured import Interval, Measurements, StoredChance, row_of, table_of
from generators.findings.nulls import DRAWS, drawn
from generators.findings.sizes import nonconstant_positions
from generators.findings.stream.moments import Moments, unit
from generators.maths.curve import explained_variance, principal_scores
from generators.maths.ranks import pearson
from generators.maths.resampling import chance, jackknife
from generators.maths.spectra import energy_share, right_singular_vectors, signed, subspace_size, variance_ratio

WINDOWS = 256
COMPONENTS = 8
MLP_WINDOWS = 64
ROTATIONS = 199  # rotations of one side, for the null of the incoherence
SHIFTED_WINDOWS = 4
SHIFTS = 9  # shifts in random directions

TOKENS = 256  # most frequent tokens of the text
FEWEST = 16  # minimum occurrences of a token


class MlpRow(TypedDict):
    """One layer's MLP: which share of the variance of what it writes lies between positions, and between tokens.

    `position` is what positions differ by where the token is the same; both are freed of sampling noise.
    """

    layer: int
    position: float
    position_low: float
    position_high: float
    token: float


class MeanRemoved(TypedDict):
    """What it costs to take the mean away, and what the costliest of some random shifts of that length costs.

    `share` is that of the mean in the mean squared length; `times` is the first cost over the second, None where no
    random shift costs anything.
    """

    unit: str
    share: float
    cost: float
    low: float
    high: float
    random: float
    shifts: int
    times: float | None
    times_low: float
    times_high: float
    windows: int


class StageRow(TypedDict):
    """The stream at one depth: `layer` i is what block i is given, the last is what the model returns.

    `share` is that of the variance between the positions compared (`text_columns`), `in_P` the share of the curve's
    energy in the leading directions of P.
    """

    layer: int
    share: float
    share_low: float
    share_high: float
    reliability: float | None
    ev3: float
    ev3_low: float
    ev3_high: float
    in_P: float | None
    decoded: float
    incoherence: float


class AllOnes(TypedDict):
    """How much of the states at the middle lies along the vector of ones, which centering in a layer norm removes.

    `value` is the mean squared cosine times d, with its 95 % interval; `chance` is that of vectors of random signs.
    """

    value: float
    interval: Interval
    chance: StoredChance


class Incoherence(TypedDict):
    median: float
    limit: float
    draws: int


class StreamMetrics(TypedDict):
    """Numbers by layer; `middle` is the layer at half the depth."""

    layers: list[StageRow]
    middle: int
    incoherence_by_chance: Incoherence
    has_position_embedding: bool
    all_ones: AllOnes
    mlps: list[MlpRow]
    mean_removed: MeanRemoved
    ran: running.Ran


def measure(inputs: Inputs) -> Measurements[StreamMetrics]:
    """Measure the mean hidden state at each position over 256 windows, layer by layer.

    On the first of these windows also what the MLPs write for one token at different positions, and what is lost with
    the mean of what the first block is given.
    """
    run = model_of(inputs)
    windows = run.windows(WINDOWS, running.SEED)
    n_layer, d = inputs.architecture.n_layer, inputs.architecture.d_model
    n, folds = windows.ids.shape[1], running.folds_of(windows.files)
    text = running.text_columns(windows)
    stages = [Moments(folds=folds, n=n, d=d, text=text) for _ in range(n_layer + 1)]
    run.hidden_states(windows.ids, lambda stage, begin, states: stages[stage].add(begin, states))
    P = nonconstant_positions(inputs.weights)
    basis = None if P is None or P.shape[1] != d else right_singular_vectors(P, subspace_size(*P.shape))
    found = [_stage(layer, moments, basis) for layer, moments in enumerate(stages)]
    rows, points = [row for row, _ in found], np.stack([scores for _, scores in found])
    middle = n_layer // 2
    mlps = mlp_rows(run, running.first_windows(windows, MLP_WINDOWS))
    metrics = StreamMetrics(
        layers=rows,
        middle=middle,
        incoherence_by_chance=_chance(stages[middle]),
        has_position_embedding=P is not None,
        all_ones=_all_ones(stages[middle]),
        mlps=mlps,
        mean_removed=mean_removed(run, windows, *stages[0].mean()),
        ran=running.ran(run, windows),
    )
    tables = {"layers": table_of("Positions by layer", StageRow, rows)}
    if mlps:
        title = "What the MLPs write, by position and by token"
        tables["mlps"] = table_of(title, MlpRow, mlps)
    positions = np.arange(n, dtype=np.int32)[text]
    return Measurements(metrics, tables, {"curves": points.astype(np.float32), "positions": positions})


def _stage(layer: int, moments: Moments, basis: Float[Array, "d k"] | None) -> tuple[StageRow, Float[Array, "m 3"]]:
    curve = moments.curve()
    scores, ratio = principal_scores(curve, COMPONENTS).values, variance_ratio(curve)
    share, ev3 = moments.share(), float(ratio[:3].sum())
    share_low, share_high = moments.interval(share, moments.share)
    ev3_low, ev3_high = moments.interval(ev3, lambda fold: explained_variance(moments.curve(fold)) or 0.0)
    even, odd = moments.halves()
    row = StageRow(
        layer=layer,
        share=share,
        share_low=share_low,
        share_high=share_high,
        reliability=pearson(even.ravel(), odd.ravel()),
        ev3=ev3,
        ev3_low=ev3_low,
        ev3_high=ev3_high,
        in_P=None if basis is None else energy_share((curve - curve.mean(axis=0)).T, basis),
        decoded=moments.decoded(),
        incoherence=_largest_cosine(*_sides(moments)),
    )
    return row, np.pad(scores[:, :3], ((0, 0), (0, max(0, 3 - scores.shape[1]))))


def _sides(moments: Moments) -> tuple[Float[Array, "m d"], Float[Array, "windows d"]]:
    curve, contexts = moments.curve(), moments.contexts
    return unit(curve - curve.mean(axis=0)), unit(contexts - contexts.mean(axis=0))


def _largest_cosine(positions: Float[Array, "m d"], contexts: Float[Array, "windows d"]) -> float:
    return float(np.abs(positions @ contexts.T).max())


def _chance(moments: Moments) -> Incoherence:
    """Return what the incoherence is when the positions are turned at random against the windows."""
    positions, contexts = _sides(moments)
    rng = np.random.default_rng(running.SEED)
    # Turning acts on the span alone: random orthonormal directions take the place of its own.
    u, s, _ = np.linalg.svd(positions, full_matrices=False)
    u *= signed(u.T)
    nonzero = s > s[0] * 1e-12 if len(s) and s[0] > 0 else np.zeros(len(s), bool)
    span = u[:, nonzero] * s[nonzero]
    drawn = []
    for _ in range(ROTATIONS):
        turned = np.linalg.qr(rng.standard_normal((positions.shape[1], span.shape[1])))[0]
        drawn.append(_largest_cosine(span @ turned.T, contexts))
    return row_of(Incoherence, chance(np.array(drawn), "at most"))


def _all_ones(moments: Moments) -> AllOnes:
    ones = np.ones((1, moments.d))
    value = float(moments.along(ones)[0])
    signs = np.random.default_rng(running.SEED).choice([-1.0, 1.0], (DRAWS, moments.d))
    return AllOnes(
        value=value,
        interval=list(moments.interval(value, lambda fold: moments.along(ones, fold)[0])),
        chance=drawn("vectors of random signs", moments.along(signs), "at most"),
    )


def mean_removed(run: Run, windows: Windows, mean: Float[Array, " d"], share: float) -> MeanRemoved:
    few = running.first_windows(windows, SHIFTED_WINDOWS)
    loss = run.loss(few)
    base = loss.per_window()

    def cost(by: Float[Array, " d"]) -> Float[Array, " windows"]:
        with run.shifted(by):
            return loss.per_window() - base

    lost = cost(-mean)
    rng = np.random.default_rng(running.SEED)
    directions = rng.standard_normal((SHIFTS, len(mean)))
    directions *= np.linalg.norm(mean) / np.linalg.norm(directions, axis=1, keepdims=True)
    others = [cost(by) for by in directions]
    largest = max(others, key=lambda each: float(each.mean()))
    removed = running.mean_over_windows(lost, few.files)
    times, low, high = running.ratio_over_windows(lost, largest, few.files)
    return MeanRemoved(
        unit=loss.unit,
        share=share,
        cost=removed["mean"],
        low=removed["low"],
        high=removed["high"],
        random=float(largest.mean()),
        shifts=SHIFTS,
        times=times if largest.mean() > 0 else None,
        times_low=low,
        times_high=high,
        windows=len(few.ids),
    )


def mlp_rows(run: Run, windows: Windows) -> list[MlpRow]:
    """Return the numbers of every layer, on the tokens that occur most often.

    None where no token occurs often, or where what the MLPs write can't be seen.
    """
    found = _occurrences(windows)
    if found is None:
        return []
    which, folds, counts = found
    n, tokens = counts.shape[1:]
    layers, d = run.architecture.n_layer, run.architecture.d_model
    by_position = np.zeros((layers, running.FOLDS, n, d), np.float32)
    by_token = np.zeros((layers, running.FOLDS, tokens, d), np.float32)
    squares = np.zeros((layers, running.FOLDS))

    def see(layer: int, begin: int, wrote: Float[Array, "batch n d"]) -> None:
        for window, written in enumerate(wrote, start=begin):
            fold, places = folds[window], np.flatnonzero(which[window] >= 0)
            chosen = written[places]
            by_position[layer, fold, places] += chosen
            np.add.at(by_token[layer, fold], which[window, places], chosen)
            squares[layer, fold] += np.einsum("ij,ij->", chosen, chosen, dtype=np.float64)

    if not run.mlp_outputs(windows.ids, see):
        return []
    sizes = counts.sum(axis=(1, 2))
    rows = []
    for layer in range(layers):
        parts = by_position[layer], by_token[layer], squares[layer], counts
        position, token = _shares(*parts, np.ones(running.FOLDS, bool))
        without = np.array([_shares(*parts, np.arange(running.FOLDS) != fold)[0] for fold in range(running.FOLDS)])
        low, high = jackknife(without, position, sizes)
        rows.append(MlpRow(layer=layer, position=position, position_low=low, position_high=high, token=token))
    return rows


def _occurrences(
    windows: Windows,
) -> tuple[Int[Array, "windows n"], Int[Array, " windows"], Float[Array, "folds n tokens"]] | None:
    """Return where tokens are that occur often (-1 elsewhere), the folds of windows, and counts; None without any."""
    first, last = windows.inner
    ids = windows.ids[:, first + 1 : last]
    tokens, times = np.unique(ids, return_counts=True)
    often = tokens[np.argsort(-times, kind="stable")[:TOKENS]]
    often = np.sort(often[np.isin(often, tokens[times >= FEWEST])])
    if len(often) < 2:
        return None
    places = np.full(windows.ids.max() + 1, -1)
    places[often] = np.arange(len(often))
    which, folds = places[windows.ids], running.folds_of(windows.files)
    which[:, : first + 1] = which[:, last:] = -1
    counts = np.zeros((running.FOLDS, windows.ids.shape[1], len(often)))
    window, place = np.nonzero(which >= 0)
    np.add.at(counts, (folds[window], place, which[window, place]), 1)
    return which, folds, counts


def _shares(
    by_position: Float[Array, "folds n d"],
    by_token: Float[Array, "folds tokens d"],
    squares: Float[Array, " folds"],
    counts: Float[Array, "folds n tokens"],
    kept: Bool[Array, " folds"],
) -> tuple[float, float]:
    """Return the shares of variance between positions at equal token, and between tokens.

    The components of variance of two unbalanced one-way layouts: of tokens, then of positions in what is left when
    every token's mean is taken away.
    """
    table = counts[kept].sum(axis=0)
    of_token, of_position = table.sum(axis=0), table.sum(axis=1)
    there, used = of_token > 0, of_position > 0
    total, sums = of_token.sum(), by_token[kept].sum(axis=0, dtype=np.float64)
    means = np.divide(sums, of_token[:, None], out=np.zeros_like(sums), where=there[:, None])
    between = float(of_token @ np.sum((means - sums.sum(axis=0) / total) ** 2, axis=1))
    within = float(squares[kept].sum()) - float(of_token @ np.sum(means**2, axis=1))
    away = by_position[kept].sum(axis=0, dtype=np.float64)[used] - table[used] @ means
    along = float(np.sum(np.sum(away**2, axis=1) / of_position[used]))
    left = (within - along) / max(total - used.sum() - there.sum() + 1, 1.0)
    position = (along - (used.sum() - 1) * left) / (total - float(of_position @ of_position) / total)
    noise = within / max(total - there.sum(), 1.0)
    token = (between - (there.sum() - 1) * noise) / (total - float(of_token @ of_token) / total)
    whole = max(position, 0.0) + max(token, 0.0) + max(left, 0.0)
    return (position / whole, token / whole) if whole > 0 else (0.0, 0.0)
