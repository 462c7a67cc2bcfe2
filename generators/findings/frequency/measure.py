"""How channels, the norm and the first singular direction of token embeddings go with how often tokens occur."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.contract import Frequency, Inputs, Measurements, Table, Vocabulary, finite, table_of
from generators.findings.frequency.intervals import Correlation, correlations
from generators.findings.token_cells import TokenCells, cells, names
from generators.maths.blocks import norms
from generators.maths.channels import consistent_channel
from generators.maths.ranks import channel_correlations, rank, spearman
from generators.maths.spectra import right_singular_vectors

EXTREMES = 20  # tokens listed at either end
SAMPLE = 4096  # tokens drawn in figures
SEED = 20211138


class Source(TypedDict):
    """Where frequencies come from."""

    source: str
    label: str
    coverage: float
    proxy: bool


class ChannelRhos(TypedDict):
    """Rank correlations of every channel."""

    frequency: list[float]
    norm: list[float]
    index: list[float]


class ChannelRho(TypedDict):
    """One channel's rank correlation with log-frequency."""

    channel: int
    rho: float


class Metrics(TypedDict):
    """Numbers of the best source of frequencies; `chance_rho` is the best channel's with frequencies shuffled."""

    sources: list[Source]
    source: str
    proxy: bool
    coverage: float
    channel_rho: ChannelRhos
    frequency_channel: ChannelRho
    chance_rho: float
    contrast_channel: ChannelRho
    ln2_channel: int | None
    ln2_channel_rho: float | None
    ln2_channel_rank: int | None
    norm_rho: float | None
    correlations: list[Correlation]
    n_channels: int
    n_tokens: int


class ChannelRow(TypedDict):
    """One channel's rank correlations."""

    channel: int
    rho_frequency: float
    rho_norm: float
    rho_index: float


class ExtremeRow(TokenCells):
    """A token at one end of the frequency channel."""

    end: str
    value: float
    log_frequency: float | None


class TrendRow(TokenCells):
    """A token whose rank by frequency, from -1 to 1, is far from its rank by the channel."""

    group: str | None
    value: float
    log_frequency: float | None
    rank_residual: float


@dataclass(frozen=True)
class _Tokens:
    """What is known of every token beside its embedding; NaN stands for a frequency that isn't known."""

    vocabulary: Vocabulary | None
    log_frequency: Float[Array, " V"]
    norms: Float[Array, " V"]

    @property
    def known(self) -> Bool[Array, " V"]:
        """Return the tokens whose frequency is known."""
        return np.isfinite(self.log_frequency)


