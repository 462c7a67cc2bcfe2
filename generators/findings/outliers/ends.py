import re
from collections import Counter

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.inputs import Vocabulary
from generators.findings.measured import Table, table_of
from generators.findings.outliers.clump import Clump
from generators.findings.outliers.tokens import OutlierTokens
from generators.findings.token_cells import TokenCells, cells

EXTREMES = 20  # tokens listed at either end
NAMED = 5  # tokens named in a sentence
# Tokens of GPT-2 that the sources name: absorbing others, among the longest, in the clump, or all of these.
BY_NAME = re.compile(rb" ?(BuyableInstoreAndOnline|natureconservancy|conservancy|(\xc3\x83\xc3\x82)+)")


class EndByNorm(TypedDict):
    """The tokens at one end by norm: the first, their kinds, how many are in the clump, their place in the channel.

    `on_channel` and `by_frequency` are medians of the share of all tokens that lie lower on the frequency channel,
    and that are rarer; None where no frequency is known.
    """

    count: int
    first: list[int]
    names: list[str] | None
    groups: dict[str, int] | None
    in_clump: int
    on_channel: float | None
    by_frequency: float | None


class Ends(TypedDict):
    longest: EndByNorm
    shortest: EndByNorm


class EndRow(TokenCells):
    end: str
    group: str | None
    norm: float
    in_clump: bool


class EndOfChannelRow(TokenCells):
    end: str
    value: float
    norm: float
    in_clump: bool


class NamedRow(TokenCells):
    """A token that the sources name: its places by norm (1 is the longest) and along the frequency channel."""

    norm: float
    place_by_norm: int
    place_on_channel: int | None
    in_clump: bool


class TokenPlaces:
    """The rank of every token by norm, along the frequency channel and by frequency, and which are in the clump."""

    def __init__(
        self,
        tokens: OutlierTokens,
        clump: Clump | None,
        channel: int | None,
        log_frequency: Float[Array, " V"] | None,
    ) -> None:
        self.tokens, self.channel = tokens, channel
        self.by_norm = np.argsort(tokens.norms, kind="stable")
        self.along = None if channel is None else np.argsort(tokens.E[:, channel], kind="stable")
        self.log_frequency = log_frequency
        self.members = frozenset() if clump is None else frozenset(clump.members.tolist())

    @property
    def count(self) -> int:
        return min(EXTREMES, len(self.by_norm) // 2)

    def ends(self) -> Ends:
        return {"longest": self._end(self.by_norm[::-1]), "shortest": self._end(self.by_norm)}

    def _end(self, order: Int[Array, " V"]) -> EndByNorm:
        ids = order[: self.count]
        vocabulary = self.tokens.vocabulary
        groups = None if vocabulary is None else Counter(vocabulary.groups[i] for i in ids.tolist())
        first = ids[:NAMED].tolist()
        return {
            "count": len(ids),
            "first": first,
            "names": None if vocabulary is None else [vocabulary.readable[i] for i in first],
            "groups": None if groups is None else dict(groups.most_common()),
            "in_clump": len(self.members.intersection(ids.tolist())),
            "on_channel": None if self.along is None else float(np.median(_places(self.along)[ids])) / len(order),
            "by_frequency": _median_share_below(self.log_frequency, ids),
        }

    def tables(self) -> dict[str, Table]:
        titled = "The longest and the shortest token embeddings"
        found = {"norms": table_of(titled, EndRow, self._by_norm())}
        if self.along is not None:
            titled = f"The tokens at either end of channel {self.channel}, which goes with frequency most"
            found["channel"] = table_of(titled, EndOfChannelRow, self._by_channel(self.along))
        if named := self._named():
            titled = "Tokens that the sources name: places by norm (1 is the longest) and along the frequency channel"
            found["named"] = table_of(titled, NamedRow, named)
        return found

    def _by_norm(self) -> list[EndRow]:
        listed = [(i, "longest") for i in self.by_norm[::-1][: self.count].tolist()]
        listed += [(i, "shortest") for i in self.by_norm[: self.count].tolist()]
        return [
            {
                **cells(self.tokens.vocabulary, i),
                "end": end,
                "group": self.tokens.group(i),
                "norm": float(self.tokens.norms[i]),
                "in_clump": i in self.members,
            }
            for i, end in listed
        ]

    def _by_channel(self, along: Int[Array, " V"]) -> list[EndOfChannelRow]:
        listed = [(i, "lowest") for i in along[: self.count].tolist()]
        listed += [(i, "highest") for i in along[::-1][: self.count].tolist()]
        return [
            {
                **cells(self.tokens.vocabulary, i),
                "end": end,
                "value": float(self.tokens.E[i, self.channel]),
                "norm": float(self.tokens.norms[i]),
                "in_clump": i in self.members,
            }
            for i, end in listed
        ]

    def _named(self) -> list[NamedRow]:
        ids = named_by_sources(self.tokens.vocabulary)
        by_norm, along = _places(self.by_norm), None if self.along is None else _places(self.along)
        rows: list[NamedRow] = [
            {
                **cells(self.tokens.vocabulary, i),
                "norm": float(self.tokens.norms[i]),
                "place_by_norm": len(by_norm) - int(by_norm[i]),
                "place_on_channel": None if along is None else int(along[i]) + 1,
                "in_clump": i in self.members,
            }
            for i in ids
        ]
        return sorted(rows, key=lambda row: row["place_by_norm"])


def named_by_sources(vocabulary: Vocabulary | None) -> list[int]:
    return [] if vocabulary is None else [i for i, text in enumerate(vocabulary.raw_bytes) if BY_NAME.fullmatch(text)]


def _places(order: Int[Array, " V"]) -> Int[Array, " V"]:
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places


def _median_share_below(values: Float[Array, " V"] | None, ids: Int[Array, " n"]) -> float | None:
    """Return the median, over some tokens of known value, of the share of all known values that are smaller."""
    if values is None or not np.isfinite(values[ids]).any():
        return None
    known = np.sort(values[np.isfinite(values)])
    here = values[ids][np.isfinite(values[ids])]
    return float(np.median(np.searchsorted(known, here)) / len(known))
