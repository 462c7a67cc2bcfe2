"""A file on the hub, read by byte ranges through the hub client's own session: resumed, retried, never mixed up.

The client's own readers don't fit here. `HfFileSystem` takes a whole file for the range that it asked for, doesn't
notice a replaced file, waits as long as a server demands, and counts nothing; `parse_safetensors_file_metadata` reads
100 kB of every file and never retries.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

from generators.base.errors import WeightsUnavailableError

T = TypeVar("T")
TIMEOUT_S = 30.0
CONNECT_S = 5.0  # for each address that a server has
MOST_FAILURES = 5  # in a row, without one more byte
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
RETRIED = (408, 429, 500, 502, 503, 504)  # HTTP statuses that may pass
PARTIAL, WHOLE = 206, 200


@dataclass
class Traffic:
    """Bytes of weights that came over the network, headers of files included; several threads may count."""

    fetched: int = 0
    _needed: dict[str, int] = field(default_factory=dict, repr=False)
    _watch: Callable[[int], None] | None = field(default=None, repr=False, compare=False)
    _counting: Lock = field(default_factory=Lock, repr=False, compare=False)

    @property
    def needed(self) -> int:
        """Return the bytes of all tensors that were asked for, each once, wherever they came from."""
        return sum(self._needed.values())

    def came(self, count: int) -> None:
        """Count bytes that came."""
        with self._counting:
            self.fetched += count
            if self._watch is not None:
                self._watch(count)

    def was_needed(self, tensor: str, count: int) -> None:
        """Count a tensor of so many bytes that was asked for."""
        with self._counting:
            self._needed[tensor] = count

    @contextmanager
    def watched(self, watch: Callable[[int], None]) -> Iterator[None]:
        """Call `watch` with the size of each piece that arrives meanwhile."""
        self._watch = watch
        try:
            yield
        finally:
            self._watch = None


class NoRangesError(Exception):
    """The server answers with whole files only."""


class _TryAgainError(Exception):
    """What went wrong may go right a little later."""

    def __init__(self, why: str, wait: float | None = None) -> None:
        super().__init__(why)
        self.wait = wait


@dataclass
class RemoteFile:
    """A file of a repository at a commit.

    Args:
        named: how to call it in sentences.
        traffic: where bytes are counted.
    """

    url: str
    named: str
    traffic: Traffic
    headers: dict[str, str] = field(default_factory=dict)
    size: int | None = field(default=None, init=False)
    digest: str | None = field(default=None, init=False)  # of its content, as the hub's first answer names it
    _etag: str | None = field(default=None, init=False)  # of the server that holds the bytes

    def read(self, start: int, end: int) -> bytearray:
        """Return the bytes from `start` up to `end`, resuming after a cut.

        Raises:
            WeightsUnavailableError: they can't be read now; says why.
            NoRangesError: the server has only whole files.
        """
        got = bytearray()
        failures = 0
        while len(got) < end - start:
            before = len(got)
            try:
                for chunk in self._chunks(start + before, end):
                    got += chunk
                if len(got) == before:
                    raise _TryAgainError("the answer was empty")
            except _TryAgainError as error:
                failures = 1 if len(got) > before else failures + 1
                if failures > MOST_FAILURES:
                    raise WeightsUnavailableError(f"{self.named} can't be downloaded: {error}.") from error
                time.sleep(waiting(failures, error.wait))
        return got if len(got) == end - start else got[: end - start]

    def _chunks(self, start: int, end: int) -> Iterator[bytes]:
        import httpx2
        from huggingface_hub.utils import get_session  # type: ignore[attr-defined]  # exported, but lazily

        asked = {**self.headers, "Range": f"bytes={start}-{end - 1}", "Accept-Encoding": "identity"}
        if self._etag is not None:
            asked["If-Range"] = self._etag
        try:
            with get_session().stream("GET", self.url, headers=asked, timeout=timeout(TIMEOUT_S)) as response:
                self._check(response, start)
                for chunk in response.iter_raw():
                    self.traffic.came(len(chunk))
                    yield chunk
        except ConnectionError:  # offline mode
            raise WeightsUnavailableError(f"{self.named} isn't cached here, and the hub may not be asked.") from None
        except httpx2.HTTPError as error:
            if is_passing(error):
                raise _TryAgainError(first_line(error)) from error
            why = f"its server can't be reached ({first_line(error)})" if is_no_route(error) else first_line(error)
            raise WeightsUnavailableError(f"{self.named} can't be downloaded: {why}.") from error

    def _check(self, response: Any, start: int) -> None:
        """Refuse answers that are no part of this file, and notice when it isn't the same file any more."""
        if response.status_code in RETRIED:
            raise _TryAgainError(f"the hub answers {response.status_code}", retry_after(response))
        if response.status_code not in (PARTIAL, WHOLE):
            raise WeightsUnavailableError(f"{self.named} can't be downloaded: {refusal(response)}")
        self._check_same(response)
        if "text/html" in response.headers.get("content-type", ""):
            raise WeightsUnavailableError(f"{self.named} can't be downloaded: the answer is a web page, not a file.")
        if response.status_code == WHOLE:
            raise NoRangesError
        first, size = _content_range(response.headers.get("content-range", ""))
        if first != start or (self.size is not None and size != self.size):
            raise WeightsUnavailableError(f"{self.named} can't be downloaded: the answer is another part of it.")
        self.size = size

    def _check_same(self, response: Any) -> None:
        answers = [*response.history, response]
        linked = next((a.headers["x-linked-etag"] for a in answers if "x-linked-etag" in a.headers), None)
        etag = response.headers.get("etag")
        digest = plain_etag(linked or etag)
        if self.digest is not None and digest is not None and digest != self.digest:
            raise WeightsUnavailableError(f"{self.named} changed while it was read; nothing of it is used.")
        if self._etag is not None and etag is not None and etag != self._etag:
            raise WeightsUnavailableError(f"{self.named} changed while it was read; nothing of it is used.")
        self.digest = self.digest or digest
        self._etag = self._etag or (etag if etag and not etag.startswith("W/") else None)


