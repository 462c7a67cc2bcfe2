"""What figures show of the token embedding: a chunk of it, histograms of its rows and columns, pairs of channels."""

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.maths.blocks import norms, spread_ids

CHUNK_TOKENS, CHUNK_CHANNELS = 256, 64  # size of the excerpt of E shown as an image
PLAIN_NORMS = 0.5, 2.0  # multiples of the median norm; tokens outside are unused or otherwise extreme
OVERLAID = 30  # histograms of tokens, and of channels
BINS_OF_TOKEN, BINS_OF_CHANNEL = 32, 80
HISTOGRAM_TAIL = 0.001  # share of values left out at each end
SAMPLED_TOKENS = 2000  # tokens in scatter plots
FLOAT16_KEEPS = 1e-3, 6e4  # range of values in which float16 loses nothing visible

Span = tuple[np.float64, np.float64]


def chunk(E: Float[Array, "V d"], mean: Float[Array, " d"], std: Float[Array, " d"]) -> dict[str, Array]:
    """Return a chunk of E, and histograms of its first rows (over channels) and columns (over all tokens)."""
    first, channel = plain_tokens(norms(E)), striped_channels(mean, std)
    tokens = np.arange(first, min(first + CHUNK_TOKENS, len(E)))
    channels = np.arange(channel, min(channel + CHUNK_CHANNELS, E.shape[1]))
    rows, columns = E[tokens[:OVERLAID]], E[:, channel : channels[-1] + 1][:, :OVERLAID]
    sample = columns[spread_ids(len(E), SAMPLED_TOKENS)]
    row_counts, row_edges = _histograms(rows, BINS_OF_TOKEN, span(rows))
    column_counts, column_edges = _histograms(columns.T, BINS_OF_CHANNEL, span(sample))
    return {
        "chunk": _compact(E[first : tokens[-1] + 1, channel : channels[-1] + 1].T),
        "chunk_tokens": tokens.astype(np.int32),
        "chunk_channels": channels.astype(np.int32),
        "token_histograms": row_counts,
        "token_histogram_edges": row_edges,
        "channel_histograms": column_counts,
        "channel_histogram_edges": column_edges,
    }


def plain_tokens(lengths: Float[Array, " V"]) -> int:
    """Return the first id of the first 256 consecutive tokens of ordinary norm: half to twice the median.

    Unused tokens at the start of a vocabulary are passed over where their norms tell them. 0 where there is no such
    run.
    """
    run = min(CHUNK_TOKENS, len(lengths))
    low, high = (bound * float(np.median(lengths)) for bound in PLAIN_NORMS)
    plain = np.concatenate([[0], np.cumsum((lengths >= low) & (lengths <= high))])
    runs = np.flatnonzero(plain[run:] - plain[:-run] == run)
    return int(runs[0]) if len(runs) else 0


def striped_channels(mean: Float[Array, " d"], std: Float[Array, " d"]) -> int:
    """Return the first of the 64 consecutive channels whose token means stand out most.

    That is, in which |mean| / std over tokens, counted up to 1, sums highest.
    """
    length = min(CHUNK_CHANNELS, len(mean))
    offset = np.abs(mean) / np.maximum(np.maximum(std, np.abs(mean)), np.finfo(np.float64).tiny)
    total = np.concatenate([[0], np.cumsum(offset)])
    return int(np.argmax(total[length:] - total[:-length]))


def span(values: Float[Array, "..."], tail: float = HISTOGRAM_TAIL) -> Span:
    """Return between what values all but the tails lie; never empty."""
    low, high = np.quantile(values, (tail, 1 - tail)).astype(np.float64)
    margin = max(0.02 * (high - low), 1e-3 * max(abs(low), abs(high))) or 0.5
    return low - margin, high + margin


def pairs(E: Float[Array, "V d"], P: Float[Array, "n d"], channels: Int[Array, " four"]) -> dict[str, Array]:
    tokens = spread_ids(len(E), SAMPLED_TOKENS)
    return {
        "pair_channels": channels.astype(np.int32),
        "pair_token_ids": tokens.astype(np.int32),
        "pair_tokens": _compact(E[np.ix_(tokens, channels)]),
        "pair_positions": _compact(P[1:, channels]),
    }


def pair_channels(ranking: Int[Array, " d"], k: int) -> Int[Array, " four"]:
    """Return two channels in which positions are active and two in which they are not.

    With k position channels: the strongest two, and the median two of the others. Without: the two that vary most and
    the two that vary least.
    """
    others = ranking[k:]
    weak = others[len(others) // 2 - 1 :][:2] if k else ranking[-2:]
    return np.concatenate([ranking[:2], weak])


def _histograms(
    rows: Float[Array, "count values"], bins: int, within: Span
) -> tuple[Int[Array, "count bins"], Float[Array, " edges"]]:
    counts = [np.histogram(row, bins, within)[0] for row in rows]
    return np.array(counts, np.int32), np.linspace(*within, bins + 1, dtype=np.float32)


def _compact(values: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return values as float16 where that keeps what can be seen, else as float32."""
    low, high = FLOAT16_KEEPS
    return values.astype(np.float16 if low < np.abs(values).max(initial=0) < high else np.float32)
