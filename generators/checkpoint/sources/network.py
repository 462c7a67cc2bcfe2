"""A file on the hub, read by byte ranges through the hub client's own session: resumed, retried, never mixed up.

The client's own readers don't fit here. `HfFileSystem` takes a whole file for the range that it asked for, doesn't
notice a replaced file, waits as long as a server demands, and counts nothing; `parse_safetensors_file_metadata` reads
100 kB of every file and never retries.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from generators.base.errors import WeightsUnavailableError
from generators.checkpoint.sources import patience
from generators.checkpoint.sources.patience import NoAnswerError, first_line
from generators.checkpoint.sources.refusals import refusal

TIMEOUT_S = 30.0
MOST_FAILURES = 5  # in a row, without one more byte
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


class _CutError(Exception):
    """An answer ended too soon; the rest may come if it is asked for."""


@dataclass
class RemoteFile:
    """A file of a repository at a commit.

    Args:
        hub_id: its repository.
        named: how to call it in sentences.
        traffic: where bytes are counted.
    """

    url: str
    hub_id: str
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
                    raise _CutError("the answer was empty")
            except _CutError as error:
                failures = 1 if len(got) > before else failures + 1
                if failures > MOST_FAILURES:
                    raise WeightsUnavailableError(f"{self.named} can't be downloaded: {error}.") from error
                patience.sleep(patience.waiting(failures))
        return got if len(got) == end - start else got[: end - start]

    def _chunks(self, start: int, end: int) -> Iterator[bytes]:
        import httpx2
        from huggingface_hub.utils import get_session  # type: ignore[attr-defined]  # exported, but lazily

        asked = {**self.headers, "Range": f"bytes={start}-{end - 1}", "Accept-Encoding": "identity"}
        if self._etag is not None:
            asked["If-Range"] = self._etag
        try:
            with get_session().stream("GET", self.url, headers=asked, timeout=TIMEOUT_S) as response:
                self._check(response, start)
                for chunk in response.iter_raw():
                    self.traffic.came(len(chunk))
                    patience.go_on()
                    yield chunk
        except NoAnswerError as error:
            raise WeightsUnavailableError(f"{self.named} can't be downloaded: {error}.") from error
        except ConnectionError:  # offline mode
            raise WeightsUnavailableError(f"{self.named} isn't cached here, and the hub may not be asked.") from None
        except httpx2.TransportError as error:  # sending was patient: it is the answer that was cut
            raise _CutError(first_line(error)) from error
        except httpx2.HTTPError as error:
            raise WeightsUnavailableError(f"{self.named} can't be downloaded: {first_line(error)}.") from error

    def _check(self, response: Any, start: int) -> None:
        """Refuse answers that are no part of this file, and notice when it isn't the same file any more."""
        if response.status_code not in (PARTIAL, WHOLE):
            raise WeightsUnavailableError(refusal(response, self.hub_id, self.named))
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


def answer_in(error: BaseException | None) -> Any:
    """Return the hub's answer that an error, or what it was caused by, is about; None if there was no answer."""
    while error is not None:
        response = getattr(error, "response", None)
        if response is not None:
            return response
        error = error.__cause__
    return None


def plain_etag(etag: str | None) -> str | None:
    """Return what an ETag says of content, without its quotes."""
    return etag.removeprefix("W/").strip('"') if etag else None


def _content_range(header: str) -> tuple[int | None, int | None]:
    """Return the first byte and the whole size that `bytes 0-99/200` names."""
    unit, _, rest = header.partition(" ")
    span, _, size = rest.partition("/")
    first = span.partition("-")[0]
    if unit != "bytes" or not first.isdigit() or not size.isdigit():
        return None, None
    return int(first), int(size)
