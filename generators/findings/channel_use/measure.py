from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.runs import Run, Windows
from generators.findings.inputs import Inputs, model_of
from generators.findings.measured import Measurements, row_of, table_of
from generators.findings.running import SEED, Ran, first_windows, mean_over_windows, ran
from generators.findings.sizes import nonconstant_positions
from generators.maths.channels import consistent_channel
from generators.maths.ranks import pearson, spearman, strongest_channel

Why = Literal["frequency", "ln2", "position"]
WINDOWS = 32
WIDE = 256  # channels; wider models hold a random sample, each on one batch of windows
SWEPT = 128  # channels in that sample
BATCH = 4
PASSES = 5 + SWEPT * BATCH / WINDOWS  # passes over all windows
CHANNEL_SEED = 138


class ChannelUseRow(TypedDict):
    """One channel held at its mean: what it costs, and what becomes of the predictions.

    `unigram_rho` is the rank correlation over tokens of the mean change of log-probability with log-frequency, and
    `divergence` that of the predictions from the distribution of frequencies, in nats; None where the model predicts
    no tokens or frequencies aren't known.
    """

    channel: int
    why: Why
    cost: float
    low: float
    high: float
    unigram_rho: float | None
    divergence: float | None


class ValueRow(TypedDict):
    """Correlation of a channel's value, into a layer, with the log-frequency of the token there and of the next."""

    channel: int
    why: Why
    layer: int
    token_there: float | None
    next_token: float | None


class SweptRow(TypedDict):
    channel: int
    cost: float
    unigram_rho: float | None


class ChannelUseMetrics(TypedDict):
    """Numbers of the channels that findings name, and of all; `base_divergence` is that of the model as it is.

    `swept` has every channel on the first `swept_windows` windows; in wide models those named and others drawn.
    """

    unit: str
    base_divergence: float | None
    channels: list[ChannelUseRow]
    swept: list[SweptRow]
    swept_windows: int
    values: list[ValueRow]
    proxy: bool | None
    ran: Ran


