"""What a model computes, sooner: its matrices are multiplied by oneDNN, and GELU is made in one pass over memory.

PyTorch multiplies matrices of float32 by MKL, which uses half of what AMD's processors with AVX-512 can do. oneDNN,
which PyTorch has as well, uses all of it and is as exact.
"""

import time
import timeit
from functools import partial
from typing import Any

import torch
from transformers.activations import NewGELUActivation
from transformers.pytorch_utils import Conv1D

SIDE, TRIES = 1024, 5  # of the test of speed


def make_faster(model: Any) -> None:
    for module in model.modules():
        if isinstance(module, NewGELUActivation):  # the formula with tanh, in seven passes
            module.__class__, module.approximate = torch.nn.GELU, "tanh"
        elif type(module) is torch.nn.Linear and model.device.type == "cpu":
            module.forward = partial(_linear, module)
        elif type(module) is Conv1D and model.device.type == "cpu":
            module.weight.data = module.weight.data.T.contiguous().T  # its transpose is read row by row
            module.forward = partial(_transposed, module)


def product(states: Any, weight: Any, bias: Any = None) -> Any:
    if torch.backends.mkldnn.is_available():
        return torch.ops.mkldnn._linear_pointwise(states, weight, bias, "none", [], "")
    return torch.nn.functional.linear(states, weight, bias)


def speed(threads: int) -> float:
    """Return the floating point operations per second of a product of matrices, by this thread's own time."""
    matrix, before = torch.ones(SIDE, SIDE), torch.get_num_threads()
    torch.set_num_threads(threads)
    took = min(timeit.repeat(lambda: product(matrix, matrix), number=1, repeat=TRIES, timer=time.thread_time))
    torch.set_num_threads(before)
    return 2 * SIDE**3 / took


def _linear(module: Any, states: Any) -> Any:
    return product(states, module.weight, module.bias)


def _transposed(module: Any, states: Any) -> Any:
    return product(states, module.weight.T, module.bias)
