"""Errors that are a sentence about the user's input; anything else that escapes is a bug."""


class AtlasError(Exception):
    """What went wrong, in one sentence that the user can act on."""


class InputError(AtlasError):
    """The input can't be used: a bad name, a damaged checkpoint, weights of the wrong shape."""


class WeightsUnavailableError(AtlasError):
    """The weights exist somewhere, but not here and not now: no folder, no package, hub out of reach."""
