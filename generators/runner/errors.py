from generators.base.errors import AtlasError


class CannotRunError(AtlasError):
    """This model can't be run here, or not in this way; the message says why."""
