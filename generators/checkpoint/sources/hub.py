"""A checkpoint on a model hub: small files whole, tensors by byte ranges."""

import tempfile
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from generators.base import notices
from generators.base.errors import InputError, WeightsUnavailableError
from generators.checkpoint.config import CONFIG, PICKLED, WEIGHTS
from generators.checkpoint.registry import HubSource
from generators.checkpoint.single_files import what_is_there
from generators.checkpoint.sources import patience
from generators.checkpoint.sources.files import SHARD_INDEX, Files, Origin
from generators.checkpoint.sources.network import RemoteFile, Traffic, answer_in
from generators.checkpoint.sources.patience import first_line
from generators.checkpoint.sources.pickled import PICKLED_INDEX
from generators.checkpoint.sources.ranged import RangedFiles
from generators.checkpoint.sources.refusals import refusal
from generators.checkpoint.sources.tensor_cache import TensorCache, default_folder

HUB_TIMEOUT_S = 10.0
MAIN = "main"
TITLE = "Adding `safetensors` variant of this model"
BOT = "SFconvertbot"  # anyone may open a pull request of that title, with any weights
MOST_LOOKED_AT = 20  # pull requests: the bot opens one per state of the files
OF_WEIGHTS = (".safetensors", ".bin")
BY_ITSELF = (".gguf", ".pt", ".pth", ".ckpt")  # files that are read where they are named, on this machine
OUT_OF_REACH = "The model hub can't be reached"


class OlderFilesError(WeightsUnavailableError):
    """A repository has older files only."""


