import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.inputs import Inputs, model_of
from generators.findings.measured import Measurements, StoredChance, table_of
from generators.findings.nulls import DRAWS, drawn
from generators.findings.running import SEED, Ran, file_weights, ran
from generators.maths.channels import consistent_channel
from generators.maths.ranks import channel_correlations, rank
from generators.maths.resampling import interval

WINDOWS = 128
PLACES = 24  # seeded random positions per window
SHOWN = 8  # channels by layer, in the table and the figure
ALIKE = 0.03  # smallest mean cosine for which shares are meaningful


class RogueRow(TypedDict):
    """The stream at one depth: mean cosine of states at different places, and what makes it.

    `channel` has the largest `share` of the mean cosine; `without_1` is what the mean cosine is without it.
    """

    layer: int
    mean_cosine: float
    channel: int
    share: float
    low: float
    high: float
    without_1: float


class RankOfChannel(TypedDict):
    """Which place the rogue channel has among all by the `size` of some measure; 1 is the first."""

    first: int
    rank: int
    size: float
    channels: int


class RogueMetrics(TypedDict):
    """Numbers by depth; `worst` is the depth where one channel's share is largest, of those with alike states.

    `ln2` and `frequency` are about that channel; without such a depth, about that of the largest mean cosine.
    """

    layers: list[RogueRow]
    worst: int | None
    largest_by_chance: StoredChance
    ln2: RankOfChannel | None
    frequency: RankOfChannel | None
    ran: Ran


def measure(inputs: Inputs) -> Measurements[RogueMetrics]:
    """Measure the mean cosine of 3,072 hidden states at each depth, and every channel's share in it."""
    run = model_of(inputs)
    windows = run.windows(WINDOWS, SEED)
    first, last = windows.inner
    first = max(first, 1)  # the first token's state is an exception
    count, places = len(windows.ids), min(PLACES, last - first)
    rng = np.random.default_rng(SEED)
    chosen = np.stack([first + rng.permutation(last - first)[:places] for _ in range(count)])
    d, depths = inputs.architecture.d_model, inputs.architecture.n_layer + 1
    states = np.empty((depths, count, places, d), np.float32)

    def see(stage: int, begin: int, seen: Float[Array, "batch n d"]) -> None:
        at = chosen[begin : begin + len(seen)]
        states[stage, begin : begin + len(seen)] = np.take_along_axis(seen, at[:, :, None], axis=1)

    run.hidden_states(windows.ids, see)
    found = [_row(layer, each, windows.files) for layer, each in enumerate(states)]
    rows, shares = [row for row, _ in found], np.stack([parts for _, parts in found])
    alike = [row for row in rows if row["mean_cosine"] >= ALIKE]
    worst = max(alike, key=lambda row: row["share"])["layer"] if alike else None
    shown = rows[worst] if worst is not None else max(rows, key=lambda row: row["mean_cosine"])
    # Where the stream is turned at random, channels share its mean cosine as they share a random direction.
    directions = np.random.default_rng(SEED).standard_normal((DRAWS, d)) ** 2
    metrics = RogueMetrics(
        layers=rows,
        worst=worst,
        largest_by_chance=drawn("streams turned at random", directions.max(axis=1) / directions.sum(axis=1)),
        ln2=_by_ln2(inputs, shown["channel"]),
        frequency=_by_frequency(inputs, shown["channel"]),
        ran=ran(run, windows),
    )
    listed = [
        {"layer": layer, "channel": int(c), "share": float(of[c])}
        for layer, of in enumerate(shares)
        for c in np.argsort(-of, kind="stable")[:SHOWN]
    ]
    tables = {
        "layers": table_of("How alike states are, by layer", RogueRow, rows),
        "shares": table_of("Channels' shares of the mean cosine", listed[0], listed),
    }
    return Measurements(metrics, tables, {"shares": shares.astype(np.float32)})


def mean_cosine(states: Float[Array, "n d"]) -> tuple[float, Float[Array, " d"]]:
    """Return the mean cosine of all pairs of different states, and every channel's part of it."""
    unit = _unit(states)
    parts = (unit.sum(axis=0) ** 2 - np.sum(unit**2, axis=0)) / (len(unit) * (len(unit) - 1))
    return float(parts.sum()), parts


def _unit(states: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
    exact = np.asarray(states, np.float64)
    lengths = np.linalg.norm(exact, axis=-1, keepdims=True)
    return np.divide(exact, lengths, out=np.zeros_like(exact), where=lengths > 0)


def _row(
    layer: int, states: Float[Array, "windows places d"], files: Int[Array, " windows"]
) -> tuple[RogueRow, Float[Array, " d"]]:
    flat = states.reshape(-1, states.shape[-1])
    mean, parts = mean_cosine(flat)
    channel = int(np.argmax(parts))
    unit = _unit(states)
    sums, squares = unit.sum(axis=1), np.sum(unit**2, axis=1)

    def resampled_share(weights: Float[Array, "draws windows"]) -> Float[Array, " draws"]:
        parts = (weights @ sums) ** 2 - (weights @ squares) / len(sums)
        wholes = parts.sum(axis=1)
        return np.divide(parts[:, channel], wholes, out=np.zeros_like(wholes), where=wholes > 0)

    low, high = interval(resampled_share(file_weights(files)))
    row = RogueRow(
        layer=layer,
        mean_cosine=mean,
        channel=channel,
        share=float(parts[channel]) / mean if mean > 0 else 0.0,
        low=low,
        high=high,
        without_1=mean_cosine(np.delete(flat, channel, axis=1))[0],
    )
    return row, parts / mean if mean > 0 else np.zeros_like(parts)


def _by_ln2(inputs: Inputs, channel: int) -> RankOfChannel | None:
    roles = [f"blocks.{i}.ln2.gain" for i in range(inputs.architecture.n_layer)]
    gains = [np.abs(np.asarray(inputs.weights[role], np.float64)) for role in roles if role in inputs.weights]
    top = consistent_channel(gains)
    if top is None:
        return None
    relative = np.median([gain / max(float(np.median(gain)), 1e-12) for gain in gains], axis=0)
    return _rank(relative, channel, top["channel"])


def _by_frequency(inputs: Inputs, channel: int) -> RankOfChannel | None:
    known = next((one for one in inputs.frequencies if not one.proxy), None)
    if known is None or "token_embedding" not in inputs.weights:
        return None
    E = np.asarray(inputs.weights["token_embedding"])
    log_frequency = np.asarray(known.log_frequency, np.float64)
    finite = np.isfinite(log_frequency)
    if E.shape[1] != inputs.architecture.d_model or finite.sum() < 3:
        return None
    rho = np.abs(channel_correlations(E, [rank(log_frequency, finite)])[0])
    return _rank(rho, channel, int(np.argmax(rho)))


def _rank(values: Float[Array, " d"], channel: int, first: int) -> RankOfChannel:
    rank = 1 + int(np.sum(values > values[channel]))
    return RankOfChannel(first=first, rank=rank, size=float(values[channel]), channels=len(values))
