"""A few mutants of each kind, and every one that broke something once."""

import pytest

from tests import fuzz

SEEDS = range(1)


@pytest.mark.parametrize(("kind", "seed"), [*((kind, seed) for kind in fuzz.KINDS for seed in SEEDS), *fuzz.BROKE])
def test_a_mutant_gives_a_result_or_a_sentence(kind, seed):
    what, why = fuzz.in_child(kind, seed)
    assert what in ("result", "sentence"), why


def broken(place, rng):
    raise ZeroDivisionError("here")


def endless(place, rng):
    while True:
        pass


def greedy(place, rng):
    return bytearray(3 * 2**30)


@pytest.mark.parametrize(
    ("change", "said"),
    [(broken, "ZeroDivisionError: here"), (endless, "ended by signal"), (greedy, "MemoryError")],
)
def test_what_breaks_or_takes_too_much_is_shown(monkeypatch, change, said):
    monkeypatch.setattr(fuzz, "SECONDS", 1 if change is endless else fuzz.SECONDS)
    monkeypatch.setitem(fuzz.KINDS, "config", change)
    what, why = fuzz.in_child("config", 0)
    assert what == "broke"
    assert said in why
