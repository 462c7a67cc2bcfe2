"""A repository of the hub at a commit: whole files through the hub client's cache, parts of files by byte ranges.

Parts are read with the client's own session. Its `HfFileSystem` asks for two listings first, takes a whole file for
the part that it asked for, begins a cut part anew, and can't be stopped.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generators.base.errors import WeightsUnavailableError, first_line
from generators.checkpoint.config import PICKLED, WEIGHTS
from generators.checkpoint.single_files import what_is_there
from generators.checkpoint.sources import patience
from generators.checkpoint.sources.files import SHARD_INDEX
from generators.checkpoint.sources.pickled import PICKLED_INDEX

TIMEOUT_S = 30.0
MOST_CUTS = 5  # in a row, without one more byte
PARTIAL = 206
SHOWN = 200  # characters of what the hub says itself
Came = Callable[[int], None]
BY_ITSELF = (".gguf", ".pt", ".pth", ".ckpt")  # files that are read where they are named, on this machine


def ignored(count: int) -> None: ...


@dataclass(frozen=True)
class Repository:
    """The files of a repository at a commit. `names` are those of its files, where they are known."""

    hub_id: str
    revision: str
    commit: str
    names: frozenset[str] | None = None
    gated: bool = False
    offline: bool = False

    @property
    def named(self) -> str:
        return named(self.hub_id, self.revision)

    @property
    def has_safetensors(self) -> bool:
        return self.names is None or bool(self.names & {WEIGHTS, SHARD_INDEX})

    @property
    def has_older_only(self) -> bool:
        return not self.has_safetensors and bool((self.names or frozenset()) & {PICKLED, PICKLED_INDEX})

    def here(self, name: str) -> Path | None:
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(self.hub_id, name, revision=self.commit)
        return Path(found) if isinstance(found, str) else None

    def fetch(self, name: str, came: Came = ignored) -> Path | None:
        """Return a whole file, now on the disk; None without one. Raises WeightsUnavailableError: not now.

        `came` hears how many bytes more have come.
        """
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import RemoteEntryNotFoundError

        if self.names is not None and name not in self.names:
            return None
        if (found := self.here(name)) is not None:
            return found
        if is_out_of_reach(self.offline) and not name.endswith(".safetensors"):  # most have no shard index
            return None
        self._check_reach(name)
        try:
            return Path(hf_hub_download(self.hub_id, name, revision=self.commit, tqdm_class=_counting(came)))
        except RemoteEntryNotFoundError:
            return None
        except Exception as error:  # the disk, or whatever the network library of the day raises
            raise self._unavailable(error, name) from error

    def metadata(self, name: str) -> Any:
        """Return a file's `size`, and `etag`, its digest. Raises WeightsUnavailableError: the hub doesn't say."""
        from huggingface_hub import get_hf_file_metadata, hf_hub_url

        self._check_reach(name)
        try:
            return get_hf_file_metadata(hf_hub_url(self.hub_id, name, revision=self.commit))
        except Exception as error:
            raise self._unavailable(error, name) from error

    def read(self, name: str, start: int, end: int, came: Came = ignored) -> bytearray:
        """Return the bytes of a file from `start` up to `end`; after a cut, the rest is asked for.

        Raises WeightsUnavailableError: they can't be read now.
        """
        import httpx2

        self._check_reach(name)
        got, cuts = bytearray(), 0
        while len(got) < end - start:
            before = len(got)
            try:
                self._read_into(got, name, start + before, end, came)
                if len(got) == before:
                    raise httpx2.ReadError("the answer was empty")
            except WeightsUnavailableError:
                raise
            except Exception as error:
                cuts = cuts + 1 if len(got) == before else 1
                if cuts > MOST_CUTS or not isinstance(error, httpx2.TransportError):
                    raise self._unavailable(error, name) from error
                patience.go_on(patience.waiting(cuts))  # the client retries requests, but no answer that is cut
        return got

    def _read_into(self, got: bytearray, name: str, start: int, end: int, came: Came) -> None:
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils import (  # type: ignore[attr-defined]  # exported, but lazily
            build_hf_headers,
            get_session,
            hf_raise_for_status,
        )

        url = hf_hub_url(self.hub_id, name, revision=self.commit)
        asked = {**build_hf_headers(), "Range": f"bytes={start}-{end - 1}", "Accept-Encoding": "identity"}
        with get_session().stream("GET", url, headers=asked, timeout=TIMEOUT_S) as response:
            hf_raise_for_status(response)
            part = response.headers.get("content-range", "")
            if response.status_code != PARTIAL or not part.startswith(f"bytes {start}-{end - 1}/"):
                raise WeightsUnavailableError(f"{name} of {self.named} can't be read: the answer is another part.")
            for chunk in response.iter_raw():
                got += chunk
                came(len(chunk))
                patience.go_on()

    def instead(self) -> str:
        """Return what the repository holds in place of weights that can be read, as a sentence after another."""
        names = self.names or frozenset()

        def content(name: str) -> bytes | None:
            path = self.fetch(name)
            return None if path is None else path.read_bytes()

        if said := what_is_there(names, content, self.named):
            return f" {said}"
        file = next((name for name in sorted(names) if name.endswith(BY_ITSELF)), None)
        return "" if file is None else f" Download {file} and name the file: `hf download {self.hub_id} {file}`."

    def _check_reach(self, name: str) -> None:
        if is_out_of_reach(self.offline):
            raise WeightsUnavailableError(
                f"{name} of {self.named} isn't in the local cache, and the model hub can't be reached."
            )

    def _unavailable(self, error: Exception, name: str) -> WeightsUnavailableError:
        from huggingface_hub import constants

        file = f"{name} of {self.named}"
        if (response := answer_in(error)) is not None:
            return WeightsUnavailableError(refusal(response, self.hub_id, file))
        if isinstance(error, OSError) and error.errno and not isinstance(error, ConnectionError):
            return WeightsUnavailableError(
                f"{file} can't be stored in {constants.HF_HUB_CACHE} ({error.strerror}). "
                "`atlas cache` shows what can be removed; HF_HOME can name a folder on another disk."
            )
        return WeightsUnavailableError(f"{file} can't be downloaded: {first_line(error)}.")


def named(hub_id: str, revision: str) -> str:
    return hub_id if revision == "main" else f"{hub_id} at {revision}"


def is_out_of_reach(offline: bool) -> bool:
    from huggingface_hub import constants

    return offline or constants.is_offline_mode() or patience.server(constants.ENDPOINT).is_down


def answer_in(error: BaseException | None) -> Any:
    """Return the hub's answer that an error, or its cause, is about; None if there was no answer."""
    while error is not None:
        response = getattr(error, "response", None)
        if response is not None:
            return response
        error = error.__cause__
    return None


