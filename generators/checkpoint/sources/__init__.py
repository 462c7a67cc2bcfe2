"""Where a checkpoint's files are: a folder, an installed package, a model hub."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from generators.base.errors import InputError, WeightsUnavailableError
from generators.checkpoint.config import CONFIG
from generators.checkpoint.registry import FolderSource, HubSource, Model, PackageSource, Source
from generators.checkpoint.sources import pickled
from generators.checkpoint.sources.files import (
    FLOATING,
    LARGEST_TEXT,
    SHARD_INDEX,
    WEIGHTS,
    Files,
    Header,
    Origin,
    Traffic,
    check_size,
)
from generators.checkpoint.sources.folder import in_folder
from generators.checkpoint.sources.hub import Hub, OlderFilesError
from generators.checkpoint.sources.package import in_package

__all__ = [
    "CONFIG",
    "FLOATING",
    "LARGEST_TEXT",
    "SHARD_INDEX",
    "WEIGHTS",
    "Files",
    "Header",
    "Hub",
    "Origin",
    "Places",
    "Traffic",
    "check_size",
    "in_folder",
    "locate",
    "locate_here",
]


@dataclass(frozen=True)
class Places:
    """Where weights are looked for, beside a model's own sources."""

    models_dirs: Sequence[Path] = ()
    hub: Hub = field(default_factory=Hub)


def locate(model: Model, models_dirs: Sequence[Path], hub: Hub) -> Files:
    """Find a model's files: in `models_dirs` by its name, before anything is downloaded, then in its sources.

    A model that names a folder first is read from there and nowhere else.

    Raises:
        InputError: a folder was named outright and can't be used.
        WeightsUnavailableError: none of the places has them now; says why of each.
    """
    return replace(_found(model, models_dirs, hub), stack=model.stack)


def locate_here(model: Model, models_dirs: Sequence[Path]) -> Files | None:
    """Find a model's files as `locate` does, without asking a hub; None where one would be asked first.

    Raises:
        InputError, WeightsUnavailableError: as for `locate`.
    """
    found = _in_models_dirs(model, models_dirs)
    first = model.sources[0]
    if found is None and not isinstance(first, HubSource):
        found = _open_here(first, of_series=model.only_in_series)
    return None if found is None else replace(found, stack=model.stack)


def _in_models_dirs(model: Model, models_dirs: Sequence[Path]) -> Files | None:
    if isinstance(model.sources[0], FolderSource):
        return None
    there = (folder / model.whole for folder in models_dirs)
    return next((in_folder(folder) for folder in there if folder.is_dir()), None)


def _found(model: Model, models_dirs: Sequence[Path], hub: Hub) -> Files:
    found = _in_models_dirs(model, models_dirs)
    if found is not None:
        return found
    reasons, older = [], []
    for source in model.sources:
        try:
            return _open(source, hub, of_series=model.only_in_series)
        except WeightsUnavailableError as error:
            reasons.append(str(error))
            if isinstance(error, OlderFilesError) and isinstance(source, HubSource):
                older.append(source)
    if pickled.can_be_read():  # safetensors anywhere come before older files
        for source in older:
            return hub.files(source, older=True)
    raise WeightsUnavailableError(" ".join(reasons))


def _open(source: Source, hub: Hub, *, of_series: bool) -> Files:
    return hub.files(source) if isinstance(source, HubSource) else _open_here(source, of_series=of_series)


def _open_here(source: PackageSource | FolderSource, *, of_series: bool) -> Files:
    """Return a source's files; a model of a series that isn't trained yet, or not kept, is no wrong name."""
    if isinstance(source, PackageSource):
        return in_package(source)
    if not source.folder.is_dir():
        raise (WeightsUnavailableError if of_series else InputError)(f"There is no folder {source.folder}.")
    return in_folder(source.folder)
