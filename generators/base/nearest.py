import difflib
from collections.abc import Iterable

COUNT = 3
CUTOFF = 0.5  # difflib ratio


def nearest(typed: str, names: Iterable[str]) -> str:
    """Return the names nearest to what was typed, as half a sentence in brackets; empty where none is near.

    Names that begin with it come first, the shortest of them before others.

    >>> nearest("gtp2", ["bert", "gpt2", "gpt2-xl"])
    ' (nearest: gpt2, gpt2-xl)'
    """
    known, wanted = list(names), typed.lower()
    begun = sorted((name for name in known if wanted and name.startswith(wanted)), key=len)
    close = difflib.get_close_matches(wanted, known, COUNT, CUTOFF)
    found = list(dict.fromkeys([*begun, *close]))[:COUNT]
    return f" (nearest: {', '.join(found)})" if found else ""
