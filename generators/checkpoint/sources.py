"""Where a checkpoint's files are: a folder, an installed package, a model hub."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from generators.base.errors import InputError, WeightsUnavailableError
from generators.checkpoint.registry import FolderSource, HubSource, Model, PackageSource, Source

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
SHARD_INDEX = "model.safetensors.index.json"
HUB_TIMEOUT_S = 10.0
SERVER_ERRORS = 500  # HTTP statuses from here on say that the hub is down, those below that it refuses


@dataclass(frozen=True)
class Origin:
    """Where weights came from, for the record: what kind of place, which one, and the commit if there is one."""

    kind: str
    place: str
    revision: str | None = None
    commit: str | None = None


@dataclass(frozen=True)
class Files:
    """A checkpoint's files, each fetched when asked for; `fetch` returns None for a file that isn't there."""

    origin: Origin
    fetch: Callable[[str], Path | None]


@dataclass
class Hub:
    """The model hub, asked once whether it can be reached; after a first 'no' it isn't asked again."""

    unreachable: str | None = field(default=None, init=False)

    def files(self, source: HubSource) -> Files:
        """Return the files of a hub repository at the commit that its revision means now.

        Raises:
            InputError: the hub allows no such name.
            WeightsUnavailableError: hub out of reach and nothing in its local cache, or no such repository.
        """
        _check_id(source.hub)
        commit = self._commit(source)
        origin = Origin("hub", source.hub, source.revision, commit)
        return Files(origin, lambda name: self._download(source, commit, name))

    def _commit(self, source: HubSource) -> str:
        if self.unreachable is None:
            from huggingface_hub import HfApi
            from huggingface_hub.errors import HfHubHTTPError

            try:
                info = HfApi().model_info(source.hub, revision=source.revision, timeout=HUB_TIMEOUT_S)
                names = {file.rfilename for file in info.siblings or ()}
                if names and not names & {WEIGHTS, SHARD_INDEX}:
                    raise WeightsUnavailableError(f"{_named(source)} on the hub has no safetensors.")
                return info.sha or source.revision
            except WeightsUnavailableError:
                raise
            except Exception as error:  # whatever the network library of the day raises
                if isinstance(error, HfHubHTTPError) and error.response.status_code < SERVER_ERRORS:
                    raise WeightsUnavailableError(
                        f"The hub refuses {_named(source)}: {_first_line(error)}"
                    ) from error
                self.unreachable = f"{type(error).__name__}: {_first_line(error)}"
        return self._cached_commit(source)

    def _cached_commit(self, source: HubSource) -> str:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import LocalEntryNotFoundError

        try:
            path = hf_hub_download(source.hub, CONFIG, revision=source.revision, local_files_only=True)
        except LocalEntryNotFoundError:
            raise WeightsUnavailableError(
                f"The model hub can't be reached and {_named(source)} isn't in its local cache."
            ) from None
        return Path(path).parent.name  # .../snapshots/<commit>/config.json

    def _download(self, source: HubSource, commit: str, name: str) -> Path | None:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

        offline = self.unreachable is not None
        try:
            return Path(hf_hub_download(source.hub, name, revision=commit, local_files_only=offline))
        except LocalEntryNotFoundError as error:
            if offline and not name.endswith(".safetensors"):  # most repositories have no shard index
                return None
            why = (
                "isn't in the local cache, and the model hub can't be reached"
                if offline
                else "can't be downloaded now"
            )
            raise WeightsUnavailableError(f"{name} of {_named(source)} {why}.") from error
        except EntryNotFoundError:
            return None
        except Exception as error:  # the disk, or network failures part way through a download
            on_disk = isinstance(error, OSError) and not isinstance(error, HfHubHTTPError | ConnectionError)
            raise WeightsUnavailableError(
                f"{name} of {_named(source)} can't be {'stored' if on_disk else 'downloaded'}: {_first_line(error)}"
            ) from error


def locate(model: Model, models_dirs: Sequence[Path], hub: Hub) -> Files:
    """Find a model's files: in `models_dirs` by its name, before anything is downloaded, then in its sources.

    A model that names a folder first is read from there and nowhere else.

    Raises:
        InputError: a folder was named outright and can't be used.
        WeightsUnavailableError: none of the places has them now; says why of each.
    """
    if not isinstance(model.sources[0], FolderSource):
        for folder in models_dirs:
            if (folder / model.name).is_dir():
                return in_folder(folder / model.name)
    reasons = []
    for source in model.sources:
        try:
            return _open(source, hub)
        except WeightsUnavailableError as error:
            reasons.append(str(error))
    raise WeightsUnavailableError(" ".join(reasons))


def in_folder(folder: Path, origin: Origin | None = None) -> Files:
    """Return the files of the checkpoint in a folder."""

    def fetch(name: str) -> Path | None:
        path = folder / name
        try:
            return path if path.is_file() else None
        except OSError as error:  # a name that is too long, a folder that can't be entered
            raise InputError(f"{name} in the folder {folder.name} can't be read: {error.strerror}.") from error

    return Files(origin or Origin("folder", _as_text(folder.name)), fetch)


def _open(source: Source, hub: Hub) -> Files:
    if isinstance(source, HubSource):
        return hub.files(source)
    if isinstance(source, PackageSource):
        return _in_package(source)
    if not source.folder.is_dir():
        raise InputError(f"There is no folder {source.folder}.")
    return in_folder(source.folder)


def _in_package(source: PackageSource) -> Files:
    try:
        package = metadata.distribution(source.package)
    except metadata.PackageNotFoundError:
        raise WeightsUnavailableError(f"The package {source.package} isn't installed.") from None
    for file in package.files or ():
        if file.name in (WEIGHTS, SHARD_INDEX):
            folder = Path(str(package.locate_file(file))).parent
            return in_folder(folder, Origin("package", source.package, package.version))
    raise InputError(f"The package {source.package} carries no {WEIGHTS}.")


def _named(source: HubSource) -> str:
    return source.hub if source.revision == "main" else f"{source.hub} at {source.revision}"


def _check_id(hub_id: str) -> None:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # exported, but lazily

    try:
        validate_repo_id(hub_id)
    except HFValidationError as error:
        raise InputError(f"{hub_id!r} can't be a hub id: {_first_line(error)}") from error


def _as_text(name: str) -> str:
    """Return a file name without what no text file can hold: bytes that aren't UTF-8."""
    return os.fsencode(name).decode("utf-8", "replace")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
