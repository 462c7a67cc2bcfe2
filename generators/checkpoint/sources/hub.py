"""A checkpoint on a model hub: which commit and which files a revision means."""

from dataclasses import dataclass, field
from pathlib import Path

from generators.base.errors import InputError, WeightsUnavailableError, first_line
from generators.checkpoint.config import CONFIG
from generators.checkpoint.registry import HubSource
from generators.checkpoint.sources import patience, pickled
from generators.checkpoint.sources.files import Files, Origin
from generators.checkpoint.sources.ranged import RangedFiles
from generators.checkpoint.sources.repository import Repository, answer_in, is_out_of_reach, named, refusal
from generators.checkpoint.sources.tensor_cache import TensorCache, default_folder

HUB_TIMEOUT_S = 10.0
OUT_OF_REACH = "The model hub can't be reached"


@dataclass
class Hub:
    """The model hub. Once there is no way to reach it, it isn't asked for a while; other trouble is one model's."""

    offline: bool = False
    cache: TensorCache = field(default_factory=lambda: TensorCache(default_folder()))

    def out_of_reach(self) -> str | None:
        """Return why the hub isn't asked now, None where it is."""
        from huggingface_hub import constants

        server = patience.server(constants.ENDPOINT)
        if server.is_down:
            return f"{OUT_OF_REACH} ({server.cause})"
        return OUT_OF_REACH if is_out_of_reach(self.offline) else None

    def files(self, source: HubSource) -> Files:
        """Return the files of a hub repository at the commit that its revision means now.

        Raises InputError: no repository can have such a name. WeightsUnavailableError: hub out of reach and nothing
        in its local cache, no such repository, or none whose weights can be read here.
        """
        _check_id(source.hub)
        patience.install()
        repository = self._repository(source)
        if not repository.has_safetensors and not repository.has_older_only:
            raise WeightsUnavailableError(
                f"{repository.named} on the hub has no safetensors (no weights).{repository.instead()}"
            )
        if repository.has_older_only and not pickled.can_be_read():
            raise WeightsUnavailableError(f"{repository.named} on the hub has no safetensors (only older files).")
        return RangedFiles(
            Origin("hub", source.hub, repository.revision, repository.commit),
            repository.fetch,
            repository=repository,
            cache=self.cache,
            gated=repository.gated,
            listed=repository.names,
        )

    def _repository(self, source: HubSource) -> Repository:
        if (why := self.out_of_reach()) is not None:
            return self._known(source, why)
        from huggingface_hub import HfApi

        what = named(source.hub, source.revision)
        try:
            info = HfApi().model_info(source.hub, revision=source.revision, timeout=HUB_TIMEOUT_S)
        except Exception as error:  # whatever the network library of the day raises
            if (response := answer_in(error)) is not None:
                raise WeightsUnavailableError(refusal(response, source.hub, what)) from error
            unsaid = f"The model hub can't say now what {what} is ({first_line(error)})"
            return self._known(source, self.out_of_reach() or unsaid)
        commit, names = info.sha or source.revision, [file.rfilename for file in info.siblings or ()]
        self.cache.store_note({"commit": commit, "names": names}, "revisions", source.hub, source.revision)
        return Repository(source.hub, source.revision, commit, frozenset(names) or None, gated=bool(info.gated))

    def _known(self, source: HubSource, why: str) -> Repository:
        """Return what a revision meant when last asked for, by the atlas or by the hub's own client."""
        from huggingface_hub import try_to_load_from_cache

        match self.cache.note("revisions", source.hub, source.revision):
            case {"commit": str(commit), "names": list(names)}:
                listed = frozenset(map(str, names)) or None
                return Repository(source.hub, source.revision, commit, listed, offline=self.offline)
        path = try_to_load_from_cache(source.hub, CONFIG, revision=source.revision)
        if not isinstance(path, str):
            what = named(source.hub, source.revision)
            raise WeightsUnavailableError(f"{why} and {what} isn't in its local cache.")
        commit = Path(path).parent.name  # .../snapshots/<commit>/config.json
        return Repository(source.hub, source.revision, commit, offline=self.offline)


def _check_id(hub_id: str) -> None:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # exported, but lazily

    try:
        validate_repo_id(hub_id)
    except HFValidationError as error:
        raise InputError(f"{hub_id!r} can't be a hub id: {first_line(error)}.") from error
