"""The model itself, run on texts. Only this room knows torch and transformers, and imports them when a run is due."""

from generators.runner.errors import CannotRunError
from generators.runner.opening import open_model

__all__ = ["CannotRunError", "open_model"]
