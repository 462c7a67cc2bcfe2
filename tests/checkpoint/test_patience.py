"""How long servers of the hub are waited for, and what is remembered of one that doesn't answer."""

import signal
import threading
import time

import httpx2
import pytest

from generators.base import notices
from generators.base.errors import WeightsUnavailableError
from generators.checkpoint.sources import Hub, patience
from tests.checkpoint.fake_hub import HubFault
from tests.checkpoint.test_hub import is_whole, opened, published

NO_ROUTE = pytest.mark.parametrize("kind", [httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError])
SEVERAL = ("owner/one", "owner/two", "owner/three")
LIMIT = {"RateLimit": '"resolvers";r=0;t=60'}


@pytest.fixture
def down(monkeypatch):
    """Return a function that has requests fail while `is_down` says so, and a list of those that did."""

    def have(error, is_down=lambda request: True):
        failed, real = [], httpx2.HTTPTransport.handle_request

        def handle(transport, request):
            if is_down(request):
                failed.append(request)
                raise error("no route", request=request)
            return real(transport, request)

        monkeypatch.setattr("httpx2.HTTPTransport.handle_request", handle)
        return failed

    return have


def refused(repo="owner/tiny", match="can't be reached", hub=None) -> None:
    with pytest.raises(WeightsUnavailableError, match=match):
        _ = opened(repo, hub=hub)["position_embedding"]


# Servers in trouble


@pytest.mark.parametrize(
    ("status", "where", "headers", "seconds"),
    [
        *(("503", where, {}, 0.01) for where in ("/api/", "config.json", "/cdn/")),
        *((status, "/cdn/", {}, 0.01) for status in ("408", "429", "500", "502", "504")),
        ("429", "/api/", {"RateLimit": '"api";r=0;t=299', "Retry-After": "5"}, 299),
        ("503", "/cdn/", {"Retry-After": "7"}, 7),
        ("429", "/cdn/", {"Retry-After": "3000"}, patience.WINDOW_S),
        ("503", "/cdn/", {"Retry-After": "soon"}, 0.01),
    ],
)
def test_what_may_pass_is_asked_again_after_its_wait(fake, tiny, waits, status, where, headers, seconds):
    fake.faults.append(HubFault(status, where, times=2, headers=headers))
    is_whole(opened())
    assert waits == [seconds, 2 * seconds if seconds < 1 else seconds]


def test_threads_that_wait_for_one_rate_limit_announce_it_once(fake, waits, lines):
    published(fake, shards=3)
    checkpoint = opened()
    fake.faults.append(HubFault("429", "/cdn/", times=3, headers=LIMIT))
    checkpoint.prefetch(list(checkpoint))
    assert waits == [60, 60, 60] and 1 <= len(set(lines)) == len(lines) <= 2  # the minute may change meanwhile


def test_trouble_that_does_not_pass_ends_and_is_one_model_s(fake, tiny, waits):
    published(fake, "owner/other")
    fake.faults.append(HubFault("503", "/cdn/owner/tiny", times=100))
    hub = Hub()
    refused(match=r"model\.safetensors of owner/tiny .*localhost:\d+ answers 503", hub=hub)
    assert len(waits) == patience.TRIES - 1
    is_whole(opened("owner/other", hub=hub))


def test_after_a_cut_reading_goes_on_where_it_was(fake, tiny, waits):
    checkpoint = opened()
    fake.faults.append(HubFault("cut", "/cdn/", times=3))
    is_whole(checkpoint)
    firsts = [int(a.span.removeprefix("bytes=").split("-")[0]) for a in fake.weights_asked()[-4:]]
    assert firsts == sorted(set(firsts))


# Servers that don't answer


@NO_ROUTE
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_server_that_cannot_be_reached_is_asked_once_for_all_models(fake, waits, down, kind, host):
    failed, hub = down(kind, lambda request: request.url.host == host), Hub()
    said = {"127.0.0.1": r"can't be reached \(no route\) and {} isn't in its local cache"}
    for repo in SEVERAL:
        published(fake, repo)
        refused(repo, said.get(host, r"{} .*localhost:\d+ can't be reached \(no route\)").format(repo), hub)
    assert len(failed) == 1 and failed[0].extensions["timeout"]["connect"] <= 5
    assert waits == []


def test_a_hub_that_was_reached_before_is_waited_for_and_asked_again_later(fake, tiny, waits, down, monkeypatch):
    monkeypatch.setattr(patience, "FIRST_WAIT_S", 1.0)
    hub, back_at = Hub(), [50.0]
    checkpoint = opened(hub=hub)
    failed = down(httpx2.ConnectError, lambda request: sum(waits) < back_at[0])
    is_whole(checkpoint)
    assert sum(waits) >= 50
    published(fake, "owner/other")
    back_at[0] = 1000.0
    refused("owner/other", r"can't be reached \(no route\)", hub)
    tries = len(failed)
    refused("owner/other", r"can't be reached \(no route\)", hub)
    assert len(failed) == tries
    waits.append(1000.0)
    is_whole(opened("owner/other", hub=hub))


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_threads_that_wait_or_read(fake, tiny):
    checkpoint = opened()
    fake.faults.append(HubFault("429", "/cdn/", times=99, headers=LIMIT))

    def pressed(sentence):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    began = time.monotonic()
    with notices.heard_by(pressed), pytest.raises(KeyboardInterrupt):
        checkpoint.prefetch(list(checkpoint))
    assert time.monotonic() - began < 10
    fake.faults.clear()
    is_whole(checkpoint)


def test_the_hub_s_client_writes_nothing_between_our_lines(fake, capfd, waits):
    published(fake, shards=2)
    fake.faults += [HubFault("503", "/cdn/", times=3), HubFault("503", "config.json", times=3)]
    checkpoint = opened()
    checkpoint.prefetch(list(checkpoint), whole=True)
    is_whole(checkpoint)
    assert capfd.readouterr() == ("", "")
