"""A checkpoint as named tensors. Only this package knows file formats and tensor names."""

from generators.weights.checkpoint import Checkpoint, open_checkpoint
from generators.weights.families import Architecture

__all__ = ["Architecture", "Checkpoint", "open_checkpoint"]
