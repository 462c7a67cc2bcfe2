from collections.abc import Sequence


def listed(words: Sequence[str]) -> str:
    """Return "a", "a and b" or "a, b and c"."""
    return " and ".join([", ".join(words[:-1])] * (len(words) > 1) + list(words[-1:]))


def many(count: int, what: str) -> str:
    """Return "1 model" or "2 models", for regular plurals."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def first(words: Sequence[object], most: int) -> str:
    """Return "a, b", or "a, b and 3 more" where there are more than `most`."""
    named = ", ".join(map(str, words[:most]))
    return f"{named} and {len(words) - most} more" if len(words) > most else named
