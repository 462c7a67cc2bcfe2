"""The hub by byte ranges: exactly what is asked for, through faults, and nothing that isn't the file any more."""

import hashlib
import json
import os

import httpx2
import numpy as np
import pytest
from safetensors.numpy import load_file

from generators.base.errors import InputError, WeightsUnavailableError
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.registry import HubSource, Model
from generators.checkpoint.sources import Hub, Origin, files, in_folder, locate, network, patience
from generators.checkpoint.sources.tensor_cache import TensorCache
from tests.checkpoint.fake_hub import COMMIT, HubFault
from tests.checkpoints import WEIGHTS, edit_header, tensors_of, write_checkpoint


def opened(repo="owner/tiny", revision="main", hub=None):
    source = HubSource(hub=repo, revision=revision)
    return open_checkpoint(locate(Model(name="tiny", title="tiny", sources=(source,)), (), hub or Hub()))


def published(fake, repo="owner/tiny", **checkpoint):
    return write_checkpoint(fake.repository(repo), **checkpoint)


def test_a_repository_is_read_at_the_commit_that_its_revision_means(fake):
    published(fake)
    checkpoint = opened(revision="v2")
    assert checkpoint.origin == Origin("hub", "owner/tiny", "v2", COMMIT)
    np.testing.assert_array_equal(checkpoint["position_embedding"], tensors_of("gpt2")["wpe.weight"])
    assert all("/resolve/" not in a.path or f"/{COMMIT}/" in a.path for a in fake.asked)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("shards", [1, 3])
def test_every_tensor_is_what_it_is_in_the_file(fake, tmp_path, shards, dtype):
    folder = published(fake, shards=shards, dtype=dtype)
    local, far = open_checkpoint(in_folder(folder)), opened()
    assert set(local) == set(far)
    for role in local:
        np.testing.assert_array_equal(far[role], local[role], strict=True)
        assert far.record(role) == local.record(role)


def test_neighbours_are_read_in_one_request(fake):
    published(fake)
    checkpoint = opened()
    before = len(fake.weights_asked())
    checkpoint.prefetch([role for role in checkpoint if role.startswith("blocks.0.")])
    assert len(fake.weights_asked()) - before == 1


def test_what_was_read_is_not_asked_for_again(fake):
    published(fake)
    first = opened()["position_embedding"]
    fake.asked.clear()
    np.testing.assert_array_equal(opened()["position_embedding"], first)
    assert fake.weights_asked() == []


def test_what_the_client_has_whole_is_read_there(fake, tmp_path):
    from huggingface_hub import hf_hub_download

    published(fake)
    for name in ("config.json", WEIGHTS):
        hf_hub_download("owner/tiny", name)
    fake.asked.clear()
    for hub in (Hub(), Hub(offline=True)):
        checkpoint = opened(hub=hub)
        for role in checkpoint:
            assert checkpoint[role].size
        assert checkpoint.traffic.fetched == 0
    assert fake.weights_asked() == []
    assert not (tmp_path / "cache" / "tensors").exists()


def test_files_that_are_needed_whole_come_whole_and_are_counted(fake):
    folder = published(fake, shards=3)
    checkpoint = opened()
    checkpoint.prefetch(list(checkpoint), whole=True)
    assert {asked.span for asked in fake.weights_asked() if asked.method == "GET"} >= {None}
    sent = fake.sent
    assert checkpoint.traffic.fetched == sent >= sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    assert all(checkpoint[role].size for role in checkpoint)
    assert fake.sent == sent


def test_whole_files_report_their_bytes_while_they_come(fake, monkeypatch):
    published(fake)
    monkeypatch.setattr("generators.base.progress.SHOW_EVERY", 0.0)
    lines: list[str] = []
    checkpoint = opened()
    checkpoint.prefetch(list(checkpoint), lines.append, whole=True)
    assert lines[0] == "owner/tiny: getting model.safetensors"
    assert lines[-1].startswith("owner/tiny: getting model.safetensors: ") and lines[-1].endswith("B")


def test_what_would_not_fit_in_the_cache_is_not_fetched_beforehand(fake, monkeypatch):
    published(fake)
    monkeypatch.setenv("ATLAS_CACHE_GB", "0")
    checkpoint = opened()
    before = checkpoint.traffic.fetched
    checkpoint.prefetch(list(checkpoint))
    assert checkpoint.traffic.fetched == before
    table = checkpoint["position_embedding"]
    assert checkpoint.traffic.fetched == before + table.nbytes
    assert checkpoint.traffic.needed > table.nbytes  # all that was asked for


def test_progress_is_reported_in_bytes(fake):
    published(fake)
    lines: list[str] = []
    checkpoint = opened()
    checkpoint.prefetch(["position_embedding"], lines.append)
    assert lines == ["owner/tiny: reading from the hub: 6.1 kB"]
    checkpoint.prefetch(["position_embedding"], lines.append)
    assert len(lines) == 1


