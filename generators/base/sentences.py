"""Pieces of sentences."""

from collections.abc import Sequence


def listed(words: Sequence[str]) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    return " and ".join([", ".join(words[:-1])] * (len(words) > 1) + list(words[-1:]))
