"""What is known of each token: its name, norm, frequency, neighbours and clump, and what it yields without layers."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from generators.base.text import number
from generators.findings.outliers.clump import spread
from generators.site.things.known import (
    Found,
    Group,
    Things,
    array,
    frequency_channel,
    measured,
    metric,
    rows,
    unknown,
)
from generators.site.view import ModelPage

TOLD_BY = ("frequency", "outliers", "token_svd", "zero_layer", "undertrained")
NAMED = 5  # tokens that others yield, those of most, that are listed by name
NAMES = (
    ("outliers", "ids", "token_name"),
    ("outliers", "member_ids", "member_name"),
    ("outliers", "around_ids", "around_name"),
    ("frequency", "token_id", "token_name"),
    ("token_svd", "token_id", "token_name"),
    ("zero_layer", "ids", "token_name"),
    ("zero_layer", "best", "best_name"),
)
NORMS = (
    ("outliers", "ids", "norm"),
    ("outliers", "member_ids", "member_norm"),
    ("frequency", "token_id", "token_norm"),
    ("token_svd", "token_id", "token_norm"),
    ("zero_layer", "ids", "norm"),
    ("zero_layer", "best", "best_norm"),
)


def tokens(page: ModelPage) -> Things:
    """Return what is known of a model's tokens; of most, large vocabularies have samples only."""
    found = measured(page)
    counts = (metric(one, "n_tokens") for one in found.values())
    things = Things(next((int(n) for n in counts if n), page.findings.model.vocab_size))
    things.names = _names(found)
    _lengths(things, found)
    _frequency(things, found.get("frequency"), frequency_channel(page))
    _neighbours(things, found.get("outliers"))
    _clump(things, found.get("outliers"))
    _yields(things, found.get("zero_layer"))
    _untrained(things, found)
    things.unknown = unknown(page, TOLD_BY, "this model's tokens")
    return things


def _names(found: Mapping[str, Any]) -> dict[int, str]:
    names: dict[int, str] = {}
    for finding, ids, name in NAMES:
        there, called = array(found.get(finding), ids), array(found.get(finding), name)
        if there is not None and called is not None:
            names |= zip(there.tolist(), called.tolist(), strict=True)
    for one in found.values():
        for table in one.tables.values():
            if {"id", "readable"} <= set(table.columns):
                named = zip(table.column("id"), table.column("readable"), strict=True)
                names |= {i: name for i, name in named if name}
    return names


def _lengths(things: Things, found: Mapping[str, Any]) -> None:
    """Add norms, from all samples that there are."""
    norms: dict[int, float] = {}
    for finding, which, norm in NORMS:
        there, lengths = array(found.get(finding), which), array(found.get(finding), norm)
        if there is not None and lengths is not None:
            norms |= zip(there.tolist(), lengths.tolist(), strict=True)
    _add(things, "norm of its embedding", norms, "outliers", "outlier-norms", order="largest")
    svd = found.get("token_svd")
    if (ids := array(svd, "token_id")) is not None and (share := array(svd, "token_overlap")) is not None:
        of = "share of its energy in the directions of positions"
        things.add(of, share, "token_svd", "svd-overlap", ids=ids, order="largest")


def _frequency(things: Things, found: Found, called: str) -> None:
    ids, logs = array(found, "token_id"), array(found, "token_log_frequency")
    if ids is None or logs is None or metric(found, "proxy"):
        return
    known = np.isfinite(logs)
    if metric(found, "source") == "counts":
        counts = np.rint(np.expm1(logs[known].astype(np.float64))).astype(np.int64)
        says = "how often it occurs in the training text"
        things.add(says, counts, "frequency", "norm-frequency", ids=ids[known], order="largest")
    else:
        says = "log frequency as an English word"
        things.add(says, logs[known], "frequency", "norm-frequency", ids=ids[known], order="largest")
    on_channel = array(found, "token_channel")
    channel = metric(found, "frequency_channel", "channel")
    if on_channel is not None and channel is not None:
        says = f"value in channel {channel}, {called}"
        things.add(says, on_channel, "frequency", "frequency-channel", ids=ids, order="strongest")


def _neighbours(things: Things, found: Found) -> None:
    """Add distances to the nearest other token, which are kept for some tokens spread over ids and clump."""
    nearest = array(found, "nearest")
    if nearest is None or things.count is None:
        return
    ids = spread(things.count, len(nearest))
    distances = dict(zip(ids.tolist(), nearest.tolist(), strict=True)) if len(ids) == len(nearest) else {}
    around, inside = array(found, "around_ids"), array(found, "around_is_member")
    of_members = array(found, "member_nearest")
    if around is not None and inside is not None and of_members is not None and inside.sum() == len(of_members):
        distances |= zip(around[inside].tolist(), of_members.tolist(), strict=True)
    _add(things, "distance to the nearest other token", distances, "outliers", "nearest-neighbours")


def _clump(things: Things, found: Found) -> None:
    members = metric(found, "clump", "members")
    if members is None:
        return
    which = f"the clump of {len(members)} tokens that huddle (radius {number(metric(found, 'clump', 'radius'))})."
    things.groups.append(Group(f"In {which}", f"Not in {which}", members, "outliers"))
    placed = {row["id"]: row["distance"] for name in ("members", "surroundings") for row in rows(found, name)}
    _add(things, "distance from the clump's centre", placed, "outliers", "clump")


def _yields(things: Things, found: Found) -> None:
    """Add which token each yields without layers; the table of those that yield another one is whole."""
    exceptions = rows(found, "exceptions")
    ids = [row["id"] for row in exceptions]
    if found is not None and metric(found, "exceptions") == len(ids):
        another = "Without layers it yields another token instead of itself."
        things.groups.append(Group(another, "Without layers it yields itself.", ids, "zero_layer"))
    if ids:
        yielded = [row["best_id"] for row in exceptions]
        things.add("token that it yields", yielded, "zero_layer", "zero-layer-pairs", ids=ids, leads="token")
        for says, name in (("norm of that token", "best_norm"), ("cosine with that token", "cosine")):
            things.add(says, [row[name] for row in exceptions], "zero_layer", "zero-layer-norms", ids=ids)
    for place, row in enumerate(rows(found, "hubs")):
        says = f"Without layers {row['absorbs']} other tokens yield it instead of themselves."
        things.note(row["id"], says, "zero_layer", named=place < NAMED)


def _untrained(things: Things, found: Mapping[str, Any]) -> None:
    unused = [row["id"] for row in rows(found.get("outliers"), "known_unused")]
    if metric(found.get("outliers"), "known_unused", "count") == len(unused):
        never, some = "It never occurs in the training text.", "It occurs in the training text."
        things.groups.append(Group(never, some, unused, "outliers"))
    for row in rows(found.get("undertrained"), "candidates"):
        most = number(row["largest_probability"])
        says = f"It looks under-trained; the largest probability it gets anywhere is {most}."
        things.note(row["id"], says, "undertrained", named=False)


def _add(things: Things, says: str, values: Mapping[int, Any] | None, finding: str, figure: str, **more: Any) -> None:
    if values:
        ids = sorted(values)
        things.add(says, _in(values, ids), finding, figure, ids=ids, **more)


def _in(values: Mapping[int, Any], ids: Iterable[int]) -> list[Any]:
    return [values[i] for i in ids]
