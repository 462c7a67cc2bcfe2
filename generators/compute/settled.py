"""Whether a model is as it was when nothing was left to do: known by content, without a finding being imported.

That is remembered beside the model's results: a digest of all that they depend on (weights and the other files of the
checkpoint, what the registry says, settings, the atlas's code, what is installed) and of themselves. Files that come
from a hub are not looked through; there the checkpoint is opened each time.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

from generators.base import digests
from generators.base.errors import AtlasError, InputError
from generators.checkpoint.registry import Model
from generators.checkpoint.sources import LARGEST_TEXT, Files
from generators.compute.results import Store
from generators.compute.running import Settings
from generators.compute.tally import Outcome


@dataclass(frozen=True)
class AsItWas:
    """A model before it was looked at: the digest of what its results depend on, and of those that were stored."""

    name: str
    inputs: str
    results: str


def as_it_is(model: Model, files: Files, store: Store, settings: Settings) -> AsItWas | None:
    """Return a model as it is now; None where its files are not on this machine, or can't be read."""
    if files.folder is None:
        return None
    try:
        given = digests.of_files(_read(files, files.folder), files.folder)
        counts = "" if model.counts is None else digests.of_folder(model.counts)
        origin = astuple(files.origin)
        inputs = digests.of_words(_code(), model.model_dump(), *astuple(settings), *origin, given, counts)
        return AsItWas(model.name, inputs, digests.of_folder(store.root / model.name))
    except (OSError, InputError):
        return None  # what is wrong is told where it is opened


def outcome(now: AsItWas | None, store: Store) -> Outcome | None:
    """Return what computing a model comes to that is as it was when nothing was left to do; else None."""
    kept = None if now is None else store.settled(now.name)
    if now is None or kept is None or kept.made_from != _both(now.inputs, now.results):
        return None
    return Outcome(now.name, (), kept.findings, {})


def settle(before: AsItWas | None, findings: tuple[str, ...], store: Store, *, written: bool) -> None:
    """Remember that nothing is left to do.

    Args:
        before: the model, before anything was read of it; None: nothing is remembered.
        findings: those that are stored.
        store: where they are.
        written: whether results were written since, under the lock that is held still.
    """
    if before is None:
        return
    results = digests.of_folder(store.root / before.name) if written else before.results
    with suppress(AtlasError):  # without it the checkpoint is opened once more, no more
        store.settle(before.name, _both(before.inputs, results), findings)


def _both(inputs: str, results: str) -> str:
    return digests.of_words(inputs, results)


def _read(files: Files, folder: Path) -> Iterator[Path]:
    """Return the files of a checkpoint that may be read: its weights, and what is small enough for anything else."""
    weights = {folder / name for name in files.weight_files()}
    for path in digests.inside(folder):
        if path in weights or path.stat().st_size <= LARGEST_TEXT:
            yield path


@cache
def _code() -> str:
    return digests.of_code()
