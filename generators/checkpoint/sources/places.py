"""Where a checkpoint's files are: a folder, an installed package, a model hub."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path

from generators.base.errors import InputError, WeightsUnavailableError
from generators.checkpoint.config import WEIGHTS
from generators.checkpoint.registry import FolderSource, HubSource, Model, PackageSource
from generators.checkpoint.sources.files import SHARD_INDEX, Files, Origin
from generators.checkpoint.sources.hub import Hub


@dataclass(frozen=True)
class Places:
    models_dirs: Sequence[Path] = ()
    hub: Hub = field(default_factory=Hub)


LAID_OUT = (".cache", "real-models")  # the folders of folders that `make real-models` makes


def locate(model: Model, models_dirs: Sequence[Path], hub: Hub) -> Files:
    """Find a model's files: in `models_dirs` by its name, before anything is downloaded, then in its sources.

    A model that names a folder first is read from there and nowhere else.

    Raises InputError: a folder was named outright and can't be used. WeightsUnavailableError: no place has them now;
    says why for each.
    """
    return replace(_in_models_dirs(model, models_dirs) or _in_sources(model, hub), stack=model.stack)


def locate_here(model: Model, models_dirs: Sequence[Path]) -> Files | None:
    """Find a model's files as `locate` does, without asking a hub; None where one would be asked first."""
    found = _in_models_dirs(model, models_dirs)
    first = model.sources[0]
    if found is None and not isinstance(first, HubSource):
        found = _open_here(first, of_series=model.only_in_series)
    return None if found is None else replace(found, stack=model.stack)


def is_here(model: Model, models_dirs: Sequence[Path]) -> bool:
    """Return whether a model's files are on this machine; a named folder or package that is wrong counts as here."""
    try:
        return locate_here(model, models_dirs) is not None
    except WeightsUnavailableError:
        return False
    except InputError:
        return True


def _in_models_dirs(model: Model, models_dirs: Sequence[Path]) -> Files | None:
    if isinstance(model.sources[0], FolderSource):
        return None
    there = (folder / model.whole for folder in models_dirs)
    return next((in_folder(folder) for folder in there if folder.is_dir()), None)


def _in_sources(model: Model, hub: Hub) -> Files:
    reasons: list[str] = []
    for source in model.sources:
        try:
            if isinstance(source, HubSource):
                return hub.files(source)
            return _open_here(source, of_series=model.only_in_series)
        except WeightsUnavailableError as error:
            reasons.append(str(error))
    raise WeightsUnavailableError(" ".join(reasons))


def _open_here(source: PackageSource | FolderSource, *, of_series: bool) -> Files:
    """Return a source's files. A missing folder is a mistake, unless it is of a series, or a command lays it out."""
    if isinstance(source, PackageSource):
        return in_package(source)
    try:
        is_file, is_folder = source.folder.is_file(), source.folder.is_dir()
    except OSError as error:  # a name that is too long
        raise InputError(f"The folder {source.folder} can't be read: {error.strerror}.") from error
    if is_file:
        origin = Origin("file", _as_text(source.folder.name))
        return replace(in_folder(source.folder.parent, origin), file=source.folder.name)
    if is_folder:
        return in_folder(source.folder)
    laid_out = source.folder.parts[-3:-1] == LAID_OUT
    step = "; make real-models lays it out" if laid_out else ""
    raise (WeightsUnavailableError if of_series or laid_out else InputError)(
        f"There is no folder {source.folder}{step}."
    )


def in_folder(folder: Path, origin: Origin | None = None, stack: str | None = None) -> Files:
    """Return the files of the checkpoint in a folder."""

    def fetch(name: str) -> Path | None:
        path = folder / name
        try:
            return path if path.is_file() else None
        except OSError as error:  # a name that is too long, a folder that can't be entered
            raise InputError(f"{name} in the folder {folder.name} can't be read: {error.strerror}.") from error

    return Files(origin or Origin("folder", _as_text(folder.name)), fetch, stack=stack, folder=folder)


def _as_text(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "replace")  # bytes that aren't UTF-8 can't be stored


def in_package(source: PackageSource) -> Files:
    """Return the files in an installed package. Raises InputError: none. WeightsUnavailableError: not installed."""
    try:
        package = metadata.distribution(source.package)
    except metadata.PackageNotFoundError:
        raise WeightsUnavailableError(f"The package {source.package} isn't installed.") from None
    for file in package.files or ():
        if file.name in (WEIGHTS, SHARD_INDEX):
            folder = Path(str(package.locate_file(file))).parent
            return in_folder(folder, Origin("package", source.package, package.version))
    raise InputError(f"The package {source.package} contains no {WEIGHTS}.")