def timeout(seconds: float) -> Any:
    """Return how long to wait for an answer; where no connection can be made, that is known sooner."""
    import httpx2

    return httpx2.Timeout(seconds, connect=min(seconds, CONNECT_S))


def patiently(ask: Callable[[], T]) -> T:
    """Return the result of a call to the hub's client; a failure that may pass is retried."""
    for failures in range(1, MOST_FAILURES + 1):
        try:
            return ask()
        except Exception as error:
            response = answer_in(error)
            passes = response.status_code in RETRIED if response is not None else is_passing(error)
            if not passes or failures == MOST_FAILURES:
                raise
            time.sleep(waiting(failures, retry_after(response)))
    raise AssertionError("the last failure is raised")


def answer_in(error: BaseException | None) -> Any:
    """Return the hub's answer that an error, or what it was caused by, is about; None if there was no answer."""
    while error is not None:
        response = getattr(error, "response", None)
        if response is not None:
            return response
        error = error.__cause__
    return None


def is_passing(error: Exception) -> bool:
    """Return whether a failure of the network may pass: a timeout, a cut, a broken answer; not a missing route."""
    import httpx2

    passing = (httpx2.TimeoutException, httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError, TimeoutError)
    return isinstance(error, passing) and not is_no_route(error)


def is_no_route(error: Exception) -> bool:
    """Return whether no connection could be made at all; to wait for one again would only take as long again."""
    import httpx2

    return isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | ConnectionError)


def waiting(failures: int, asked: float | None = None) -> float:
    """Return how many seconds to wait after that many failures: as asked, otherwise twice as long each time."""
    return min(asked if asked is not None else FIRST_WAIT_S * 2 ** (failures - 1), LONGEST_WAIT_S)


def retry_after(response: Any) -> float | None:
    """Return how long the hub asks to wait, in seconds."""
    asked = None if response is None else response.headers.get("Retry-After")
    return float(asked) if asked is not None and asked.isdigit() else None


def refusal(response: Any) -> str:
    """Return why the hub refuses, as half a sentence that says what to do."""
    code, status = response.headers.get("x-error-code", ""), response.status_code
    if code == "GatedRepo":
        return "its owner grants access: ask for it on the model's page, then set a token in HF_TOKEN."
    if code == "RepoNotFound" or status == 401:
        return "there is no such repository, or it is private and needs a token in HF_TOKEN."
    return {"EntryNotFound": "there is no such file.", "RevisionNotFound": "there is no such revision."}.get(
        code, f"the hub answers {status}."
    )


def plain_etag(etag: str | None) -> str | None:
    """Return what an ETag says of content, without its quotes."""
    return etag.removeprefix("W/").strip('"') if etag else None


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its kind."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _content_range(header: str) -> tuple[int | None, int | None]:
    """Return the first byte and the whole size that `bytes 0-99/200` names."""
    unit, _, rest = header.partition(" ")
    span, _, size = rest.partition("/")
    first = span.partition("-")[0]
    if unit != "bytes" or not first.isdigit() or not size.isdigit():
        return None, None
    return int(first), int(size)
