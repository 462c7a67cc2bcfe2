"""A checkpoint on a model hub: small files whole, tensors by byte ranges."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from generators.base.errors import InputError, WeightsUnavailableError
from generators.checkpoint.config import CONFIG
from generators.checkpoint.registry import HubSource
from generators.checkpoint.sources.files import SHARD_INDEX, WEIGHTS, Files, Origin, Traffic
from generators.checkpoint.sources.kept import Kept, default_folder
from generators.checkpoint.sources.network import (
    RemoteFile,
    first_line,
    is_no_route,
    patiently,
    refusal,
)
from generators.checkpoint.sources.ranged import RangedFiles

HUB_TIMEOUT_S = 10.0
REFUSED = 400  # HTTP statuses from here on are refusals


@dataclass
class Hub:
    """The model hub. Once there is no way to reach it, it isn't asked again; trouble with one model is that model's.

    Args:
        offline: don't ask it; what is kept is used.
        kept: where tensors that were read are kept.
    """

    offline: bool = False
    kept: Kept = field(default_factory=lambda: Kept(default_folder()))
    unreachable: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.offline:
            self.unreachable = "it may not be asked"

    def files(self, source: HubSource) -> Files:
        """Return the files of a hub repository at the commit that its revision means now.

        Raises:
            InputError: the hub allows no such name.
            WeightsUnavailableError: hub out of reach and nothing in its local cache, or no such repository.
        """
        _check_id(source.hub)
        commit, names = self._commit(source)
        origin = Origin("hub", source.hub, source.revision, commit)
        return RangedFiles(
            origin,
            partial(self._download, source, commit, names),
            remote=partial(self._remote, source, commit),
            kept=self.kept,
            key=f"{source.hub}@{commit}",
        )

    def _commit(self, source: HubSource) -> tuple[str, frozenset[str] | None]:
        """Return the commit that a revision means, and the names of its files if the hub could be asked."""
        if self.unreachable is not None:
            return self._known_commit(source, "The model hub can't be reached"), None
        from huggingface_hub import HfApi

        try:
            info = patiently(lambda: HfApi().model_info(source.hub, revision=source.revision, timeout=HUB_TIMEOUT_S))
        except Exception as error:  # whatever the network library of the day raises
            return self._after(error, source), None
        names = frozenset(file.rfilename for file in info.siblings or ())
        if names and not names & {WEIGHTS, SHARD_INDEX}:
            raise WeightsUnavailableError(f"{_named(source)} on the hub has no safetensors.")
        commit = info.sha or source.revision
        self.kept.keep_note({"commit": commit}, "revisions", source.hub, source.revision)
        return commit, names or None

    def _after(self, error: Exception, source: HubSource) -> str:
        """Return the commit known of old, after the hub could not say which it is; or say why there is none."""
        response = getattr(error, "response", None)
        status = getattr(response, "status_code", None)
        if status is not None and REFUSED <= status < 500 and status != 429:
            raise WeightsUnavailableError(f"The hub refuses {_named(source)}: {refusal(response)}") from error
        if is_no_route(error):
            self.unreachable = f"{type(error).__name__}: {first_line(error)}"
            return self._known_commit(source, "The model hub can't be reached")
        return self._known_commit(
            source, f"The model hub can't say now what {_named(source)} is ({first_line(error)})"
        )

    def _known_commit(self, source: HubSource, why: str) -> str:
        """Return the commit that a revision meant when it was last asked for, here or by the hub's own client."""
        note = self.kept.note("revisions", source.hub, source.revision)
        if note is not None and isinstance(note.get("commit"), str):
            return str(note["commit"])
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import LocalEntryNotFoundError

        try:
            path = hf_hub_download(source.hub, CONFIG, revision=source.revision, local_files_only=True)
        except LocalEntryNotFoundError:
            raise WeightsUnavailableError(f"{why} and {_named(source)} isn't in its local cache.") from None
        return Path(path).parent.name  # .../snapshots/<commit>/config.json

    def _download(self, source: HubSource, commit: str, names: Iterable[str] | None, name: str) -> Path | None:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

        if names is not None and name not in names:
            return None
        offline = self.unreachable is not None
        try:
            return Path(
                patiently(lambda: hf_hub_download(source.hub, name, revision=commit, local_files_only=offline))
            )
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
            response: Any = getattr(error, "response", None)
            if response is not None:
                said = f"{name} of {_named(source)} can't be downloaded: {refusal(response)}"
                raise WeightsUnavailableError(said) from error
            on_disk = isinstance(error, OSError) and not isinstance(error, HfHubHTTPError | ConnectionError)
            raise WeightsUnavailableError(
                f"{name} of {_named(source)} can't be {'stored' if on_disk else 'downloaded'}: {first_line(error)}"
            ) from error

    def _remote(self, source: HubSource, commit: str, name: str, traffic: Traffic) -> RemoteFile:
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # exported, but lazily

        named = f"{name} of {_named(source)}"
        if self.unreachable is not None:
            raise WeightsUnavailableError(f"{named} isn't in the local cache, and the model hub can't be reached.")
        return RemoteFile(hf_hub_url(source.hub, name, revision=commit), named, traffic, build_hf_headers())


def _named(source: HubSource) -> str:
    return source.hub if source.revision == "main" else f"{source.hub} at {source.revision}"


def _check_id(hub_id: str) -> None:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # exported, but lazily

    try:
        validate_repo_id(hub_id)
    except HFValidationError as error:
        raise InputError(f"{hub_id!r} can't be a hub id: {first_line(error)}") from error
