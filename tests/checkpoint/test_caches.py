"""Both caches: what happens where one can't be written, how big they are, and what is removed from them."""

import errno
import os
import shutil

import pytest
from typer.testing import CliRunner

from generators.base.errors import InputError, WeightsUnavailableError
from generators.checkpoint.sources import caches, tensor_cache
from generators.checkpoint.sources.tensor_cache import TensorCache
from generators.cli import app
from tests.checkpoint.test_hub import is_whole, opened, published
from tests.checkpoints import WEIGHTS
from tests.compute.harness import raising

READ_ONLY = OSError(errno.EROFS, "Read-only file system")


@pytest.mark.parametrize("prefetched", [False, True])
def test_a_cache_of_tensors_that_cannot_be_written_is_a_warning(tiny, tmp_path, monkeypatch, lines, prefetched):
    with monkeypatch.context() as patched:
        patched.setattr(tensor_cache, "replace_file", raising(READ_ONLY))
        checkpoint = opened()
        if prefetched:
            checkpoint.prefetch(list(checkpoint))
        is_whole(checkpoint)
        assert checkpoint["token_embedding"].size
    (line,) = lines
    assert f"{tmp_path / 'cache'} can't be written (Read-only file system)" in line
    is_whole(opened())


def test_a_cache_of_tensors_that_can_only_be_read_is_read(fake, tiny, monkeypatch):
    is_whole(opened())
    sent = fake.sent
    for place in ("generators.checkpoint.sources.tensor_cache.replace_file", "os.utime"):
        monkeypatch.setattr(place, raising(READ_ONLY))
    is_whole(opened())
    assert fake.sent == sent


@pytest.mark.parametrize("of_disk", [False, True])
def test_what_finds_no_room_is_not_fetched_beforehand(fake, tiny, monkeypatch, of_disk):
    checkpoint = opened()
    if of_disk:
        usage = shutil.disk_usage("/")
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    else:
        monkeypatch.setenv("ATLAS_CACHE_GB", "0")
    before = fake.sent
    checkpoint.prefetch(list(checkpoint))
    assert fake.sent == before
    table = checkpoint["position_embedding"]
    assert fake.sent == before + table.nbytes


def test_a_whole_file_that_cannot_be_stored_is_a_sentence(tiny, monkeypatch):
    checkpoint = opened()
    with monkeypatch.context() as patched:
        patched.setattr("huggingface_hub.hf_hub_download", raising(READ_ONLY))
        said = rf"{WEIGHTS} of owner/tiny can't be stored in .*client-cache \(Read-only .*HF_HOME"
        with pytest.raises(WeightsUnavailableError, match=said):
            checkpoint.prefetch(list(checkpoint), whole=True)
    checkpoint.prefetch(list(checkpoint), whole=True)
    is_whole(checkpoint)


# What is shown and removed


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["cache", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


@pytest.mark.parametrize(
    ("size", "left", "said"),
    [("250B", "ac", "1 tensor, 100 bytes"), ("20GB", "abc", "0 tensors"), ("0", "", "3 tensors")],
)
def test_both_caches_are_shown_and_tensors_unused_longest_removed(fake, tmp_path, size, left, said):
    from huggingface_hub import hf_hub_download

    published(fake)
    hf_hub_download("owner/tiny", "config.json")
    cache = TensorCache(tmp_path / "cache")
    cache.store_note({"a": 1}, "headers", "b")
    for age, name in enumerate("abc"):
        cache.store_tensor("file", name, name.encode() * 100)
        (path,) = cache._tensors("file", name).glob("*")
        os.utime(path, (1000 + age, 1000 + age))
    with cache.tensor("file", "a") as file:  # now the most recently used
        assert file.read() == b"a" * 100
    shown = run()
    assert f"3 tensors, 1 notes\t308 bytes\t{tmp_path / 'cache'}\n" in shown
    assert "files of 1 models\t" in shown and f"\t{tmp_path / 'client-cache'}\n" in shown
    shown = run("--prune", size)
    assert said in shown and "files of 1 models\t" in shown
    assert "".join(name for name in "abc" if cache.has_tensor("file", name)) == left
    assert bool(cache.notes()) == bool(left)


def test_sizes_are_read_and_others_refused():
    sizes = {"20GB": 20 * 10**9, "1.5 mb": 1_500_000, "7": 7, "2T": 2 * 10**12}
    assert {text: caches.parsed_size(text) for text in sizes} == sizes
    for text in ("", "much", "-1GB", "20 GiB"):
        with pytest.raises(InputError, match="is no size"):
            caches.parsed_size(text)
