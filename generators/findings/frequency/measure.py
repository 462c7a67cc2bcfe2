from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.frequencies import TokenFrequency
from generators.findings.frequency import chances
from generators.findings.inputs import Inputs
from generators.findings.measured import Interval, Measurements, Table, finite, row_of, table_of
from generators.findings.sizes import FEWEST_TOKENS, check_tokens
from generators.findings.token_cells import cells, names
from generators.maths.blocks import norms
from generators.maths.channels import ConsistentChannel, consistent_channel
from generators.maths.ranks import channel_correlations, rank, spearman
from generators.maths.spectra import right_singular_vectors

SAMPLE = 4096  # tokens drawn in figures
EXTREMES = 20  # tokens listed at either end


class ChannelRhos(TypedDict):
    frequency: list[float]
    norm: list[float]
    index: list[float]


class FrequencySource(TypedDict):
    source: str
    label: str
    coverage: float
    proxy: bool


class ChannelRho(TypedDict):
    channel: int
    rho: float


class FrequencyIntervals(TypedDict):
    """95 % intervals over tokens: of the frequency channel's |rho|, the norm's rho, the place of ln2's channel."""

    frequency_channel: Interval
    norm_rho: Interval
    ln2_channel_rank: Interval | None


class FrequencyMetrics(TypedDict):
    """Numbers of the best source of frequencies.

    What is only judged, and the probe, are None where no more than a proxy of frequency is known, or hardly any.
    """

    sources: list[FrequencySource]
    source: str
    proxy: bool
    coverage: float
    channel_rho: ChannelRhos
    frequency_channel: ChannelRho
    contrast_channel: ChannelRho
    ln2_channel: int | None
    ln2_tied: list[int]
    ln2_channel_rho: float | None
    ln2_channel_rank: int | None
    norm_rho: float | None
    correlations: list[chances.Correlation]
    probe: chances.Probe | None
    chance: chances.FrequencyChances | None
    intervals: FrequencyIntervals | None
    n_channels: int
    n_tokens: int


