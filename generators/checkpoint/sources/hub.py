"""A checkpoint on a model hub: which commit and which files a revision means."""

from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from generators.base.errors import InputError, WeightsUnavailableError, first_line
from generators.checkpoint.config import CONFIG
from generators.checkpoint.registry import HubSource
from generators.checkpoint.sources import patience
from generators.checkpoint.sources.files import Files, Origin
from generators.checkpoint.sources.ranged import RangedFiles
from generators.checkpoint.sources.repository import Repository, answer_in, is_out_of_reach, named, refusal
from generators.checkpoint.sources.tensor_cache import TensorCache, default_folder

HUB_TIMEOUT_S = 10.0
MAIN = "main"
TITLE = "Adding `safetensors` variant of this model"
BOT = "SFconvertbot"  # anyone may open a pull request of that title, with any weights
MOST_LOOKED_AT = 20  # pull requests: the bot opens one per state of the files
OUT_OF_REACH = "The model hub can't be reached"


class OlderFilesError(WeightsUnavailableError): ...


@dataclass
class Hub:
    """The model hub. Once there is no way to reach it, it isn't asked again; trouble with one model is that model's.

    `run` names a run of the command, through which each process remembers which servers can't be reached.
    """

    offline: bool = False
    cache: TensorCache = field(default_factory=lambda: TensorCache(default_folder()))
    run: str = field(default_factory=lambda: uuid4().hex)

    @property
    def is_out_of_reach(self) -> bool:
        return is_out_of_reach(self.offline)

    def why(self) -> str:
        from huggingface_hub import constants

        server = patience.server(constants.ENDPOINT)
        return f"{OUT_OF_REACH} ({server.cause})" if server.is_down else OUT_OF_REACH

    def files(self, source: HubSource, older: bool = False) -> Files:
        """Return the files of a hub repository at the commit that its revision means now.

        `older`: take files that are no safetensors.

        Raises InputError: no repository can have such a name. OlderFilesError: there are only older files, and those
        are not taken. WeightsUnavailableError: hub out of reach and nothing in its local cache, or no such
        repository.
        """
        _check_id(source.hub)
        patience.install()
        patience.begin(self.run)
        repository = self._repository(source)
        if repository.has_older_only:
            repository = self._converted(repository) or repository
        if not repository.has_safetensors and not repository.has_older_only:
            raise WeightsUnavailableError(
                f"{repository.named} on the hub has no safetensors (no weights).{repository.instead()}"
            )
        if repository.has_older_only and not older:
            raise OlderFilesError(f"{repository.named} on the hub has no safetensors (only older files).")
        return RangedFiles(
            Origin("hub", source.hub, repository.revision, repository.commit),
            repository.fetch,
            repository=repository,
            cache=self.cache,
            traffic=repository.traffic,
            gated=repository.gated,
            listed=repository.names,
        )

    def _repository(self, source: HubSource) -> Repository:
        if self.is_out_of_reach:
            return self._known(source, self.why())
        from huggingface_hub import HfApi

        what = named(source.hub, source.revision)
        try:
            info = HfApi().model_info(source.hub, revision=source.revision, timeout=HUB_TIMEOUT_S)
        except Exception as error:  # whatever the network library of the day raises
            if (response := answer_in(error)) is not None:
                raise WeightsUnavailableError(refusal(response, source.hub, what)) from error
            unsaid = f"The model hub can't say now what {what} is ({first_line(error)})"
            return self._known(source, self.why() if is_out_of_reach(self.offline) else unsaid)
        found = _of_info(info, source.hub, source.revision)
        self.cache.store_note(_as_note(found), "revisions", source.hub, source.revision)
        return found

    def _converted(self, older: Repository) -> Repository | None:
        """Return the pull request in which the hub's own bot converted these older files; None without one."""
        place = "conversions", older.hub_id, older.commit
        if (note := self.cache.note(*place)) is not None:
            return self._from_note(note, older.hub_id)
        if self.is_out_of_reach or older.revision != MAIN:
            return None
        try:
            found = _conversion(older.hub_id, older.commit)
        except Exception:  # discussions may be disabled, or the hub be in trouble: the older files are as good
            return None
        if found is None or not found.has_safetensors:
            return None
        self.cache.store_note(_as_note(found), *place)
        return found

    def _known(self, source: HubSource, why: str) -> Repository:
        """Return what a revision meant when last asked for, by the atlas or by the hub's own client."""
        from huggingface_hub import try_to_load_from_cache

        found = self._from_note(self.cache.note("revisions", source.hub, source.revision), source.hub)
        if found is not None:
            return found
        path = try_to_load_from_cache(source.hub, CONFIG, revision=source.revision)
        if not isinstance(path, str):
            what = named(source.hub, source.revision)
            raise WeightsUnavailableError(f"{why} and {what} isn't in its local cache.")
        commit = Path(path).parent.name  # .../snapshots/<commit>/config.json
        return Repository(source.hub, source.revision, commit, offline=self.offline)

    def _from_note(self, note: dict[str, Any] | None, hub_id: str) -> Repository | None:
        match note:
            case {"revision": str(revision), "commit": str(commit), "names": list(names)}:
                listed = frozenset(map(str, names)) or None
                return Repository(hub_id, revision, commit, listed, offline=self.offline)
        return None


def _as_note(found: Repository) -> dict[str, Any]:
    return {"revision": found.revision, "commit": found.commit, "names": sorted(found.names or ())}


def _of_info(info: Any, hub_id: str, revision: str) -> Repository:
    names = frozenset(file.rfilename for file in info.siblings or ())
    return Repository(hub_id, revision, info.sha or revision, names or None, gated=bool(info.gated))


def _conversion(repo: str, commit: str) -> Repository | None:
    """Return a repository's conversion to safetensors, None if it has none.

    That is an open pull request of the hub's own bot whose parent is `commit`, so that the bot converted the files of
    that commit. transformers (`safetensors_conversion.py`) reads the same one, and asks for one where there is none.
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
            return _of_info(api.model_info(repo, revision=commits[0]), repo, revision)
    return None


def _check_id(hub_id: str) -> None:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # exported, but lazily

    try:
        validate_repo_id(hub_id)
    except HFValidationError as error:
        raise InputError(f"{hub_id!r} can't be a hub id: {first_line(error)}.") from error
