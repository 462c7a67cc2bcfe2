"""Errors that are a sentence about the user's input; anything else that escapes is a bug."""


class AtlasError(Exception):
    """An error as one sentence that the user can act on."""


class InputError(AtlasError):
    """The input can't be used: a bad name, a damaged checkpoint, weights of the wrong shape."""


class WeightsUnavailableError(AtlasError):
    """The weights exist, but can't be reached now: no folder, no package, no connection to the hub."""