def measure(inputs: Inputs) -> Measurements[FrequencyMetrics]:
    """Measure how channels, norms and the first singular direction go with token frequency.

    Without any frequencies, the token index stands in.
    """
    E = inputs.weights["token_embedding"]
    check_tokens(E)
    sources, log_frequency = _frequencies(inputs.frequencies, len(E))
    tokens = chances.FrequencyTokens(inputs.vocabulary, log_frequency, norms(E))
    rho = _channel_rhos(E, tokens)
    by_strength = np.argsort(np.abs(rho["frequency"]), kind="stable")
    channel, contrast = int(by_strength[-1]), int(by_strength[len(by_strength) // 2])
    values = E[:, channel].astype(np.float64)
    first = E @ _first_direction(E)
    candidates = {"log_frequency": log_frequency, "frequency_channel": values, "norm": tokens.norms, "svd_0": first}
    metrics = _metrics(sources, tokens, rho, (channel, contrast), _singled_out(inputs, E.shape[1]))
    if tokens.known.sum() >= FEWEST_TOKENS:
        _compare(metrics, E, tokens, {name: column[tokens.known] for name, column in candidates.items()})
    columns = {"norm": tokens.norms, "channel": values, "contrast": E[:, contrast]}
    return Measurements(metrics, _tables(metrics, tokens, values), _arrays(tokens, columns))


def _frequencies(frequencies: tuple[TokenFrequency, ...], V: int) -> tuple[list[FrequencySource], Float[Array, " V"]]:
    if not frequencies:
        index = FrequencySource(source="index", label="token index (a proxy)", coverage=1.0, proxy=True)
        return [index], -np.arange(V, dtype=np.float64)
    return [row_of(FrequencySource, each) for each in frequencies], frequencies[0].log_frequency


def _channel_rhos(E: Float[Array, "V d"], tokens: chances.FrequencyTokens) -> dict[str, Float[Array, " d"]]:
    """Return every channel's rank correlation with frequency, norm and index."""
    everyone = np.ones(len(E), bool)
    targets = {
        "frequency": rank(tokens.log_frequency, tokens.known),
        "norm": rank(tokens.norms, everyone),
        "index": rank(-np.arange(len(E), dtype=np.float64), everyone),
    }
    return dict(zip(targets, channel_correlations(E, list(targets.values())), strict=True))


def _first_direction(E: Float[Array, "V d"]) -> Float[Array, " d"]:
    """Return the first right singular vector of E, pointing to the side of the mean embedding."""
    vector = right_singular_vectors(E, 1)[:, 0]
    along = float(vector @ E.mean(axis=0, dtype=np.float64))
    return (vector if along >= 0 else -vector).astype(np.float32)


def _singled_out(inputs: Inputs, width: int) -> ConsistentChannel | None:
    """Return the channel whose gain of ln2 is the largest in the most layers, and those that tie with it.

    None where embeddings of another `width` are projected into the stream: then its channels aren't theirs.
    """
    roles = [f"blocks.{layer}.ln2.gain" for layer in range(inputs.architecture.n_layer)]
    gains = [np.abs(np.asarray(inputs.weights[role], np.float64)) for role in roles if role in inputs.weights]
    return consistent_channel([gain for gain in gains if len(gain) == width])


def _metrics(
    sources: list[FrequencySource],
    tokens: chances.FrequencyTokens,
    rho: dict[str, Float[Array, " d"]],
    channels: tuple[int, int],
    singled_out: ConsistentChannel | None,
) -> FrequencyMetrics:
    ln2 = None if singled_out is None else singled_out["channel"]
    best, known = sources[0], tokens.known
    frequency, norm, index = (rho[name] for name in ("frequency", "norm", "index"))
    strengths = np.abs(frequency)
    strongest, contrast = (ChannelRho(channel=channel, rho=float(frequency[channel])) for channel in channels)
    return FrequencyMetrics(
        sources=sources,
        source=best["source"],
        proxy=best["proxy"],
        coverage=best["coverage"],
        channel_rho=ChannelRhos(frequency=frequency.tolist(), norm=norm.tolist(), index=index.tolist()),
        frequency_channel=strongest,
        contrast_channel=contrast,
        ln2_channel=ln2,
        ln2_tied=[] if singled_out is None else singled_out["tied"],
        ln2_channel_rho=None if ln2 is None else float(frequency[ln2]),
        ln2_channel_rank=None if ln2 is None else int(np.sum(strengths > strengths[ln2])) + 1,
        norm_rho=spearman(tokens.norms[known], tokens.log_frequency[known]),
        correlations=[],
        probe=None,
        chance=None,
        intervals=None,
        n_channels=len(strengths),
        n_tokens=len(known),
    )


def _compare(
    metrics: FrequencyMetrics,
    E: Float[Array, "V d"],
    tokens: chances.FrequencyTokens,
    candidates: dict[str, Float[Array, " n"]],
) -> None:
    metrics["correlations"] = chances.correlations(candidates)
    if metrics["proxy"]:
        return
    with_frequency = {row["with"]: row for row in metrics["correlations"] if row["of"] == "log_frequency"}
    norm, ln2 = with_frequency["norm"], metrics["ln2_channel"]
    compared = chances.TokenSample(E, tokens)
    metrics["chance"] = compared.chances()
    metrics["intervals"] = {
        "frequency_channel": chances.strength(with_frequency["frequency_channel"]),
        "norm_rho": [norm["low"], norm["high"]],
        "ln2_channel_rank": None if ln2 is None else compared.rank_interval(ln2),
    }
    metrics["probe"] = chances.probe(E, tokens)


def _arrays(tokens: chances.FrequencyTokens, columns: dict[str, Float[Array, " V"]]) -> dict[str, Array]:
    known = np.flatnonzero(tokens.known)
    ids = np.sort(np.random.default_rng(chances.SEED).choice(known, min(SAMPLE, len(known)), replace=False))
    columns = {"log_frequency": tokens.log_frequency, **columns}
    arrays = {f"token_{name}": np.asarray(column)[ids].astype(np.float32) for name, column in columns.items()}
    return {**arrays, "token_id": ids.astype(np.int32), **names(tokens.vocabulary, ids)}


def _tables(
    metrics: FrequencyMetrics, tokens: chances.FrequencyTokens, values: Float[Array, " V"]
) -> dict[str, Table]:
    strongest, ends = _strongest(metrics["channel_rho"]), _extremes(tokens, values)
    odd = _against_the_trend(tokens, values, metrics["frequency_channel"]["rho"])
    against = "Tokens that buck the trend: far more or less frequent than the channel suggests"
    found = {
        "channels": table_of("The channels that go with frequency most", strongest[0], strongest),
        "extremes": table_of("The tokens at either end of the frequency channel", ends[0], ends),
        "against_the_trend": table_of(against, odd[0], odd),
    }
    if metrics["correlations"]:
        title = "The three candidates, with frequency and with one another"
        found["correlations"] = table_of(title, chances.Correlation, metrics["correlations"])
    return found


def _strongest(rhos: ChannelRhos) -> list[dict[str, Any]]:
    order = np.argsort(-np.abs(rhos["frequency"]), kind="stable")[:EXTREMES].tolist()
    frequency, norm, index = rhos["frequency"], rhos["norm"], rhos["index"]
    return [{"channel": c, "rho_frequency": frequency[c], "rho_norm": norm[c], "rho_index": index[c]} for c in order]


def _extremes(tokens: chances.FrequencyTokens, values: Float[Array, " V"]) -> list[dict[str, Any]]:
    # Stable: values of half precision tie, and how other sorts order ties depends on the processor.
    lowest, highest = (np.argsort(side, kind="stable")[:EXTREMES].tolist() for side in (values, -values))
    ends = [(i, "lowest") for i in lowest] + [(i, "highest") for i in highest]
    return [
        {
            **cells(tokens.vocabulary, i),
            "end": end,
            "value": float(values[i]),
            "log_frequency": finite(tokens.log_frequency[i]),
        }
        for i, end in ends
    ]


def _against_the_trend(
    tokens: chances.FrequencyTokens, values: Float[Array, " V"], rho: float
) -> list[dict[str, Any]]:
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
        for i in np.argsort(-np.abs(residual), kind="stable")[: 2 * EXTREMES].tolist()
    ]
