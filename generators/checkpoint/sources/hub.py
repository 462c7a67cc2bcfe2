"""A checkpoint on a model hub."""

from dataclasses import dataclass, field
from pathlib import Path

from generators.base.errors import InputError, WeightsUnavailableError
from generators.checkpoint.config import CONFIG
from generators.checkpoint.registry import HubSource
from generators.checkpoint.sources.files import SHARD_INDEX, WEIGHTS, Files, Origin

HUB_TIMEOUT_S = 10.0
SERVER_ERRORS = 500  # HTTP statuses from here on say that the hub is down, those below that it refuses


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


def _named(source: HubSource) -> str:
    return source.hub if source.revision == "main" else f"{source.hub} at {source.revision}"


def _check_id(hub_id: str) -> None:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # exported, but lazily

    try:
        validate_repo_id(hub_id)
    except HFValidationError as error:
        raise InputError(f"{hub_id!r} can't be a hub id: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
