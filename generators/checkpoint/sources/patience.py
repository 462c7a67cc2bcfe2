"""How long to wait for a server of the hub: the HTTP client that all requests go through, the hub client's own too.

By itself the hub's client retries every request: without a word, as long as a server asks, and anew for each model
where a server is down. Here one place decides for all requests, and remembers for the whole run what each server did.
"""

import contextvars
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Event, Lock, Thread
from typing import Any, TypeVar

from generators.base import notices

T = TypeVar("T")
CONNECT_S = 5.0  # for each address that a server has
START_S = 8.0  # how long a server is tried that hasn't answered yet
OUTAGE_S = 100.0  # and one that has
SILENT_S = 3.0  # longer waits in an outage are said
ASK_AGAIN_S = 60.0  # until a server is tried again that went down
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 15.0
LONGEST_ASKED_S = 60.0  # where a server that is in trouble says how long to wait
WINDOW_S = 300.0  # of the hub's rate limits
MOST_WINDOWS = 5
TOO_MANY = 429
RETRIED = (408, TOO_MANY, 500, 502, 503, 504)  # HTTP statuses that may pass
clock = time.monotonic
_stopped = Event()


class NoAnswerError(Exception):
    """A server can't be reached, or gives no answer that can be used; says which and why."""


def go_on(after: float = 0.0) -> None:
    """Wait for so many seconds. Raises NoAnswerError: `threads` are to end."""
    if _stopped.wait(after):
        raise NoAnswerError("reading was stopped")


sleep = go_on


@contextmanager
def threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """Yield threads that end soon, and don't wait for a server to the end, once one fails or Ctrl-C is pressed."""
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
    """What one server did in this run of the command.

    `is_trusted` says that it never ended the patience since it answered last.
    """

    name: str
    has_answered: bool = False
    is_trusted: bool = True
    answered_at: float = float("-inf")
    down_until: float = float("-inf")
    paused_until: float = float("-inf")
    cause: str = ""  # why it is down

    @property
    def is_down(self) -> bool:
        """Return whether it isn't worth asking now."""
        return clock() < self.down_until

    def admit(self) -> None:
        """Wait for the end of a rate limit before a request. Raises NoAnswerError: the server is known to be down."""
        if self.is_down:
            raise NoAnswerError(f"{self.name} can't be reached ({self.cause})")
        if (rest := self.paused_until - clock()) > 0:
            sleep(rest)

    def answered(self) -> None:
        """Remember a good answer."""
        self.has_answered = self.is_trusted = True
        self.answered_at, self.down_until = clock(), float("-inf")

    def pause(self, seconds: float) -> None:
        """Ask nothing for so long, as the server wants it; that is said once, however many threads are told."""
        with _lock:
            is_new = clock() + seconds > self.paused_until + 1
            self.paused_until = max(self.paused_until, clock() + seconds)
        if is_new:
            notices.say(f"The hub asks to wait {seconds:.0f} s (rate limit).")

    def give_up(self, why: str, began: float, cause: str | None = None) -> NoAnswerError:
        """Return the error that ends a request which began then, and don't wait for this server as long again.

        With a `cause` why it is down, it isn't asked for a while, or in this run at all if it never answered.
        """
        if cause is not None and self.answered_at <= began:
            self.cause = cause
            self.down_until = clock() + ASK_AGAIN_S if self.has_answered else float("inf")
        self.is_trusted = False
        return NoAnswerError(f"{self.name} {why}")


_servers: dict[str, Server] = {}
_run = ""
_lock = Lock()


def begin(run: str) -> None:
    """Forget what servers did in another run of the command."""
    global _run
    if run != _run:
        _run = run
        _servers.clear()
        notices.forget()


def server(url: Any) -> Server:
    """Return the server of an address (httpx2's URL, or a text)."""
    import httpx2

    name = httpx2.URL(url).netloc.decode()
    with _lock:
        return _servers.setdefault(name, Server(name))


@cache
def install() -> None:
    """Have the hub's client send everything through ours, and draw no bars and log no retries between our lines."""
    import warnings

    from huggingface_hub import set_client_factory
    from huggingface_hub.utils import disable_progress_bars, logging  # type: ignore[attr-defined]  # but lazily

    with warnings.catch_warnings(action="ignore"):  # a variable of the environment may ask for bars
        disable_progress_bars()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    warnings.filterwarnings("ignore", message="Not enough free disk space")  # where the disk is full, we say so
    set_client_factory(_made)