def measure(inputs: Inputs) -> Measurements[ChannelUseMetrics]:
    """Measure the loss and predictions with one channel at a time held at its mean in the stream.

    The model runs on 32 windows once for every channel; if wider than 256, with 128 channels on at most four windows.
    """
    run = model_of(inputs)
    wide = inputs.architecture.d_model > WIDE
    windows = run.windows(WINDOWS, SEED, PASSES if wide else 5 + inputs.architecture.d_model)
    best = inputs.frequencies[0] if inputs.frequencies else None
    log_frequency = None if best is None else np.asarray(best.log_frequency, np.float64)
    named = _named(inputs, log_frequency)
    trial = _Trial(inputs, windows, log_frequency)
    means = run.stage_means(windows.ids).mean(axis=1)
    rows = []
    for channel, why in named:
        costs, held = trial.held(channel, means)
        cost = mean_over_windows(costs, windows.files)
        found = {"cost": cost["mean"], "low": cost["low"], "high": cost["high"], "unigram_rho": held.rho(trial.base)}
        rows.append(row_of(ChannelUseRow, held, channel=channel, why=why, **found))
    batch = first_windows(windows, max(1, len(windows.ids) * BATCH // WINDOWS)) if wide else windows
    few, swept = _Trial(inputs, batch, log_frequency, divergence=False), []
    for channel in sorted({*drawn_to_sweep(inputs.architecture.d_model), *(channel for channel, _ in named)}):
        costs, held = few.held(channel, means)
        swept.append(SweptRow(channel=channel, cost=float(costs.mean()), unigram_rho=held.rho(few.base)))
    values = [] if log_frequency is None else _values(run, windows, named, log_frequency, inputs.architecture.n_layer)
    metrics = ChannelUseMetrics(
        unit=trial.loss.unit,
        base_divergence=trial.base.divergence,
        channels=rows,
        swept=swept,
        swept_windows=len(batch.ids),
        values=values,
        proxy=None if best is None else best.proxy,
        ran=ran(run, windows),
    )
    tables = {
        "channels": table_of("Channels held at their mean", ChannelUseRow, rows),
        "swept": table_of("Every channel held at its mean", SweptRow, swept),
    }
    if values:
        title = "Values of the channels and log-frequencies"
        tables["values"] = table_of(title, ValueRow, values)
    return Measurements(metrics, tables)


def _named(inputs: Inputs, log_frequency: Float[Array, " V"] | None) -> list[tuple[int, Why]]:
    found: dict[int, Why] = {}
    width = inputs.architecture.d_model
    if log_frequency is not None and (E := inputs.weights["token_embedding"]).shape[1] == width:
        found.setdefault(strongest_channel(E, log_frequency), "frequency")  # E has the stream's channels
    roles = [f"blocks.{i}.ln2.gain" for i in range(inputs.architecture.n_layer)]
    gains = [np.abs(np.asarray(inputs.weights[role], np.float64)) for role in roles if role in inputs.weights]
    top = consistent_channel(gains)
    if top is not None:
        found.setdefault(top["channel"], "ln2")
    P = nonconstant_positions(inputs.weights)
    if P is not None and P.shape[1] == width:
        found.setdefault(int(np.argmax(P[1:].std(axis=0))), "position")
    return list(found.items())


def drawn_to_sweep(d: int) -> list[int]:
    """Return the channels that are held whatever findings say: all, or some drawn where there are many."""
    return np.random.default_rng(CHANNEL_SEED).permutation(d)[: d if d <= WIDE else SWEPT].tolist()


class _Predictions:
    """The mean log-probability of every token, and the divergence from the distribution of frequencies."""

    def __init__(self, log_frequency: Float[Array, " V"] | None, *, divergence: bool = True) -> None:
        self.log_frequency = log_frequency
        self.unigram: Array | None = None
        if log_frequency is not None and divergence:
            known = np.where(np.isfinite(log_frequency), log_frequency, np.nanmin(log_frequency))
            self.unigram = (known - np.logaddexp.reduce(known)).astype(np.float32)
        self._sums: Array | None = None
        self._count, self._divergence = 0, 0.0

    def see(self, _: int, predictions: Float[Array, "tokens V"], wanted: Int[Array, " tokens"]) -> None:
        sums = predictions.sum(axis=0, dtype=np.float64)
        self._sums = sums if self._sums is None else self._sums + sums
        self._count += len(wanted)
        if self.unigram is not None:
            apart = predictions - self.unigram
            self._divergence += float(np.einsum("tv,tv->", np.exp(predictions), apart))

    @property
    def mean(self) -> Float[Array, " V"] | None:
        return None if self._sums is None else self._sums / self._count

    @property
    def divergence(self) -> float | None:
        return self._divergence / self._count if self._count and self.unigram is not None else None

    def rho(self, before: "_Predictions") -> float | None:
        now, then, log_frequency = self.mean, before.mean, self.log_frequency
        if now is None or then is None or log_frequency is None:
            return None
        known = np.isfinite(log_frequency)
        return spearman((now - then)[known], log_frequency[known])


class _Trial:
    """Costs of holding one channel at a time at its mean, on some windows, and what becomes of the predictions."""

    def __init__(
        self, inputs: Inputs, windows: Windows, log_frequency: Float[Array, " V"] | None, *, divergence: bool = True
    ) -> None:
        self.run = model_of(inputs)
        self.loss = self.run.loss(windows)
        self.last = not inputs.architecture.post_norm  # models that end with a block have no final norm
        self.base = _Predictions(log_frequency, divergence=divergence)
        self.before = self._per_window(self.base)

    def held(self, channel: int, means: Float[Array, "stages d"]) -> tuple[Float[Array, " windows"], _Predictions]:
        held = _Predictions(self.base.log_frequency, divergence=self.base.unigram is not None)
        with self.run.held([channel], means[:, [channel]], last=self.last):
            return self._per_window(held) - self.before, held

    def _per_window(self, seen: _Predictions) -> Float[Array, " windows"]:
        return self.loss.per_window(seen.see if self.run.predicts else None)


def _values(
    run: Run, windows: Windows, named: Sequence[tuple[int, Why]], log_frequency: Float[Array, " V"], n_layer: int
) -> list[ValueRow]:
    channels = [channel for channel, _ in named]
    seen = np.empty((n_layer, *windows.ids.shape, len(channels)), np.float32)

    def see(stage: int, begin: int, states: Float[Array, "batch n d"]) -> None:
        if stage < n_layer:
            seen[stage, begin : begin + len(states)] = states[..., channels]

    run.hidden_states(windows.ids, see)
    text = slice(*windows.inner)
    there = log_frequency[windows.ids[:, text]]
    rows: list[ValueRow] = []
    for index, (channel, why) in enumerate(named):
        for layer in range(n_layer):
            values = seen[layer, :, text, index].astype(np.float64)
            rows.append(
                ValueRow(
                    channel=channel,
                    why=why,
                    layer=layer,
                    token_there=_correlation(values, there),
                    next_token=_correlation(values[:, :-1], there[:, 1:]),
                )
            )
    return rows


def _correlation(values: Float[Array, "windows m"], wanted: Float[Array, "windows m"]) -> float | None:
    known = np.isfinite(wanted)
    return pearson(values[known], wanted[known]) if known.sum() > 2 else None