@dataclass
class Hub:
    """The model hub. Once there is no way to reach it, it isn't asked again; trouble with one model is that model's.

    Args:
        offline: don't ask it; what is cached is used.
        cache: of tensors that were read.
        run: names a run of the command, through which each process remembers which servers can't be reached.
    """

    offline: bool = False
    cache: TensorCache = field(default_factory=lambda: TensorCache(default_folder()))
    run: str = field(default_factory=lambda: uuid4().hex)

    @property
    def is_out_of_reach(self) -> bool:
        """Return whether it may not be asked, or is known not to answer."""
        from huggingface_hub import constants

        return self.offline or constants.is_offline_mode() or patience.server(constants.ENDPOINT).is_down

    def why(self) -> str:
        """Return that it can't be reached, and why if that is known."""
        from huggingface_hub import constants

        server = patience.server(constants.ENDPOINT)
        return f"{OUT_OF_REACH} ({server.cause})" if server.is_down else OUT_OF_REACH

    def files(self, source: HubSource, older: bool = False) -> Files:
        """Return the files of a hub repository at the commit that its revision means now.

        Args:
            older: take files that are no safetensors.

        Raises:
            InputError: no repository can have such a name.
            OlderFilesError: there are only older files, and those are not taken.
            WeightsUnavailableError: hub out of reach and nothing in its local cache, or no such repository.
        """
        _check_id(source.hub)
        patience.install()
        patience.begin(self.run)
        state = self._state(source)
        if state.has_older_only:
            state = self._converted(source, state) or state
        traffic = Traffic()
        if not state.has_safetensors and not state.has_older_only:
            raise WeightsUnavailableError(
                f"{_named(source)} on the hub has no safetensors (no weights).{self._instead(source, state, traffic)}"
            )
        if state.has_older_only and not older:
            raise OlderFilesError(f"{_named(source)} on the hub has no safetensors (only older files).")
        return RangedFiles(
            Origin("hub", source.hub, state.revision, state.commit),
            partial(self._fetched, source, state, traffic),
            remote=partial(self._remote, source, state.commit),
            cache=self.cache,
            key=f"{source.hub}@{state.commit}",
            ranged=state.has_safetensors,
            here=partial(_is_here, source, state),
            traffic=traffic,
            gated=state.gated,
            listed=state.names,
        )

    def _instead(self, source: HubSource, state: "_State", traffic: Traffic) -> str:
        """Return what a repository holds instead of what can be read, as a sentence after another, if known."""
        names = state.names or frozenset()

        def content(name: str) -> bytes | None:
            path = self._fetched(source, state, traffic, name)
            return None if path is None else path.read_bytes()

        file = next((name for name in sorted(names) if name.endswith(BY_ITSELF)), None)
        if (said := what_is_there(names, content, _named(source))) != "":
            return f" {said}"
        return "" if file is None else f" Download {file} and name the file: `hf download {source.hub} {file}`."

    def _state(self, source: HubSource) -> "_State":
        """Return what a revision means now, or what it meant when the hub could be asked last."""
        if self.is_out_of_reach:
            return self._known_state(source, self.why())
        from huggingface_hub import HfApi

        try:
            info = HfApi().model_info(source.hub, revision=source.revision, timeout=HUB_TIMEOUT_S)
        except Exception as error:  # whatever the network library of the day raises
            return self._after(error, source)
        names = frozenset(file.rfilename for file in info.siblings or ())
        state = _State(source.revision, info.sha or source.revision, names or None, gated=bool(info.gated))
        self.cache.store_note(state.as_note(), "revisions", source.hub, source.revision)
        return state

    def _converted(self, source: HubSource, older: "_State") -> "_State | None":
        """Return the pull request in which the hub's own bot converted these older files; None without one."""
        note = self.cache.note("conversions", source.hub, older.commit)
        if note is not None:
            return _State.from_note(note)
        if self.is_out_of_reach or source.revision != MAIN:
            return None
        try:
            state = _conversion(source.hub, older.commit)
        except Exception:  # discussions may be disabled, or the hub be in trouble: the older files are as good
            return None
        if state is None or not state.has_safetensors:
            return None
        self.cache.store_note(state.as_note(), "conversions", source.hub, older.commit)
        return state

    def _after(self, error: Exception, source: HubSource) -> "_State":
        """Return the last known state after the hub failed to say what it is now; or say why there is none."""
        response = answer_in(error)
        if response is not None:
            raise WeightsUnavailableError(refusal(response, source.hub, _named(source))) from error
        if self.is_out_of_reach:
            return self._known_state(source, self.why())
        return self._known_state(
            source, f"The model hub can't say now what {_named(source)} is ({first_line(error)})"
        )

    def _known_state(self, source: HubSource, why: str) -> "_State":
        """Return what a revision meant when last asked for, by the atlas or by the hub's own client."""
        state = _State.from_note(self.cache.note("revisions", source.hub, source.revision))
        if state is not None:
            return state
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import LocalEntryNotFoundError

        try:
            path = hf_hub_download(source.hub, CONFIG, revision=source.revision, local_files_only=True)
        except LocalEntryNotFoundError:
            raise WeightsUnavailableError(f"{why} and {_named(source)} isn't in its local cache.") from None
        return _State(source.revision, Path(path).parent.name)  # .../snapshots/<commit>/config.json

    def _fetched(self, source: HubSource, state: "_State", traffic: Traffic, name: str) -> Path | None:
        """Return a file that is on the disk from now on, and count what comes if it holds weights."""
        from huggingface_hub import constants, hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

        if state.names is not None and name not in state.names:
            return None
        offline, file = self.is_out_of_reach, f"{name} of {_named(source)}"
        download = partial(hf_hub_download, source.hub, name, revision=state.commit, local_files_only=offline)
        if name.endswith(OF_WEIGHTS):
            download = partial(download, tqdm_class=_counting(traffic))
        try:
            try:
                return Path(download())
            except OSError as error:
                if not _is_disk(error) or name.endswith(OF_WEIGHTS):
                    raise
                notices.say_once(
                    f"The hub client's cache {constants.HF_HUB_CACHE} can't be written ({error.strerror}); small "
                    "files are kept for this run only."
                )
                return Path(download(cache_dir=_for_this_run().name))
        except LocalEntryNotFoundError as error:
            if offline and not name.endswith(".safetensors"):  # most repositories have no shard index
                return None
            raise self._not_downloaded(error, source, file, offline=offline) from error
        except EntryNotFoundError:
            return None
        except Exception as error:  # the disk, or network failures part way through a download
            raise self._not_downloaded(error, source, file) from error

    def _not_downloaded(
        self, error: Exception, source: HubSource, file: str, *, offline: bool = False
    ) -> WeightsUnavailableError:
        """Return why there is no file, and what to do about it."""
        from huggingface_hub import constants
        from huggingface_hub.errors import LocalEntryNotFoundError

        if offline:
            said = f"{file} isn't in the local cache, and the model hub can't be reached."
        elif (response := answer_in(error)) is not None:
            said = refusal(response, source.hub, file)
        elif _is_disk(error):
            said = (
                f"{file} can't be stored in {constants.HF_HUB_CACHE} ({getattr(error, 'strerror', '')}). "
                "`atlas cache` shows what can be removed; HF_HOME can name a folder on another disk."
            )
        elif isinstance(error, LocalEntryNotFoundError):
            said = f"{file} can't be downloaded now."
        else:
            said = f"{file} can't be downloaded: {first_line(error)}."
        return WeightsUnavailableError(said)

    def _remote(self, source: HubSource, commit: str, name: str, traffic: Traffic) -> RemoteFile:
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # exported, but lazily

        named = f"{name} of {_named(source)}"
        if self.is_out_of_reach:
            raise WeightsUnavailableError(f"{named} isn't in the local cache, and the model hub can't be reached.")
        return RemoteFile(
            hf_hub_url(source.hub, name, revision=commit), source.hub, named, traffic, build_hf_headers()
        )


