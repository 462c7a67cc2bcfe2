import re
from collections import Counter
from dataclasses import InitVar, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.measured import StoredChance, Table, table_of
from generators.findings.nulls import DRAWS, drawn
from generators.findings.outliers.clump import Clump
from generators.findings.outliers.tokens import OutlierTokens
from generators.findings.token_cells import COLUMNS
from generators.maths.spectra import right_singular_vectors

EXTREMES = 20  # tokens listed at either end
NAMED = 5  # tokens named in a sentence
# Tokens of GPT-2 that the sources name: absorbing others, among the longest, in the clump, or all of these.
BY_NAME = re.compile(rb" ?(BuyableInstoreAndOnline|natureconservancy|conservancy|(\xc3\x83\xc3\x82)+)")

FEWEST, SHARE = 20, 0.01  # tokens per list: 1 % of the vocabulary, at least 20
MANY = 3  # lists a token must be on
MOST_ROWS = 40
SEED = 20211216


class ListsOverlap(TypedDict):
    first: str
    second: str
    shared: int
    times_chance: float


class OutlierLists(TypedDict):
    """How far lists of outermost tokens overlap; `on_many` counts tokens on at least three of them.

    By chance, lists of the same lengths are drawn at random.
    """

    names: list[str]
    length: int
    overlaps: list[ListsOverlap]
    on_many: int
    chance: StoredChance


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


@dataclass
class TokenPlaces:
    """The rank of every token by norm, along the frequency channel and by frequency, and which are in the clump."""

    tokens: OutlierTokens
    clump: InitVar[Clump | None]
    channel: int | None
    log_frequency: Float[Array, " V"] | None

    def __post_init__(self, clump: Clump | None) -> None:
        # Orders of the tokens: `argsort` of an order is the place of each token in it.
        self.by_norm = np.argsort(self.tokens.norms, kind="stable")
        self.along = None if self.channel is None else np.argsort(self.tokens.E[:, self.channel], kind="stable")
        self.members = frozenset() if clump is None else frozenset(clump.members.tolist())

    def ends(self) -> Ends:
        return {"longest": self._end(self.by_norm[::-1]), "shortest": self._end(self.by_norm)}

    def _end(self, order: Int[Array, " V"]) -> EndByNorm:
        ids = order[:EXTREMES]
        vocabulary = self.tokens.vocabulary
        groups = None if vocabulary is None else Counter(vocabulary.groups[i] for i in ids.tolist())
        first = ids[:NAMED].tolist()
        return {
            "count": len(ids),
            "first": first,
            "names": None if vocabulary is None else [vocabulary.readable[i] for i in first],
            "groups": None if groups is None else dict(groups.most_common()),
            "in_clump": len(self.members.intersection(ids.tolist())),
            "on_channel": None if self.along is None else float(np.median(np.argsort(self.along)[ids])) / len(order),
            "by_frequency": _median_share_below(self.log_frequency, ids),
        }

    def tables(self) -> dict[str, Table]:
        rows = self._at_ends(longest=self.by_norm[::-1], shortest=self.by_norm)
        columns = (*COLUMNS, "end", "group", "norm", "in_clump")
        found = {"norms": table_of("The longest and the shortest token embeddings", columns, rows)}
        if self.along is not None:
            titled = f"The tokens at either end of channel {self.channel}, which goes with frequency most"
            rows = self._at_ends(lowest=self.along, highest=self.along[::-1])
            found["channel"] = table_of(titled, (*COLUMNS, "end", "value", "norm", "in_clump"), rows)
        if named := self._named():
            titled = "Tokens that the sources name: places by norm (1 is the longest) and along the frequency channel"
            columns = (*COLUMNS, "norm", "place_by_norm", "place_on_channel", "in_clump")
            found["named"] = table_of(titled, columns, named)
        return found

    def _at_ends(self, **ends: Int[Array, " V"]) -> list[dict[str, Any]]:
        return [
            {
                **self.tokens.row(i),
                "end": end,
                "value": None if self.channel is None else float(self.tokens.E[i, self.channel]),
                "in_clump": i in self.members,
            }
            for end, order in ends.items()
            for i in order[:EXTREMES].tolist()
        ]

    def _named(self) -> list[dict[str, Any]]:
        texts = () if self.tokens.vocabulary is None else self.tokens.vocabulary.raw_bytes
        by_norm, along = np.argsort(self.by_norm), None if self.along is None else np.argsort(self.along)
        rows = [
            {
                **self.tokens.row(i),
                "place_by_norm": len(by_norm) - int(by_norm[i]),
                "place_on_channel": None if along is None else int(along[i]) + 1,
                "in_clump": i in self.members,
            }
            for i, text in enumerate(texts)
            if BY_NAME.fullmatch(text)
        ]
        return sorted(rows, key=lambda row: row["place_by_norm"])


