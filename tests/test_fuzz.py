"""A few mutants of each kind, and every one that broke something once."""

import pytest

from tests import fuzz

SEEDS = range(1)


@pytest.mark.parametrize(("kind", "seed"), [*((kind, seed) for kind in fuzz.KINDS for seed in SEEDS), *fuzz.BROKE])
def test_a_mutant_gives_a_result_or_a_sentence(kind, seed):
    what, why = fuzz.in_child(kind, seed)
    assert what in ("result", "sentence"), why


def test_what_breaks_is_told(monkeypatch):
    def broken(place, rng):
        raise ZeroDivisionError("here")

    monkeypatch.setitem(fuzz.KINDS, "config", broken)
    what, why = fuzz.in_child("config", 0)
    assert what == "broke"
    assert "ZeroDivisionError: here" in why


def test_what_takes_too_long_is_ended(monkeypatch):
    def endless(place, rng):
        while True:
            pass

    monkeypatch.setattr(fuzz, "SECONDS", 1)
    monkeypatch.setitem(fuzz.KINDS, "config", endless)
    what, why = fuzz.in_child("config", 0)
    assert what == "broke"
    assert "ended by signal" in why


def test_what_takes_too_much_memory_is_told(monkeypatch):
    def greedy(place, rng):
        return bytearray(3 * 2**30)

    monkeypatch.setitem(fuzz.KINDS, "config", greedy)
    what, why = fuzz.in_child("config", 0)
    assert what == "broke"
    assert "MemoryError" in why