@dataclass(frozen=True)
class _State:
    """What a revision means: a commit, and the names of its files where they are known."""

    revision: str
    commit: str
    names: frozenset[str] | None = None
    gated: bool = False

    @property
    def has_safetensors(self) -> bool:
        """Return whether there are any, as far as one knows."""
        return self.names is None or bool(self.names & {WEIGHTS, SHARD_INDEX})

    @property
    def has_older_only(self) -> bool:
        """Return whether weights are in files that are no safetensors."""
        return not self.has_safetensors and bool((self.names or frozenset()) & {PICKLED, PICKLED_INDEX})

    def as_note(self) -> dict[str, Any]:
        """Return it as it is stored."""
        return {"revision": self.revision, "commit": self.commit, "names": sorted(self.names or ())}

    @classmethod
    def from_note(cls, note: dict[str, Any] | None) -> "_State | None":
        """Return what was stored, None if that is no state."""
        match note:
            case {"revision": str(revision), "commit": str(commit), "names": list(names)}:
                return cls(revision, commit, frozenset(map(str, names)) or None)
        return None


def _conversion(repo: str, commit: str) -> _State | None:
    """Return a repository's conversion to safetensors, None if it has none.

    That is an open pull request of the hub's own bot whose parent is `commit`, so that the bot converted the files of
    that commit. transformers (`safetensors_conversion.py`) reads the same one, and asks for one where there is none;
    the atlas asks for nothing.

    Raises Exception: whatever the hub's client raises where the hub refuses or can't be reached.
    """
    from huggingface_hub import HfApi

    api = HfApi()
    pulls = api.get_repo_discussions(repo, author=BOT, discussion_type="pull_request", discussion_status="open")
    for pull in islice(pulls, MOST_LOOKED_AT):
        revision = pull.git_reference
        if pull.title != TITLE or pull.author != BOT or not pull.is_pull_request or revision is None:
            continue
        commits = [each.commit_id for each in islice(api.list_repo_commits(repo, revision=revision), 2)]
        if commits[1:] == [commit]:
            info = api.model_info(repo, revision=commits[0])
            return _State(revision, commits[0], frozenset(file.rfilename for file in info.siblings or ()))
    return None


def _counting(traffic: Traffic) -> Any:
    """Return what takes the place of the bars that the hub's client draws: it draws none, and counts what comes."""
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]  # exported, but lazily

    class Counting(tqdm):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **{**options, "disable": True})  # type: ignore[no-untyped-call]

        def update_transfer(self, count: int) -> None:  # bytes on the network; `update` is for those on the disk
            traffic.came(count)

        def set_transfer_postfix_str(self, *arguments: Any, **options: Any) -> None: ...

    return Counting


def _is_here(source: HubSource, state: _State, name: str) -> bool:
    """Return whether the hub's own client has a whole file in its cache."""
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(source.hub, name, revision=state.commit), str)


@cache
def _for_this_run() -> "tempfile.TemporaryDirectory[str]":
    """Return a folder for files that can't be stored where they should be; it goes when the process ends."""
    return tempfile.TemporaryDirectory(prefix="atlas-")


def _is_disk(error: Exception) -> bool:
    """Return whether an error is of the disk; the hub client's own are OSErrors too."""
    from huggingface_hub.errors import HfHubHTTPError

    return (
        isinstance(error, OSError) and bool(error.errno) and not isinstance(error, HfHubHTTPError | ConnectionError)
    )


def _named(source: HubSource) -> str:
    return source.hub if source.revision == "main" else f"{source.hub} at {source.revision}"


def _check_id(hub_id: str) -> None:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # exported, but lazily

    try:
        validate_repo_id(hub_id)
    except HFValidationError as error:
        raise InputError(f"{hub_id!r} can't be a hub id: {first_line(error)}.") from error