def _made() -> Any:
    """Return the client: httpx2's, with a `send` that waits."""
    import httpx2
    from huggingface_hub.utils._http import hf_request_event_hook

    class PatientClient(httpx2.Client):
        def send(self, request: Any, **options: Any) -> Any:
            return patiently(lambda: super(PatientClient, self).send(request, **options), request)

    hooks = [hf_request_event_hook, lambda request: server(request.url).admit()]  # for each redirect, too
    return PatientClient(event_hooks={"request": hooks}, follow_redirects=True, timeout=None)


def patiently(send: Callable[[], Any], request: Any) -> Any:
    """Return the answer to a request that is sent by `send`, again and again while that may help.

    Raises NoAnswerError: there is no answer, or none but that the server is in trouble.
    """
    import httpx2

    _limit_connecting(request)
    began, failures, windows = clock(), 0, 0
    while True:
        failures += 1
        try:
            asked = server(request.url)
            response = send() if asked.has_answered or asked.is_down else _within(START_S, send, request)
        except httpx2.TransportError as error:
            wait = _wait_after(error, request, failures, began)
        else:
            answering = server(response.request.url)
            answering.has_answered = True
            if response.status_code not in RETRIED:
                answering.answered()
                return response
            response.close()
            told = asked_wait(response)
            if response.status_code == TOO_MANY and told is not None:
                windows += 1
                if windows > MOST_WINDOWS:
                    raise answering.give_up("answers again and again that its rate limit is reached", began)
                answering.pause(min(told, WINDOW_S))
                began, failures = answering.paused_until, 0
                continue
            wait = waiting(failures, told)
            if clock() + wait - began > (OUTAGE_S if answering.is_trusted else START_S):
                raise answering.give_up(f"answers {response.status_code}", began)
        sleep(wait)


def _wait_after(error: Any, request: Any, failures: int, began: float) -> float:
    """Return how long to wait after a request failed. Raises NoAnswerError: waiting won't help."""
    import httpx2

    failing = server((getattr(error, "_request", None) or request).url)
    no_route = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError)
    may_pass = isinstance(error, httpx2.TimeoutException | httpx2.NetworkError | httpx2.RemoteProtocolError)
    patience = 0.0 if no_route or not may_pass else START_S
    if failing.has_answered and failing.is_trusted and (may_pass or no_route):
        patience = OUTAGE_S
    wait = waiting(failures)
    if clock() + wait - began > patience:
        what, cause = "can't be reached" if no_route else "gives no answer", first_line(error)
        raise failing.give_up(f"{what} ({cause})", began, cause) from error
    if wait > SILENT_S:
        notices.say_once(f"{failing.name} doesn't answer; it is waited for {patience:.0f} s at most.")
    return wait


def _within(seconds: float, send: Callable[[], T], request: Any) -> T:
    """Return what `send` returns, but give it up after some time: to look up a name, or to try address after address
    of a server behind a firewall, can take minutes, and no timeout of the network library covers that.
    """
    import httpx2

    done: Future[T] = Future()

    def work() -> None:
        try:
            done.set_result(send())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=contextvars.copy_context().run, args=(work,), daemon=True).start()
    try:
        return done.result(seconds)
    except TimeoutError:
        if done.done():
            raise
        raise httpx2.ConnectTimeout(f"no answer within {seconds:.0f} s", request=request) from None


def _limit_connecting(request: Any) -> None:
    """Make connecting time out sooner than answers; the hub's client has one limit for both."""
    limits = request.extensions.get("timeout")
    if limits:
        limits["connect"] = min(limits.get("connect") or CONNECT_S, CONNECT_S)


def waiting(failures: int, asked: float | None = None) -> float:
    """Return how many seconds to wait after that many failures: as asked, otherwise twice as long each time."""
    if asked is not None:
        return min(asked, LONGEST_ASKED_S)
    return min(FIRST_WAIT_S * 2 ** (failures - 1), LONGEST_WAIT_S)


def asked_wait(response: Any) -> float | None:
    """Return how many seconds a server asks to wait: until its rate limit allows requests again, or as it says else.

    The hub sends `RateLimit: "resolvers";r=0;t=60`: no request is left for 60 s. Others send `Retry-After`.
    """
    from email.utils import parsedate_to_datetime

    from huggingface_hub.utils._http import parse_ratelimit_headers

    limit = parse_ratelimit_headers(response.headers) if response.status_code == TOO_MANY else None
    if limit is not None and limit.remaining == 0:
        return max(1.0, float(limit.reset_in_seconds))
    asked = response.headers.get("Retry-After", "").strip()
    if asked.isdigit():
        return float(asked)
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message without its full stop, or its kind."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
