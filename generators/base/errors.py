"""Errors that are a sentence about the user's input; anything else that escapes is a bug."""

LONGEST = 200  # characters of another library's sentence


class AtlasError(Exception):
    """An error as one sentence that the user can act on."""


class InputError(AtlasError):
    """The input can't be used: a bad name, a damaged checkpoint, weights of the wrong shape."""


class WeightsUnavailableError(AtlasError):
    """The weights exist, but can't be reached now: no folder, no package, no connection to the hub."""


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message without its period, or its kind; of a long one the beginning."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def raise_unless_panic(error: BaseException) -> None:
    """Re-raise an error unless it is an Exception or the panic of a Rust library, which is no Exception."""
    if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
        raise error
