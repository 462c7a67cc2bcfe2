"""How long servers of the hub are waited for, and what is remembered of one that doesn't answer."""

import signal
import threading
import time

import httpx2
import numpy as np
import pytest

from generators.base import notices
from generators.base.errors import WeightsUnavailableError
from generators.checkpoint.sources import Hub, patience
from tests.checkpoint.fake_hub import HubFault
from tests.checkpoint.test_hub import opened, published
from tests.checkpoints import tensors_of


def is_whole(checkpoint) -> None:
    np.testing.assert_array_equal(checkpoint["position_embedding"], tensors_of("gpt2")["wpe.weight"])


def without(monkeypatch, down) -> None:
    """Have `down` raise what goes wrong, or return, before each request to a server."""
    real = httpx2.HTTPTransport.handle_request

    def handle(transport, request):
        down(request)
        return real(transport, request)

    monkeypatch.setattr("httpx2.HTTPTransport.handle_request", handle)


# Rate limits


@pytest.mark.parametrize("where", ["/api/", "config.json", "/cdn/"])
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"rate_limit": '"resolvers";r=0;t=60'}, 60),
        ({"rate_limit": '"api";r=0;t=299', "retry_after": "5"}, 299),
        ({"retry_after": "120"}, 120),
        ({"retry_after": "3000"}, patience.WINDOW_S),
    ],
)
def test_the_hub_is_given_the_time_it_asks_for(fake, waits, lines, where, headers, seconds):
    published(fake)
    fake.faults.append(HubFault("429", where, **headers))
    is_whole(opened())
    assert waits == [seconds]
    assert lines == [f"The hub asks to wait {seconds:.0f} s (rate limit)."]


def test_several_windows_of_a_rate_limit_pass_but_not_any_number(fake, waits):
    published(fake)
    fake.faults.append(HubFault("429", "/cdn/", times=patience.MOST_WINDOWS, rate_limit='"resolvers";r=0;t=300'))
    is_whole(opened())
    assert waits == [300] * patience.MOST_WINDOWS
    fake.faults.append(HubFault("429", "/cdn/", times=99, rate_limit='"resolvers";r=0;t=300'))
    with pytest.raises(WeightsUnavailableError, match="its rate limit is reached"):
        _ = opened()["token_embedding"]


def test_threads_wait_for_one_window_together(waits, lines):
    server = patience.Server("hub")
    for _ in range(4):  # four requests were under way
        server.pause(60)
    assert lines == ["The hub asks to wait 60 s (rate limit)."]
    server.admit()
    server.admit()
    assert waits == [60]
    server.pause(60)
    assert len(lines) == 2


def test_a_date_to_wait_for_is_understood():
    from email.utils import formatdate

    asked = httpx2.Response(503, headers={"Retry-After": formatdate(time.time() + 30, usegmt=True)})
    assert 28 <= patience.asked_wait(asked) <= 30
    assert patience.asked_wait(httpx2.Response(503, headers={"Retry-After": "soon"})) is None


# Servers that don't answer


def test_a_hub_that_never_answers_costs_little_and_once(fake, monkeypatch):
    """No timeout of the network library covers the look-up of a name, for example."""
    monkeypatch.setattr(patience, "START_S", 0.2)
    asked = []
    monkeypatch.setattr("httpx2.HTTPTransport.handle_request", lambda *_: (asked.append(1), time.sleep(3)))
    hub, began = Hub(), time.monotonic()
    for repo in ("owner/one", "owner/two"):
        with pytest.raises(WeightsUnavailableError, match=r"can't be reached \(no answer within"):
            opened(repo, hub=hub)
    assert asked == [1] and time.monotonic() - began < 2


