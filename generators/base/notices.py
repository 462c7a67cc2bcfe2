"""Sentences about a whole run that come up deep inside it, such as that a cache can't be written."""

from collections.abc import Iterator
from contextlib import contextmanager

from generators.base.progress import Report, to_stderr

_listeners: list[Report] = [to_stderr]
_said: set[str] = set()


@contextmanager
def heard_by(report: Report) -> Iterator[None]:
    """Send notices from all threads to `report` within this context."""
    _listeners.append(report)
    try:
        yield
    finally:
        _listeners.remove(report)


def say(sentence: str) -> None:
    _listeners[-1](sentence)


def say_once(sentence: str) -> None:
    if sentence not in _said:
        _said.add(sentence)
        say(sentence)


def forget() -> None:
    _said.clear()
