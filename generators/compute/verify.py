"""Is every stored result what was stored, and is the better of two stores' results kept?"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from numpy import ndarray as Array

from generators.base.errors import InputError
from generators.compute.records import StoredFinding, differing
from generators.compute.results import Store
from generators.findings import FINDINGS

PATIENCE_S = 5.0  # for who writes what looks damaged
One = tuple[StoredFinding, dict[str, Array]]
Whole = dict[str, One]  # by finding


def verify(store: Store) -> Iterator[tuple[str, str]]:
    """Yield (model, sentence) for everything damaged in a store, even if it isn't shown.

    A model whose results another process moves, removes or replaces meanwhile is looked at again.
    """
    for layer in store.layers:
        for name in layer.folders():
            found = list(_damage(layer, name))
            until = time.monotonic() + PATIENCE_S
            while found and layer.is_held(name) and time.monotonic() < until:
                time.sleep(0.1)
            if found and name in layer.folders():
                yield from ((name, sentence) for sentence in _damage(layer, name))


def _damage(store: Store, name: str) -> Iterator[str]:
    try:
        if store.model(name) is None:
            yield f"{store.root / name} has results but does not say of which model."
    except InputError as error:
        yield str(error)
    found = []
    for finding in store.finding_names(name):
        try:
            found += [whole[0]] if (whole := store.load(name, finding)) is not None else []
        except InputError as error:
            yield str(error)
    if (mixed := store.of_different_weights(name, found)) is not None:
        yield mixed


def adopt(store: Store, other: Store) -> list[str]:
    """Take over from another store what is better there; return what was taken, as "model/finding".

    Nothing damaged is taken. A result that both stores have is taken only if it is of today's version, and the one
    that is kept is not, or is damaged, or was made from other weights on an earlier day. Where the results of a model
    are the same in both, it is taken over, too, that nothing is left to do of it.

    Raises InputError, once all else is taken: the two have a model's results of other weights, of which neither has
    all that the other has.
    """
    taken, mixed = list[str](), list[str]()
    for name in other.names():
        try:
            header = other.model(name)
        except InputError:
            continue
        with store.locked(name):
            ours, theirs = _whole(store, name), _whole(other, name)
            better = _better(ours, theirs, _is_better)
            if better is None:
                mixed.append(name)
                continue
            remembered = other.up_to_date(name) if _records(ours | better) == _records(theirs) else None
            if header is not None and (remembered is not None or not store.has_model(name)):
                store.save_model(header)
            taken += _save(store, name, ours, better)
            if remembered is not None:
                store.remember(name, remembered.made_from, remembered.findings)
    _check_none(mixed, other, store)
    return taken


def move(local: Store, into: Store) -> list[str]:
    """Move results computed here to the store that git tracks; return what it got of them, as "model/finding".

    A result of today's version gives way to none of an older one. What is damaged stays.

    Raises InputError, once all else is moved: a model's results there and here would be of different weights.
    """
    moved, mixed = list[str](), list[str]()
    for name in local.names():
        with local.locked(name), into.locked(name):
            header, there = local.model(name), _whole(into, name)
            better = _better(there, _whole(local, name, local.load), _may_replace)
            if better is None:
                mixed.append(name)
                continue
            if header is not None:
                into.save_model(header)
            moved += _save(into, name, there, better)
            local.remove_model(name)
    _check_none(mixed, local, into)
    return moved


def _whole(store: Store, name: str, load: Callable[[str, str], One | None] | None = None) -> Whole:
    found = {finding: (load or store.load_or_none)(name, finding) for finding in store.finding_names(name)}
    return {finding: each for finding, each in found.items() if each is not None}


def _save(store: Store, name: str, ours: Whole, better: Whole) -> list[str]:
    for each in better.values():
        store.save_finding(name, *each)
    for finding in ours.keys() - better.keys():  # saved by a run that was killed before it was done
        store.drop_older_arrays(name, ours[finding][0])
    return [f"{name}/{finding}" for finding in better]


def _records(whole: Whole) -> dict[str, StoredFinding]:
    return {finding: record for finding, (record, _) in whole.items()}


def _better(ours: Whole, theirs: Whole, replaces: Callable[[StoredFinding, StoredFinding], bool]) -> Whole | None:
    """Return what is missing in `ours` or replaces one of them; None if results of two weights would be mixed."""
    better = {name: found for name, found in theirs.items() if name not in ours or replaces(found[0], ours[name][0])}
    now, then = _records(ours).values(), _records(ours | better).values()
    return better if differing(then) is None or differing(now) is not None else None


def _check_none(mixed: list[str], other: Store, store: Store) -> None:
    if mixed:
        raise InputError(
            f"{other.root} has results of {', '.join(mixed)} that were measured from other weights than those in "
            f"{store.root}; nothing of {'them' if len(mixed) > 1 else 'it'} was taken. Compute one of the two again."
        )


def outdated(store: Store) -> dict[tuple[str, ...], list[str]]:
    """Return titles of findings of which models have results of an older version, by these models' names."""
    found: dict[tuple[str, ...], list[str]] = {}
    for finding in FINDINGS:
        models = tuple(name for name in store.names() if _is_outdated(store, name, finding.name))
        if models:
            found.setdefault(models, []).append(finding.title)
    return found


def _is_outdated(store: Store, name: str, finding: str) -> bool:
    with suppress(InputError):  # damage is reported where it is shown
        stored = store.finding(name, finding)
        return stored is not None and stored.status == "computed" and not _is_new(stored)
    return False


def _is_new(stored: StoredFinding) -> bool:
    return any((finding.name, finding.version) == (stored.finding, stored.version) for finding in FINDINGS)


def _is_better(theirs: StoredFinding, ours: StoredFinding) -> bool:
    if theirs.key is None and ours.key is None:
        return theirs != ours  # reasons in today's words
    is_later = theirs.key != ours.key and (theirs.computed_on or "") > (ours.computed_on or "")
    return _is_new(theirs) and (not _is_new(ours) or is_later)


def _may_replace(mine: StoredFinding, there: StoredFinding) -> bool:
    return mine != there and (_is_new(mine) or not _is_new(there))