def test_a_hub_that_was_reached_before_is_waited_for(fake, monkeypatch, waits, lines):
    """It is down for a minute in the middle of a run."""
    monkeypatch.setattr(patience, "FIRST_WAIT_S", 1.0)
    published(fake)
    checkpoint = opened()
    real = httpx2.HTTPTransport.handle_request

    def down(transport, request):
        if sum(waits) < 60:
            raise httpx2.ConnectError("refused", request=request)
        return real(transport, request)

    monkeypatch.setattr("httpx2.HTTPTransport.handle_request", down)
    np.testing.assert_array_equal(checkpoint["position_embedding"], tensors_of("gpt2")["wpe.weight"])
    assert 60 <= sum(waits) < patience.OUTAGE_S
    assert lines == [f"{fake.url.removeprefix('http://')} doesn't answer; it is waited for 100 s at most."]


def test_a_hub_that_went_down_is_asked_again_later(fake, monkeypatch, waits):
    published(fake)
    hub = Hub()
    checkpoint = opened(hub=hub)
    real = httpx2.HTTPTransport.handle_request

    def down(transport, request):
        raise httpx2.ReadError("cut")

    monkeypatch.setattr("httpx2.HTTPTransport.handle_request", down)
    with pytest.raises(WeightsUnavailableError, match="gives no answer"):
        _ = checkpoint["position_embedding"]
    assert sum(waits) <= patience.OUTAGE_S
    monkeypatch.setattr("httpx2.HTTPTransport.handle_request", real)
    with pytest.raises(WeightsUnavailableError, match="can't be reached"):
        _ = opened(hub=hub)["position_embedding"]
    waits.append(patience.ASK_AGAIN_S)
    assert opened(hub=hub)["position_embedding"].shape == (64, 24)


def test_a_server_of_bytes_that_refuses_costs_its_time_once(fake, monkeypatch, waits):
    for repo in ("owner/one", "owner/two", "owner/three"):
        published(fake, repo)
    asked = []

    def down(request):
        if request.url.host == "localhost":
            asked.append(request)
            raise httpx2.ConnectTimeout("timed out", request=request)

    without(monkeypatch, down)
    hub = Hub()
    for repo in ("owner/one", "owner/two", "owner/three"):
        with pytest.raises(WeightsUnavailableError, match=rf"{repo} .*localhost:\d+ can't be reached \(timed out\)"):
            opened(repo, hub=hub)
    assert len(asked) == 1
    assert waits == []


def test_another_run_asks_again(fake, monkeypatch):
    published(fake)
    with monkeypatch.context() as patched:
        patched.setattr(
            "httpx2.HTTPTransport.handle_request", lambda *_: (_ for _ in ()).throw(httpx2.ConnectError(""))
        )
        with pytest.raises(WeightsUnavailableError, match="can't be reached"):
            opened(hub=Hub())
    is_whole(opened(hub=Hub()))


def test_what_is_on_the_way_of_a_run_is_known_in_each_process(fake, monkeypatch):
    """A hub travels with each job; a process remembers by its run."""
    import pickle

    asked = []

    def down(request):
        asked.append(request)
        raise httpx2.ConnectError("refused", request=request)

    without(monkeypatch, down)
    hub = Hub()
    for _ in range(3):
        with pytest.raises(WeightsUnavailableError, match="can't be reached"):
            opened(hub=pickle.loads(pickle.dumps(hub)))
    assert len(asked) == 1


def test_ctrl_c_ends_threads_that_wait_or_read(fake, monkeypatch):
    published(fake)
    checkpoint = opened()
    fake.faults.append(HubFault("429", "/cdn/", times=99, rate_limit='"resolvers";r=0;t=60'))

    def pressed(sentence):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    began = time.monotonic()
    with notices.heard_by(pressed), pytest.raises(KeyboardInterrupt):
        checkpoint.prefetch(list(checkpoint))
    assert time.monotonic() - began < 10
    fake.faults.clear()
    monkeypatch.setattr(patience, "_servers", {})
    is_whole(checkpoint)


# The hub client's own habits


def test_the_hub_s_client_writes_nothing_between_our_lines(fake, capfd, waits):
    published(fake, shards=2)
    fake.faults.append(HubFault("503", "/cdn/", times=3))
    fake.faults.append(HubFault("503", "config.json", times=3))
    checkpoint = opened()
    checkpoint.prefetch(list(checkpoint), whole=True)
    is_whole(checkpoint)
    assert capfd.readouterr() == ("", "")