def test_what_is_damaged_in_the_cache_is_read_again(fake, tmp_path):
    published(fake)
    first = opened()["position_embedding"]
    (cached,) = [path for path in (tmp_path / "cache" / "tensors").rglob("*") if path.is_file()]
    cached.write_bytes(cached.read_bytes()[:-1] + b"\x7f")
    np.testing.assert_array_equal(opened()["position_embedding"], first)


@pytest.mark.parametrize("numbers", [1, 100, 1 << 22])
def test_a_tensor_read_in_parts_is_the_tensor(fake, tmp_path, monkeypatch, numbers):
    folder = published(fake)
    monkeypatch.setattr(files, "NUMBERS_AT_ONCE", numbers)
    whole = load_file(folder / WEIGHTS)
    here = open_checkpoint(in_folder(folder))
    for checkpoint in (here, opened(), opened()):  # from a folder, from the hub, from the cache
        for role in checkpoint:
            record = checkpoint.record(role)
            stored = whole[record.name]
            assert (record.shape, record.sha256) == (stored.shape, hashlib.sha256(stored.tobytes()).hexdigest())
            np.testing.assert_array_equal(checkpoint[role], here[role], strict=True)


@pytest.mark.parametrize("prefetched", [False, True])
def test_a_shape_that_its_bytes_do_not_fill_is_a_sentence(fake, prefetched):
    folder = published(fake)
    edit_header(folder / WEIGHTS, lambda header: header["wpe.weight"].update(shape=[10**15, 24]))
    checkpoint = opened()
    with pytest.raises(InputError, match="has not the size that its shape asks for"):
        if prefetched:
            checkpoint.prefetch(["position_embedding"])
        _ = checkpoint["position_embedding"]


def test_the_least_recently_used_tensors_leave_the_cache_first(tmp_path, monkeypatch):
    monkeypatch.setenv("ATLAS_CACHE_GB", "250e-9")
    cache = TensorCache(tmp_path)
    for age, name in enumerate("abc"):
        cache.store_tensor("file", name, name.encode() * 100)
        (path,) = cache._tensors("file", name).glob("*")
        os.utime(path, (age, age))
    with cache.tensor("file", "a") as file:  # now the most recently used
        assert file.read() == b"a" * 100
    cache.prune()
    assert [name for name in "abc" if cache.has_tensor("file", name)] == ["a", "c"]


def test_offline_main_is_found_again(fake, monkeypatch):
    published(fake)
    first = opened()["position_embedding"]
    fake.asked.clear()
    checkpoint = opened(hub=Hub(offline=True))
    assert checkpoint.origin == Origin("hub", "owner/tiny", "main", COMMIT)
    np.testing.assert_array_equal(checkpoint["position_embedding"], first)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)  # the client's own switch
    np.testing.assert_array_equal(opened()["position_embedding"], first)
    assert fake.asked == []
    with pytest.raises(WeightsUnavailableError, match=r"model\.safetensors of owner/tiny isn't in the local cache"):
        _ = opened()["token_embedding"]


# Faults


@pytest.mark.parametrize("status", ["408", "429", "500", "502", "503", "504"])
@pytest.mark.parametrize("where", ["/api/", "config.json", "/cdn/"])
def test_what_may_pass_is_asked_again(fake, waits, where, status):
    published(fake)
    fake.faults.append(HubFault(status, where, times=2))
    assert opened()["position_embedding"].shape == (64, 24)
    assert waits  # for small files the hub's own client waits too
    assert waits == sorted(waits)


def test_the_wait_that_is_asked_for_is_made(fake, waits):
    published(fake)
    fake.faults += [HubFault("429", "/cdn/", retry_after="7"), HubFault("503", "/api/", retry_after="100000")]
    assert opened()["position_embedding"].shape == (64, 24)
    assert waits == [patience.LONGEST_ASKED_S, 7]


def test_after_a_cut_reading_goes_on_where_it_was(fake, waits):
    published(fake)
    checkpoint = opened()
    fake.faults.append(HubFault("cut", "/cdn/", times=3))
    np.testing.assert_array_equal(checkpoint["position_embedding"], tensors_of("gpt2")["wpe.weight"])
    spans = [a.span.removeprefix("bytes=").split("-") for a in fake.weights_asked()[-4:]]
    assert [int(first) for first, _ in spans] == sorted({int(first) for first, _ in spans})
    assert fake.sent == checkpoint.traffic.fetched


def test_a_server_that_stalls_is_asked_again(fake, monkeypatch):
    monkeypatch.setattr(network, "TIMEOUT_S", 1.0)
    published(fake)
    fake.faults.append(HubFault("stall", "/cdn/"))
    assert opened()["position_embedding"].shape == (64, 24)


def test_trouble_that_does_not_pass_is_said_and_is_one_model_s(fake, waits):
    published(fake)
    published(fake, "owner/other")
    fake.faults.append(HubFault("503", "/cdn/owner/tiny", times=100))
    hub = Hub()
    with pytest.raises(
        WeightsUnavailableError, match=r"model\.safetensors of owner/tiny .*localhost:\d+ answers 503"
    ):
        _ = opened(hub=hub)["position_embedding"]
    fake.faults.append(HubFault("500", "/api/models/owner/tiny", times=100))
    with pytest.raises(WeightsUnavailableError, match=r"answers 503"):
        _ = opened(hub=hub)["token_embedding"]
    assert opened("owner/other", hub=hub)["position_embedding"].shape == (64, 24)