def _median_share_below(values: Float[Array, " V"] | None, ids: Int[Array, " n"]) -> float | None:
    """Return the median, over some tokens of known value, of the share of all known values that are smaller."""
    if values is None or not np.isfinite(values[ids]).any():
        return None
    known = np.sort(values[np.isfinite(values)])
    here = values[ids][np.isfinite(values[ids])]
    return float(np.median(np.searchsorted(known, here)) / len(known))


def outlier_lists(tokens: OutlierTokens, channel: int | None) -> tuple[OutlierLists, dict[str, Table]]:
    """Return how far the lists overlap, and the tokens on three or more of them.

    Listed are the longest and shortest tokens, those at both ends of the first singular direction and of the
    frequency `channel` where one is known, and those farthest from the mean token.
    """
    length = max(FEWEST, int(SHARE * len(tokens.norms)))
    lists = _lists(tokens, channel, length)
    counts = np.zeros(len(tokens.norms), np.int64)
    for ids in lists.values():
        counts[ids] += 1
    overlaps = []
    for (first, ids), (second, others) in combinations(lists.items(), 2):
        shared = len(np.intersect1d(ids, others))
        times = shared * len(counts) / length**2
        overlaps.append(ListsOverlap(first=first, second=second, shared=shared, times_chance=times))
    found: OutlierLists = {
        "names": list(lists),
        "length": length,
        "overlaps": sorted(overlaps, key=lambda row: -row["shared"]),
        "on_many": int(np.sum(counts >= MANY)),
        "chance": drawn("lists drawn at random", _by_chance(lists, length, len(counts))),
    }
    return found, _table(tokens, lists, counts)


def _lists(tokens: OutlierTokens, channel: int | None, length: int) -> dict[str, Int[Array, " n"]]:
    first = tokens.along(right_singular_vectors(tokens.E, 1)[:, 0])
    mean = tokens.E.mean(axis=0, dtype=np.float64)
    first = first if first.mean() >= 0 else -first
    measures = {
        "longest": tokens.norms,
        "shortest": -tokens.norms,
        "high on the first direction": first,
        "low on the first direction": -first,
        "far from the mean": tokens.norms**2 - 2 * tokens.along(mean),
    }
    if channel is not None:
        values = tokens.E[:, channel].astype(np.float64)
        measures |= {f"high on channel {channel}": values, f"low on channel {channel}": -values}
    return {name: np.argsort(-values, kind="stable")[:length] for name, values in measures.items()}


def _by_chance(lists: dict[str, Int[Array, " n"]], length: int, count: int) -> Float[Array, " draws"]:
    """Return how many tokens are on three lists drawn at random; no token is at both ends of a measure."""
    rng = np.random.default_rng(SEED)
    opposite = sum(name.startswith(("shortest", "low")) for name in lists)
    many = np.empty(DRAWS)
    for draw in range(DRAWS):
        counts = np.zeros(count, np.int64)
        for place in range(len(lists) - opposite):
            ends = rng.choice(count, (2 if place < opposite else 1) * length, replace=False)
            counts[ends] += 1
        many[draw] = np.sum(counts >= MANY)
    return many


def _table(tokens: OutlierTokens, lists: dict[str, Int[Array, " n"]], counts: Int[Array, " V"]) -> dict[str, Table]:
    order = np.argsort(-counts, kind="stable")
    ids = [i for i in order[:MOST_ROWS].tolist() if counts[i] >= MANY]
    members = {name: set(listed.tolist()) for name, listed in lists.items()}
    rows = [{**tokens.row(i), "lists": [name for name, listed in members.items() if i in listed]} for i in ids]
    title = f"Tokens on {MANY} or more lists of outermost tokens"
    return {"listed": table_of(title, (*COLUMNS, "lists", "norm"), rows)} if rows else {}
