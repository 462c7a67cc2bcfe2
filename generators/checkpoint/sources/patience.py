"""The HTTP client that all requests to the hub go through: how long it waits, and which servers it knows to be down.

huggingface_hub retries some requests and others (`HfApi`) not at all, waits as long as a server asks, and tries a
server that is down anew for each model. So it gets a client of ours, which decides for all requests.
"""

import contextvars
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from threading import Event, Thread
from typing import Any

from generators.base import notices
from generators.base.errors import first_line

CONNECT_S = 5.0  # for each address of a server
FIRST_ANSWER_S = 8.0
FEW_TRIES = 2  # of a server that hasn't answered yet, or was given up last
TRIES = 8  # of any other: a minute, or longer where it asks for that
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 15.0
LONGEST_ASKED_S, WINDOW_S = 60.0, 300.0  # longest wait that a server can ask for; in a rate limit of the hub
ASK_AGAIN_S = 60.0  # until a server that was reached before, and then wasn't, is tried again
SILENT_S = 3.0  # longer waits are announced
TOO_MANY = 429
RETRIED = (408, TOO_MANY, 500, 502, 503, 504)
clock = time.monotonic
_stopped = Event()


class NoAnswerError(Exception):
    """A server can't be reached or is in trouble; says which and why."""


def go_on(after: float = 0.0) -> None:
    """Wait for so many seconds. Raises NoAnswerError: `threads` are to end."""
    if _stopped.wait(after):
        raise NoAnswerError("reading was stopped")


sleep = go_on


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
    tries: int = FEW_TRIES
    down_until: float = float("-inf")
    cause: str = ""  # why it is down

    @property
    def is_down(self) -> bool:
        return clock() < self.down_until

    def admit(self) -> None:
        """Let a request pass. Raises NoAnswerError: the server is known to be down."""
        if self.is_down:
            raise NoAnswerError(f"{self.name} can't be reached ({self.cause})")

    def answered(self, *, well: bool) -> None:
        if well or not self.has_answered:
            self.tries = TRIES
        self.has_answered, self.down_until = True, float("-inf")

    def give_up(self, why: str, down: str | None = None) -> NoAnswerError:
        """Return the error that ends a request. `down` says why it isn't worth asking for a while."""
        self.tries = FEW_TRIES
        if down is not None:
            self.cause, self.down_until = down, clock() + ASK_AGAIN_S if self.has_answered else float("inf")
        return NoAnswerError(f"{self.name} {why}")


_servers: dict[str, Server] = {}
_run = ""


def begin(run: str) -> None:
    """Forget what servers did in another run of the command."""
    global _run
    if run != _run:
        _run = run
        _servers.clear()
        notices.forget()


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
    failures = 0
    while True:
        failures += 1
        try:
            response = _sent(send, request)
        except httpx2.TransportError as error:
            wait = _wait_after(error, request, failures)
        else:
            asked = server(response.request.url)
            asked.answered(well=response.status_code not in RETRIED)
            if response.status_code not in RETRIED:
                return response
            response.close()
            if failures >= asked.tries:
                raise asked.give_up(f"answers {response.status_code}")
            wait = asked_wait(response) or waiting(failures)
        sleep(wait)


def _wait_after(error: Any, request: Any, failures: int) -> float:
    """Return how long to wait after a request failed. Raises NoAnswerError: waiting won't help."""
    import httpx2

    failing = server((getattr(error, "_request", None) or request).url)  # a redirect may have led elsewhere
    no_route = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError)
    if failures >= failing.tries or (no_route and not failing.has_answered):
        what, why = "can't be reached" if no_route else "gives no answer", first_line(error)
        raise failing.give_up(f"{what} ({why})", why) from error
    wait = waiting(failures)
    if wait > SILENT_S:
        notices.say_once(f"{failing.name} doesn't answer; it is tried again for a minute or two.")
    return wait


def _sent(send: Callable[[], Any], request: Any) -> Any:
    """Send a request, in a thread of its own if the server never answered.

    Looking up a name, or trying address after address behind a firewall, can take minutes, and no timeout of the
    network library covers that.
    """
    import httpx2

    asked = server(request.url)
    if asked.has_answered or asked.is_down:
        return send()
    done: Future[Any] = Future()

    def work() -> None:
        try:
            done.set_result(send())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=contextvars.copy_context().run, args=(work,), daemon=True).start()
    try:
        return done.result(FIRST_ANSWER_S)
    except TimeoutError:
        raise httpx2.ConnectTimeout(f"no answer within {FIRST_ANSWER_S:.0f} s", request=request) from None


def waiting(failures: int) -> float:
    return min(FIRST_WAIT_S * 2 ** (failures - 1), LONGEST_WAIT_S)


def asked_wait(response: Any) -> float | None:
    """Return how many seconds a server asks to wait, None if it doesn't say.

    The hub sends `RateLimit: "resolvers";r=0;t=60`: no request is left for 60 s. Others send `Retry-After`.
    """
    from huggingface_hub.utils._http import _parse_retry_after, parse_ratelimit_headers

    limit = parse_ratelimit_headers(response.headers)
    asked = limit.reset_in_seconds if limit and limit.remaining == 0 else _parse_retry_after(response.headers)
    if asked is None or response.status_code != TOO_MANY:
        return None if asked is None else min(asked, LONGEST_ASKED_S)
    wait = min(max(asked, 1), WINDOW_S)
    until = datetime.now() + timedelta(seconds=wait)
    notices.say_once(f"The hub asks to wait until {until:%H:%M} (rate limit).")  # all threads hear of it
    return wait
