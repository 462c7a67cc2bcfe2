"""The HTTP client that all requests to the hub go through: it retries, and remembers servers that can't be reached.

huggingface_hub retries some requests and others (`HfApi`) not at all, can't be stopped while it waits, and tries a
server that is down anew for each model. So it gets a client of ours, which decides for all requests.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from threading import Event
from typing import Any

from generators.base import notices
from generators.base.errors import first_line

CONNECT_S = 5.0  # for each address of a server
TRIES = 8  # a minute, or longer where a server asks for that
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 15.0
WINDOW_S = 300.0  # of the rate limits of the hub; the longest wait
ASK_AGAIN_S = 60.0  # until a server that couldn't be reached is tried again
RETRIED = (408, 429, 500, 502, 503, 504)
clock = time.monotonic
_stopped = Event()


class NoAnswerError(Exception):
    """A server can't be reached or is in trouble; says which and why."""


def go_on(after: float = 0.0) -> None:
    """Wait for so many seconds. Raises NoAnswerError: `threads` are to end."""
    if _stopped.wait(after):
        raise NoAnswerError("reading was stopped")


@contextmanager
def threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """Yield threads that end soon, even those that wait for a server, once one fails or Ctrl-C is pressed."""
    try:
        with ThreadPoolExecutor(count) as pool:
            try:
                yield pool
            except BaseException:
                _stopped.set()
                raise
    finally:
        _stopped.clear()


@dataclass
class Server:
    name: str
    has_answered: bool = False
    down_until: float = float("-inf")
    cause: str = ""  # why it is down

    @property
    def is_down(self) -> bool:
        return clock() < self.down_until

    def admit(self) -> None:
        """Let a request pass. Raises NoAnswerError: the server is known to be down."""
        if self.is_down:
            raise NoAnswerError(f"{self.name} can't be reached ({self.cause})")

    def give_up(self, error: Exception) -> None:
        """Raises NoAnswerError: always, and for a while whatever is asked."""
        self.has_answered, self.cause, self.down_until = False, first_line(error), clock() + ASK_AGAIN_S
        self.admit()


_servers: dict[str, Server] = {}


def server(url: Any) -> Server:
    import httpx2

    name = httpx2.URL(url).netloc.decode()
    return _servers.setdefault(name, Server(name))


@cache
def install() -> None:
    """Make huggingface_hub use our client, and keep its bars and log lines off the terminal."""
    import warnings

    from huggingface_hub import set_client_factory
    from huggingface_hub.utils import disable_progress_bars, logging  # type: ignore[attr-defined]  # but lazily

    with warnings.catch_warnings(action="ignore"):  # a variable of the environment may ask for bars
        disable_progress_bars()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    warnings.filterwarnings("ignore", message="Not enough free disk space")  # we say so where the disk is full
    set_client_factory(_client)


def _client() -> Any:
    import httpx2
    from huggingface_hub.utils._http import hf_request_event_hook

    class PatientClient(httpx2.Client):
        def send(self, request: Any, **options: Any) -> Any:
            return patiently(lambda: super(PatientClient, self).send(request, **options), request)

    hooks = [hf_request_event_hook, lambda request: server(request.url).admit()]  # they run for redirects, too
    return PatientClient(event_hooks={"request": hooks}, follow_redirects=True, timeout=None)


def patiently(send: Callable[[], Any], request: Any) -> Any:
    """Return the answer to a request, sent again while that may help. Raises NoAnswerError: there is none."""
    import httpx2

    request.extensions["timeout"]["connect"] = CONNECT_S  # the hub's client has one limit for connecting and answers
    for tries in range(1, TRIES + 1):
        try:
            response = send()
        except httpx2.TransportError as error:
            failing = server((getattr(error, "_request", None) or request).url)  # a redirect may have led elsewhere
            no_route = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError)
            if tries == TRIES or (no_route and not failing.has_answered):
                failing.give_up(error)
            go_on(waiting(tries))
            continue
        asked = server(response.request.url)
        asked.has_answered = True
        if response.status_code not in RETRIED:
            return response
        response.close()
        if tries < TRIES:
            go_on(asked_wait(response) or waiting(tries))
    raise NoAnswerError(f"{asked.name} answers {response.status_code}")


def waiting(failures: int) -> float:
    return min(FIRST_WAIT_S * 2 ** (failures - 1), LONGEST_WAIT_S)


def asked_wait(response: Any) -> float | None:
    """Return how many seconds a server asks to wait, None if it doesn't say. A long wait is announced.

    The hub sends `RateLimit: "resolvers";r=0;t=60`: no request is left for 60 s. Others send `Retry-After`.
    """
    from huggingface_hub.utils._http import _parse_retry_after, parse_ratelimit_headers

    limit = parse_ratelimit_headers(response.headers)
    asked = limit.reset_in_seconds if limit and limit.remaining == 0 else _parse_retry_after(response.headers)
    wait = None if asked is None else min(asked, WINDOW_S)
    if wait is not None and wait > LONGEST_WAIT_S:
        until = datetime.now() + timedelta(seconds=wait)
        notices.say_once(f"The hub asks to wait until {until:%H:%M} (rate limit).")  # all threads hear of it
    return wait