def measure(inputs: Inputs) -> Measurements[Metrics]:
    """Measure how channels, norms and the first singular direction go with token frequency.

    Reads `token_embedding` (V, d), `blocks.*.ln2.gain` (d,) to compare with the channel that ln2 singles out, the
    best of the frequencies (without any, the token index stands in), and the vocabulary for names.
    """
    E = inputs.weights["token_embedding"]
    sources, log_frequency = _frequencies(inputs.frequencies, len(E))
    tokens = _Tokens(inputs.vocabulary, log_frequency, norms(E))
    rho = _channel_rhos(E, tokens)
    strength = np.abs(rho["frequency"])
    channel, contrast = int(np.argmax(strength)), int(np.argsort(strength)[len(strength) // 2])
    values = E[:, channel].astype(np.float64)
    first = E @ _first_direction(E)
    candidates = {"log_frequency": log_frequency, "frequency_channel": values, "norm": tokens.norms, "svd_0": first}
    pairs = correlations({name: column[tokens.known] for name, column in candidates.items()}, SEED)
    metrics = _metrics(sources, tokens, rho, (channel, contrast), _ln2_channel(inputs), pairs)
    columns = {"norm": tokens.norms, "channel": values, "contrast": E[:, contrast], "svd_0": first}
    arrays = {**_arrays(tokens, columns), "rho_frequency": rho["frequency"].astype(np.float32)}
    return Measurements(metrics, _tables(tokens, values, metrics), arrays)


def _frequencies(frequencies: tuple[Frequency, ...], V: int) -> tuple[list[Source], Float[Array, " V"]]:
    """Return what is known of the sources, best first, and the log-frequencies of the best."""
    if not frequencies:
        index = Source(source="index", label="token index (a proxy)", coverage=1.0, proxy=True)
        return [index], -np.arange(V, dtype=np.float64)
    sources = [Source(source=f.source, label=f.label, coverage=f.coverage, proxy=f.proxy) for f in frequencies]
    return sources, frequencies[0].log_frequency


def _channel_rhos(E: Float[Array, "V d"], tokens: _Tokens) -> dict[str, Float[Array, " d"]]:
    """Return every channel's rank correlation with frequency, norm, index, and, for chance, shuffled frequencies."""
    known, everyone = tokens.known, np.ones(len(E), bool)
    shuffled = tokens.log_frequency.copy()
    shuffled[known] = np.random.default_rng(SEED).permutation(shuffled[known])
    targets = {
        "frequency": rank(tokens.log_frequency, known),
        "norm": rank(tokens.norms, everyone),
        "index": rank(-np.arange(len(E), dtype=np.float64), everyone),
        "chance": rank(shuffled, known),
    }
    return dict(zip(targets, channel_correlations(E, list(targets.values())), strict=True))


def _first_direction(E: Float[Array, "V d"]) -> Float[Array, " d"]:
    """Return the first right singular vector of E, pointing to the side of the mean embedding."""
    vector = right_singular_vectors(E, 1)[:, 0]
    along = float(vector @ E.mean(axis=0, dtype=np.float64))
    return (vector if along >= 0 else -vector).astype(np.float32)


def _ln2_channel(inputs: Inputs) -> int | None:
    """Return the channel whose gain of ln2 is the largest in the most layers."""
    roles = [f"blocks.{layer}.ln2.gain" for layer in range(inputs.architecture.n_layer)]
    gains = [np.abs(np.asarray(inputs.weights[role], np.float64)) for role in roles if role in inputs.weights]
    found = consistent_channel(gains)
    return None if found is None else found["channel"]


def _metrics(
    sources: list[Source],
    tokens: _Tokens,
    rho: dict[str, Float[Array, " d"]],
    channels: tuple[int, int],
    ln2: int | None,
    pairs: list[Correlation],
) -> Metrics:
    best, known = sources[0], tokens.known
    frequency, norm, index = (rho[name] for name in ("frequency", "norm", "index"))
    strength = np.abs(frequency)
    strongest, contrast = (ChannelRho(channel=channel, rho=float(frequency[channel])) for channel in channels)
    return Metrics(
        sources=sources,
        source=best["source"],
        proxy=best["proxy"],
        coverage=best["coverage"],
        channel_rho=ChannelRhos(frequency=frequency.tolist(), norm=norm.tolist(), index=index.tolist()),
        frequency_channel=strongest,
        chance_rho=float(np.abs(rho["chance"]).max()),
        contrast_channel=contrast,
        ln2_channel=ln2,
        ln2_channel_rho=None if ln2 is None else float(frequency[ln2]),
        ln2_channel_rank=None if ln2 is None else int(np.sum(strength > strength[ln2])) + 1,
        norm_rho=spearman(tokens.norms[known], tokens.log_frequency[known]),
        correlations=pairs,
        n_channels=len(strength),
        n_tokens=len(known),
    )


# Tables


def _tables(tokens: _Tokens, values: Float[Array, " V"], metrics: Metrics) -> dict[str, Table]:
    """Return the tables, given every token's value in the frequency channel."""
    return {
        "channels": table_of(
            "The channels that go with frequency most",
            list(ChannelRow.__annotations__),
            _strongest(metrics["channel_rho"]),
        ),
        "correlations": table_of(
            "The three candidates, with frequency and with one another",
            list(Correlation.__annotations__),
            metrics["correlations"],
        ),
        "extremes": table_of(
            "The tokens at either end of the frequency channel",
            list(ExtremeRow.__annotations__),
            _extremes(tokens, values),
        ),
        "against_the_trend": table_of(
            "Tokens that buck the trend: far more or less frequent than the channel suggests",
            list(TrendRow.__annotations__),
            _against_the_trend(tokens, values, metrics["frequency_channel"]["rho"]),
        ),
    }


def _strongest(rho: ChannelRhos) -> list[ChannelRow]:
    order = np.argsort(np.abs(rho["frequency"]))[::-1][:EXTREMES].tolist()
    return [
        {"channel": c, "rho_frequency": rho["frequency"][c], "rho_norm": rho["norm"][c], "rho_index": rho["index"][c]}
        for c in order
    ]


def _extremes(tokens: _Tokens, values: Float[Array, " V"]) -> list[ExtremeRow]:
    order = np.argsort(values).tolist()
    ends = [(i, "lowest") for i in order[:EXTREMES]] + [(i, "highest") for i in order[::-1][:EXTREMES]]
    return [
        {
            **cells(tokens.vocabulary, i),
            "end": end,
            "value": float(values[i]),
            "log_frequency": finite(tokens.log_frequency[i]),
        }
        for i, end in ends
    ]


def _against_the_trend(tokens: _Tokens, values: Float[Array, " V"], rho: float) -> list[TrendRow]:
    """Return the tokens whose rank by frequency is furthest from their rank by the channel (from -1 to 1)."""
    known = tokens.known
    half = max(1, known.sum()) / 2
    residual = (rank(tokens.log_frequency, known).ranks - np.sign(rho) * rank(values, known).ranks) / half
    return [
        {
            **cells(tokens.vocabulary, i),
            "group": tokens.vocabulary.groups[i] if tokens.vocabulary else None,
            "value": float(values[i]),
            "log_frequency": finite(tokens.log_frequency[i]),
            "rank_residual": float(residual[i]),
        }
        for i in np.argsort(np.abs(residual))[::-1][: 2 * EXTREMES].tolist()
    ]


# What figures draw


def _arrays(tokens: _Tokens, columns: dict[str, Float[Array, " V"]]) -> dict[str, Array]:
    """Return columns of a sample of the tokens of known frequency, and the ids and names of these."""
    ids = _sample(np.flatnonzero(tokens.known))
    columns = {"log_frequency": tokens.log_frequency, **columns}
    arrays = {f"token_{name}": np.asarray(column)[ids].astype(np.float32) for name, column in columns.items()}
    return {**arrays, "token_id": ids.astype(np.int32), **names(tokens.vocabulary, ids)}


def _sample(ids: Int[Array, " n"]) -> Int[Array, " m"]:
    return np.sort(np.random.default_rng(SEED).choice(ids, min(SAMPLE, len(ids)), replace=False))
