"""How long servers of the hub are waited for, and what is remembered of one that doesn't answer."""

import pickle
import signal
import threading
import time

import httpx2
import pytest

from generators.base import notices
from generators.base.errors import WeightsUnavailableError
from generators.checkpoint.sources import Hub, patience, repository
from tests.checkpoint.fake_hub import HubFault
from tests.checkpoint.test_hub import is_whole, opened, published

PLACES = pytest.mark.parametrize("where", ["/api/", "config.json", "/cdn/"])
NO_ROUTE = pytest.mark.parametrize("kind", [httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError])
SEVERAL = ("owner/one", "owner/two", "owner/three")
LIMIT = '"resolvers";r=0;t=60'


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


@PLACES
@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        *((status, {"times": 2}, 0.01) for status in ("408", "429", "500", "502", "503", "504")),
        ("429", {"rate_limit": LIMIT}, 60),
        ("429", {"rate_limit": '"api";r=0;t=299', "retry_after": "5"}, 299),
        ("429", {"retry_after": "120"}, 120),
        ("429", {"retry_after": "3000"}, patience.WINDOW_S),
        ("503", {"retry_after": "7"}, 7),
        ("503", {"retry_after": "100000"}, patience.LONGEST_ASKED_S),
        ("503", {"retry_after": "soon"}, 0.01),
    ],
)
def test_what_may_pass_is_asked_again_after_its_wait(fake, tiny, waits, where, status, headers, seconds):
    fake.faults.append(HubFault(status, where, **headers))
    is_whole(opened())
    assert waits == [seconds, 2 * seconds][: headers.get("times", 1)]


def test_threads_that_wait_for_one_rate_limit_announce_it_once(fake, waits, lines):
    published(fake, shards=3)
    checkpoint = opened()
    fake.faults.append(HubFault("429", "/cdn/", times=3, rate_limit=LIMIT))
    checkpoint.prefetch(list(checkpoint))
    assert waits == [60, 60, 60] and 1 <= len(set(lines)) == len(lines) <= 2  # the minute may change meanwhile


@pytest.mark.parametrize("fault", [{"kind": "503"}, {"kind": "429", "rate_limit": LIMIT}])
def test_trouble_that_does_not_pass_ends_and_is_one_model_s(fake, tiny, waits, fault):
    published(fake, "owner/other")
    fake.faults.append(HubFault(where="/cdn/owner/tiny", times=100, **fault))
    hub = Hub()
    refused(match=rf"model\.safetensors of owner/tiny .*localhost:\d+ answers {fault['kind']}", hub=hub)
    first = len(waits)
    assert first == patience.TRIES - 1
    refused(match="answers", hub=hub)
    assert len(waits) - first == patience.FEW_TRIES - 1
    is_whole(opened("owner/other", hub=hub))


def test_after_a_cut_reading_goes_on_where_it_was(fake, tiny, waits):
    checkpoint = opened()
    fake.faults.append(HubFault("cut", "/cdn/", times=3))
    is_whole(checkpoint)
    firsts = [int(a.span.removeprefix("bytes=").split("-")[0]) for a in fake.weights_asked()[-4:]]
    assert firsts == sorted(set(firsts))
    assert fake.sent == checkpoint.traffic.fetched


def test_a_server_that_stalls_is_asked_again(fake, monkeypatch):
    monkeypatch.setattr(repository, "TIMEOUT_S", 1.0)
    published(fake)
    fake.faults.append(HubFault("stall", "/cdn/"))
    is_whole(opened())


# Servers that don't answer


@NO_ROUTE
def test_a_hub_that_cannot_be_reached_is_asked_once_in_a_run_in_each_process(fake, waits, down, kind):
    failed, hub = down(kind), Hub()
    for repo in SEVERAL:
        refused(repo, rf"can't be reached \(no route\) and {repo} isn't in its local cache", hub)
    refused("owner/one", hub=pickle.loads(pickle.dumps(hub)))  # a hub travels with each job
    assert len(failed) == 1 and failed[0].extensions["timeout"]["connect"] <= 5
    assert waits == []


def test_a_silent_hub_costs_little_and_once(fake, monkeypatch):
    monkeypatch.setattr(patience, "FIRST_ANSWER_S", 0.2)
    asked = []
    monkeypatch.setattr("httpx2.HTTPTransport.handle_request", lambda *_: (asked.append(1), time.sleep(3)))
    hub, began = Hub(), time.monotonic()
    for repo in SEVERAL:
        refused(repo, r"can't be reached \(no answer within", hub)
    assert asked == [1] and time.monotonic() - began < 2


@NO_ROUTE
def test_a_server_of_bytes_that_cannot_be_reached_costs_its_time_once(fake, waits, down, kind):
    failed, hub = down(kind, lambda request: request.url.host == "localhost"), Hub()
    for repo in SEVERAL:
        published(fake, repo)
        refused(repo, rf"{repo} .*localhost:\d+ can't be reached \(no route\)", hub)
    assert len(failed) == 1 and waits == []


def test_a_hub_that_was_reached_before_is_waited_for(fake, monkeypatch, waits, lines, down):
    monkeypatch.setattr(patience, "FIRST_WAIT_S", 1.0)
    published(fake)
    checkpoint = opened()
    down(httpx2.ConnectError, lambda request: sum(waits) < 50)
    is_whole(checkpoint)
    assert sum(waits) >= 50 and len(lines) == 1


def test_a_hub_that_went_down_is_asked_again_later(tiny, waits, down):
    hub, failing = Hub(), [True]
    checkpoint = opened(hub=hub)
    failed = down(httpx2.ReadError, lambda request: failing[0])
    with pytest.raises(WeightsUnavailableError, match="gives no answer"):
        checkpoint.prefetch(["position_embedding"])
    assert len(failed) == patience.TRIES
    failing[0] = False
    refused(hub=hub)
    waits.append(patience.ASK_AGAIN_S)
    is_whole(opened(hub=hub))


def test_ctrl_c_ends_threads_that_wait_or_read(fake, tiny):
    checkpoint = opened()
    fake.faults.append(HubFault("429", "/cdn/", times=99, rate_limit=LIMIT))

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
