"""Sentences about a whole run that come up deep inside it, such as that a cache can't be written."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from generators.base.progress import Report, printable


def _on_stderr(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)


_listeners: list[Report] = [_on_stderr]
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