@pytest.mark.parametrize("kind", [httpx2.ConnectError, httpx2.ConnectTimeout])
def test_a_hub_that_cannot_be_reached_is_asked_once_only(fake, monkeypatch, waits, kind):
    connecting = []

    def no_route(transport, request):
        connecting.append(request.extensions["timeout"]["connect"])
        raise kind("no route")

    monkeypatch.setattr("httpx2.HTTPTransport.handle_request", no_route)
    hub = Hub()
    for repo in ("owner/one", "owner/two", "owner/three"):
        why = rf"can't be reached \(no route\) and {repo} isn't in its local cache"
        with pytest.raises(WeightsUnavailableError, match=why):
            opened(repo, hub=hub)
    assert len(connecting) == 1 and connecting[0] <= 5
    assert waits == []


@pytest.mark.parametrize("kind", [httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError])
def test_a_server_of_bytes_that_cannot_be_reached_is_a_sentence(fake, monkeypatch, waits, kind):
    published(fake)
    checkpoint = opened()

    def no_route(*arguments, **options):
        raise kind("no route")

    monkeypatch.setattr("httpx2.HTTPTransport.handle_request", no_route)
    unreachable = r"model\.safetensors of owner/tiny can't be downloaded: 127.0.0.1:\d+ can't be reached"
    with pytest.raises(WeightsUnavailableError, match=unreachable):
        _ = checkpoint["position_embedding"]
    with pytest.raises(WeightsUnavailableError, match=unreachable):
        checkpoint.prefetch(list(checkpoint))
    assert sum(waits) <= patience.OUTAGE_S  # it answered before


@pytest.mark.parametrize(
    ("kind", "said"),
    [("html", "a web page, not a file"), ("shift", "another part of it"), ("changed", "changed while it was read")],
)
def test_what_is_not_the_file_is_not_used(fake, kind, said):
    published(fake)
    checkpoint = opened()
    fake.faults.append(HubFault(kind, WEIGHTS, times=1))
    with pytest.raises(WeightsUnavailableError, match=f"owner/tiny .*{said}"):
        _ = checkpoint["position_embedding"]
    np.testing.assert_array_equal(checkpoint["position_embedding"], tensors_of("gpt2")["wpe.weight"])


def test_a_file_replaced_under_its_commit_is_noticed(fake):
    published(fake)
    checkpoint = opened()
    published(fake, seed=5)
    with pytest.raises(WeightsUnavailableError, match="changed while it was read"):
        _ = checkpoint["position_embedding"]


def test_a_file_replaced_under_its_commit_is_noticed_another_day(fake):
    published(fake)
    assert opened()["position_embedding"].size
    published(fake, seed=5)
    with pytest.raises(WeightsUnavailableError, match="changed while it was read"):
        _ = opened()["token_embedding"]


def test_a_server_without_parts_gives_files_whole(fake):
    published(fake)
    fake.faults.append(HubFault("whole", "/cdn/", times=100))
    np.testing.assert_array_equal(opened()["position_embedding"], tensors_of("gpt2")["wpe.weight"])


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-5]),
        lambda path: path.write_bytes((10**9).to_bytes(8, "little") + path.read_bytes()[8:]),
        lambda path: path.write_bytes((4).to_bytes(8, "little") + b"[[[["),
        lambda path: edit_header(path, lambda h: h["wpe.weight"].update(data_offsets=[8, 0])),
        lambda path: edit_header(path, lambda h: h["wpe.weight"].update(shape="wide")),
    ],
    ids=["short", "endless-header", "no-json", "backwards", "no-shape"],
)
def test_a_damaged_file_is_a_sentence(fake, harm):
    harm(published(fake) / WEIGHTS)
    with pytest.raises(InputError, match=r"model\.safetensors of owner/tiny isn't a (whole )?safetensors file"):
        opened()


def test_numbers_that_are_no_floats_are_a_sentence(fake):
    published(fake, changed={"wpe.weight": np.ones((64, 24), np.int32)}, dtype=None)
    with pytest.raises(InputError, match="is I32; the atlas reads F64"):
        _ = opened()["position_embedding"]


@pytest.mark.parametrize("name", ["own--er/tiny", "owner-/tiny", "owner/tiny.git"])
def test_a_name_that_no_repository_can_have_is_wrong_input(fake, name):
    with pytest.raises(InputError, match=f"'{name}' can't be a hub id"):
        opened(name)
    assert fake.asked == []


def test_a_broken_config_is_the_model_s(fake):
    (published(fake) / "config.json").write_text(json.dumps([1]))
    with pytest.raises(InputError, match="must hold a JSON object"):
        opened()
