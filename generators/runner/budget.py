"""How much running there is time and memory for.

By constants and not by a clock, so that the same settings choose the same windows of text every time.
"""

from contextlib import suppress
from typing import Any

from generators.base.architecture import Architecture
from generators.runner.errors import CannotRunError

FLOAT_BYTES = 4  # everything is run in float32
BATCH_BYTES = 128 * 2**20  # that the largest arrays of a batch may take; small enough to stay near the processor
KEPT_BYTES = 384 * 2**20  # of states; further windows are run whenever they are asked for
THREADS = 1  # of torch: two give the same bits and hardly help; parallel jobs do
MINUTE = 60.0
DEFAULT_BUDGET_S = 10 * MINUTE  # for all runs of one model
FEWEST_WINDOWS = 8  # always run: an interval over fewer windows says nothing
# Assumed floating point operations per second: one thread of an ordinary processor; an ordinary GPU.
ASSUMED_SPEED = {"cpu": 2.5e10, "cuda": 2e12}


def assumed_speed(device: str) -> float:
    return ASSUMED_SPEED[device.partition(":")[0]]


def affordable(count: int, operations: float, budget_s: float, speed: float) -> int:
    return min(count, max(FEWEST_WINDOWS, int(budget_s * speed / operations)))


def operations(model: Any, architecture: Architecture, length: int, *, predicts: bool) -> float:
    """Return the floating point operations of one window: matrices, scores, and logits where it predicts.

    Logits over the vocabulary are counted by their size, since the matrix is often the one that embeds.
    """
    counted = [(name, array) for name, array in model.named_parameters() if "embed" not in name]
    parameters = sum(array.numel() for name, array in counted if "lm_head" not in name)
    logits = architecture.d_model * (architecture.vocab_size or 0) if predicts else 0
    scores = 2 * architecture.n_layer * architecture.d_model * length
    return 2.0 * length * (parameters + logits + scores)


def chosen_device(wanted: str) -> str:
    if wanted == "cpu":
        return "cpu"
    there = False
    with suppress(ImportError):
        import torch

        there = torch.cuda.is_available()
    if wanted == "cuda" and not there:
        raise CannotRunError("There is no GPU here that torch can use.")
    return "cuda" if there else "cpu"
