"""Both caches: what happens where one can't be written, how big they are, and what is removed from them."""

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from generators.base.errors import InputError, WeightsUnavailableError
from generators.checkpoint.sources import Hub, caches
from generators.checkpoint.sources.tensor_cache import TensorCache
from generators.cli import app
from tests.checkpoint.test_hub import opened, published
from tests.checkpoints import WEIGHTS, tensors_of

FULL = OSError(errno.ENOSPC, "No space left on device")
READ_ONLY = OSError(errno.EROFS, "Read-only file system")


def refuse_to_write(monkeypatch, under: Path, error: OSError) -> None:
    """Have no file be made and no file be opened for writing in a folder."""
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT
    for name in ("mkdir", "open", "utime", "unlink"):
        real = getattr(os, name)

        def checked(path, *arguments, real=real, name=name, **options):
            is_there = isinstance(path, str | Path) and Path(path).is_relative_to(under)
            reads = name == "open" and not (arguments and arguments[0] & writing)
            if is_there and not reads and not (name == "unlink" and error is FULL):
                raise type(error)(error.errno, error.strerror, str(path))
            return real(path, *arguments, **options)

        monkeypatch.setattr(os, name, checked)
    real_open = open

    def opening(path, mode="r", *arguments, **options):
        if isinstance(path, str | Path) and Path(path).is_relative_to(under) and set(mode) & set("wax+"):
            raise type(error)(error.errno, error.strerror, str(path))
        return real_open(path, mode, *arguments, **options)

    monkeypatch.setattr("builtins.open", opening)
    monkeypatch.setattr("io.open", opening)


@pytest.mark.parametrize("error", [FULL, READ_ONLY], ids=["full", "read-only"])
@pytest.mark.parametrize("prefetched", [False, True])
def test_a_cache_of_tensors_that_cannot_be_written_is_a_warning(
    fake, tmp_path, monkeypatch, lines, error, prefetched
):
    published(fake)
    with monkeypatch.context() as patched:
        refuse_to_write(patched, tmp_path / "cache", error)
        checkpoint = opened()
        if prefetched:
            checkpoint.prefetch(list(checkpoint))
        np.testing.assert_array_equal(checkpoint["position_embedding"], tensors_of("gpt2")["wpe.weight"])
        assert checkpoint["token_embedding"].size
    said = f"The cache {tmp_path / 'cache'} can't be written ({error.strerror}); what it can't store is read from the"
    assert lines == [f"{said} hub each time."]
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    np.testing.assert_array_equal(opened()["position_embedding"], tensors_of("gpt2")["wpe.weight"])


def test_a_cache_of_tensors_that_can_only_be_read_is_read(fake, tmp_path, monkeypatch, lines):
    published(fake)
    hub = Hub()
    first = opened(hub=hub)["position_embedding"]
    sent = fake.sent
    refuse_to_write(monkeypatch, tmp_path / "cache", READ_ONLY)
    np.testing.assert_array_equal(opened(hub=hub)["position_embedding"], first)
    assert fake.sent == sent


def test_what_finds_no_room_on_the_disk_is_not_fetched_beforehand(fake, monkeypatch):
    published(fake)
    checkpoint = opened()
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    before = checkpoint.traffic.fetched
    checkpoint.prefetch(list(checkpoint))
    assert checkpoint.traffic.fetched == before


@pytest.mark.parametrize("error", [FULL, READ_ONLY], ids=["full", "read-only"])
def test_small_files_need_no_cache_of_the_hub_s_client(fake, tmp_path, monkeypatch, lines, error):
    published(fake)
    refuse_to_write(monkeypatch, tmp_path / "client-cache", error)
    np.testing.assert_array_equal(opened()["position_embedding"], tensors_of("gpt2")["wpe.weight"])
    assert lines == [
        f"The hub client's cache {tmp_path / 'client-cache'} can't be written ({error.strerror}); small files are "
        "kept for this run only."
    ]


