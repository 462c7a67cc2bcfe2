import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.frequency.intervals import Correlation
from generators.findings.frequency.tokens import FrequencyTokens
from generators.findings.measured import Table, finite, table_of
from generators.findings.token_cells import TokenCells, cells
from generators.maths.ranks import rank

EXTREMES = 20  # tokens listed at either end


class ChannelRhos(TypedDict):
    frequency: list[float]
    norm: list[float]
    index: list[float]


class FrequencyChannelRow(TypedDict):
    channel: int
    rho_frequency: float
    rho_norm: float
    rho_index: float


class ExtremeRow(TokenCells):
    end: str
    value: float
    log_frequency: float | None


class TrendRow(TokenCells):
    """A token whose rank by frequency, from -1 to 1, is far from its rank by the channel."""

    group: str | None
    value: float
    log_frequency: float | None
    rank_residual: float


def tables(
    tokens: FrequencyTokens, values: Float[Array, " V"], rhos: ChannelRhos, rho: float, pairs: list[Correlation]
) -> dict[str, Table]:
    found = {
        "channels": table_of("The channels that go with frequency most", FrequencyChannelRow, _strongest(rhos)),
        "extremes": table_of(
            "The tokens at either end of the frequency channel", ExtremeRow, _extremes(tokens, values)
        ),
        "against_the_trend": table_of(
            "Tokens that buck the trend: far more or less frequent than the channel suggests",
            TrendRow,
            _against_the_trend(tokens, values, rho),
        ),
    }
    if pairs:
        title = "The three candidates, with frequency and with one another"
        found["correlations"] = table_of(title, Correlation, pairs)
    return found


def _strongest(rhos: ChannelRhos) -> list[FrequencyChannelRow]:
    order = np.argsort(-np.abs(rhos["frequency"]), kind="stable")[:EXTREMES].tolist()
    return [
        {
            "channel": c,
            "rho_frequency": rhos["frequency"][c],
            "rho_norm": rhos["norm"][c],
            "rho_index": rhos["index"][c],
        }
        for c in order
    ]


def _extremes(tokens: FrequencyTokens, values: Float[Array, " V"]) -> list[ExtremeRow]:
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


def _against_the_trend(tokens: FrequencyTokens, values: Float[Array, " V"], rho: float) -> list[TrendRow]:
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
        for i in np.argsort(-np.abs(residual), kind="stable")[: 2 * EXTREMES].tolist()
    ]
