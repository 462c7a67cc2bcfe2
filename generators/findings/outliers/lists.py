"""Are the same tokens outliers by different measures? Lists of the outermost tokens, and how far they overlap."""

from itertools import combinations

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.measured import StoredChance, Table, table_of
from generators.findings.nulls import DRAWS, drawn
from generators.findings.outliers.tokens import OutlierTokens
from generators.findings.token_cells import TokenCells, cells
from generators.maths.spectra import right_singular_vectors

FEWEST, SHARE = 20, 0.01  # tokens per list: 1 % of the vocabulary, at least 20
MANY = 3  # lists a token must be on
MOST_ROWS = 40
SEED = 20211216


class ListsOverlap(TypedDict):
    """Two lists: how many tokens they share, and how many times as many as by chance."""

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


class ListedRow(TokenCells):
    lists: list[str]
    norm: float


def outlier_lists(tokens: OutlierTokens, channel: int | None) -> tuple[OutlierLists, dict[str, Table]]:
    """Return how far the lists overlap, and the tokens on three or more of them.

    Listed are the longest and shortest tokens, those at both ends of the first singular direction and of the
    frequency `channel` where one is known, and those farthest from the mean token.
    """
    length = min(max(FEWEST, int(SHARE * len(tokens.norms))), len(tokens.norms) // 4)
    lists = _lists(tokens, channel, length)
    counts = np.zeros(len(tokens.norms), np.int64)
    for ids in lists.values():
        counts[ids] += 1
    found: OutlierLists = {
        "names": list(lists),
        "length": length,
        "overlaps": _overlaps(lists, length, len(counts)),
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


def _overlaps(lists: dict[str, Int[Array, " n"]], length: int, count: int) -> list[ListsOverlap]:
    found: list[ListsOverlap] = []
    for (first, ids), (second, others) in combinations(lists.items(), 2):
        shared = len(np.intersect1d(ids, others))
        found.append({
            "first": first,
            "second": second,
            "shared": shared,
            "times_chance": shared * count / length**2,
        })  # fmt: skip
    return sorted(found, key=lambda row: -row["shared"])


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
    rows: list[ListedRow] = [
        {
            **cells(tokens.vocabulary, i),
            "lists": [name for name, listed in members.items() if i in listed],
            "norm": float(tokens.norms[i]),
        }
        for i in ids
    ]
    title = f"Tokens on {MANY} or more lists of outermost tokens"
    return {"listed": table_of(title, ListedRow, rows)} if rows else {}