def test_a_whole_file_that_cannot_be_stored_is_one_model_s_sentence(fake, tmp_path, monkeypatch, lines):
    published(fake)
    published(fake, "owner/other")
    checkpoint = opened()
    with monkeypatch.context() as patched:
        refuse_to_write(patched, tmp_path / "client-cache", FULL)
        with pytest.raises(WeightsUnavailableError) as error:
            checkpoint.prefetch(list(checkpoint), whole=True)
        assert opened("owner/other")["position_embedding"].size
    assert str(error.value) == (
        f"{WEIGHTS} of owner/tiny can't be stored in {tmp_path / 'client-cache'} (No space left on device). "
        "`atlas cache` shows what can be removed; HF_HOME can name a folder on another disk."
    )
    checkpoint.prefetch(list(checkpoint), whole=True)
    assert checkpoint["position_embedding"].size


# What is shown and removed


@pytest.fixture
def both(fake, tmp_path):
    """Fill both caches: tensors of 100 bytes each, used in the order of their names, and two models."""
    from huggingface_hub import hf_hub_download

    cache = TensorCache(tmp_path / "cache")
    for age, name in enumerate("abc"):
        cache.store_tensor("file", name, name.encode() * 100)
        (path,) = cache._tensors("file", name).glob("*")
        os.utime(path, (1000 + age, 1000 + age))
    for age, repo in enumerate(("owner/first", "owner/second")):
        published(fake, repo)
        blob = Path(hf_hub_download(repo, "config.json")).resolve()
        os.utime(blob, (age, age))
    return cache


def names(cache: TensorCache) -> str:
    return "".join(name for name in "abc" if cache.has_tensor("file", name))


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["cache", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_both_caches_are_shown_with_their_sizes_and_what_empties_them(both, tmp_path):
    shown = run()
    assert f"the atlas's: 3 tensors, 0 notes\t300 bytes\t{tmp_path / 'cache'}\n" in shown
    assert "the hub client's: files of 2 models\t" in shown
    assert f"\t{tmp_path / 'client-cache'}\n" in shown
    assert "owner/first: " in shown and "days ago" in shown
    assert "atlas cache --prune" in shown and "hf cache rm model/OWNER/NAME" in shown


def test_caches_that_are_not_there_are_empty(fake, tmp_path):
    shown = run()
    assert f"the atlas's: 0 tensors, 0 notes\t0 bytes\t{tmp_path / 'cache'}\n" in shown
    assert f"the hub client's: files of 0 models\t0 bytes\t{tmp_path / 'client-cache'}\n" in shown


def test_pruning_removes_tensors_that_were_unused_longest_and_nothing_of_the_hub_s_client(both):
    shown = run("--prune", "250B")
    assert names(both) == "bc"
    assert f"Removing from {both.folder}: 1 tensor, 100 bytes\n" in shown
    assert len(caches.hub_models()) == 2


def test_pruning_what_is_small_enough_removes_nothing(both):
    assert "Nothing is removed: 300 bytes are no more than 20.0 GB\n" in run("--prune", "20GB")
    assert names(both) == "abc"


def test_pruning_to_nothing_leaves_an_empty_folder(both):
    both.store_note({"a": 1}, "headers", "b")
    run("--prune", "0")
    assert list(both.folder.iterdir()) == []
    assert len(caches.hub_models()) == 2


def test_both_are_pruned_together_if_that_is_asked_for_and_models_are_named_first(both):
    second = caches.hub_models()[1]
    said = list(caches.prune(300 + second.size, hub=True))
    assert [model.name for model in caches.hub_models()] == ["owner/second"]
    assert names(both) == "abc"
    assert "owner/first: " in said[-1]
    list(caches.prune(150, hub=True))
    assert caches.hub_models() == [] and names(both) == "c"


def test_sizes_are_read_and_others_refused():
    assert [caches.parsed_size(text) for text in ("20GB", "1.5 mb", "7", "2T")] == [
        20 * 10**9,
        1_500_000,
        7,
        2 * 10**12,
    ]
    for text in ("", "much", "-1GB", "20 GiB"):
        with pytest.raises(InputError, match="is no size"):
            caches.parsed_size(text)


def test_a_model_of_the_hub_s_client_is_removed_only_with_a_size():
    with pytest.raises(InputError, match="--hub needs --prune"):
        CliRunner().invoke(app, ["cache", "--hub"], catch_exceptions=False)
