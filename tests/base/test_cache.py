"""A cache is known by what its files were made from, and forgets what nobody asks for."""

import os

import pytest

from generators.base.cache import Cache, key
from generators.base.errors import AtlasError


def test_keys_are_of_what_was_made_from_in_its_order():
    assert key("a", 1, ending=".svg") == key("a", 1, ending=".svg")
    assert key("a", 1).isalnum()
    assert len({key("a", "b"), key("b", "a"), key("ab"), key("a", "b", ""), key("a", "b", ending=".x")}) == 5


def test_what_is_stored_is_found_and_made_once(tmp_path):
    cache, made = Cache(tmp_path / "cache"), []

    def make():
        made.append(1)
        return b"drawn"

    assert cache.get("a.svg") is None
    assert [cache.get_or_make("a.svg", make), Cache(cache.folder).get_or_make("a.svg", make)] == [b"drawn"] * 2
    assert len(made) == 1
    cache.put("a.svg", b"")
    assert cache.get_or_make("a.svg", make) == b"", "an empty file is one that is there"


def test_what_nobody_asked_for_goes(tmp_path):
    before = Cache(tmp_path)
    for name in ("put", "asked", "old"):
        before.put(name, b"x")
    cache = Cache(tmp_path)
    cache.put("put", b"y")
    cache.get("asked")
    cache.drop_unused()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"put": b"y", "asked": b"x"}


def test_a_cache_that_cant_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(AtlasError, match="can't be written"):
        Cache(tmp_path / "file").put("a", b"x")


def test_what_is_no_file_is_made_anew(tmp_path):
    os.mkfifo(tmp_path / "a.svg")
    assert Cache(tmp_path).get_or_make("a.svg", lambda: b"drawn") == (tmp_path / "a.svg").read_bytes() == b"drawn"