def _counting(came: Came) -> Any:
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]  # exported, but lazily

    class Counting(tqdm):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **{**options, "disable": True})  # type: ignore[no-untyped-call]

        def update_transfer(self, count: int) -> None:  # bytes on the network; `update` is for those on the disk
            came(count)

        def set_transfer_postfix_str(self, *arguments: Any, **options: Any) -> None: ...

    return Counting


def refusal(response: Any, hub_id: str, what: str) -> str:
    """Return a sentence on why the hub refuses something of a repository; `what` names it.

    The hub answers 401 where a token is missing, wrong or expired, and 403 where it is right but doesn't suffice.
    """
    from huggingface_hub import constants
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # exported, but lazily

    page, code, status = f"{constants.ENDPOINT}/{hub_id}", response.headers.get("x-error-code"), response.status_code
    said = response.headers.get("x-error-message", "")
    has_token = "authorization" in build_hf_headers()
    token, log_in = "your token", "run `hf auth login`"
    if os.environ.get("HF_TOKEN") or os.environ.get("HUGGING_FACE_HUB_TOKEN"):  # it comes before a log-in
        token, log_in = "the token in HF_TOKEN", f"set HF_TOKEN anew, or unset it and {log_in}"
    if status == 401 and has_token:
        return (
            f"The hub doesn't accept {token}: it is wrong or has expired, so {page} can't be read. Make a new one "
            f"at {constants.ENDPOINT}/settings/tokens and {log_in}."
        )
    if code == "GatedRepo" and has_token:
        return (
            f"{page} is gated, and the account of {token} has no access to it. Ask for access on that page; to "
            f"use another account, {log_in}."
        )
    if code == "GatedRepo":
        return f"{page} is gated. Ask for access on that page, then log in: `hf auth login`."
    if code == "RepoNotFound" or status == 401:
        who = f"{token} can't see it. To use another account, {log_in}"
        return (
            f"There is no model at {page}, or {who if has_token else 'it is private: log in with `hf auth login`'}."
        )
    return f"{what} can't be read: the hub answers {status}{f' ({said[:SHOWN]})' if said else ''}."
