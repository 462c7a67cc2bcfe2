"""What passes through a model while it runs: the stream, where heads look, what its MLPs write.

Each is a context in which a function is called with the tensors themselves, on the device.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from generators.runner import modules
from generators.runner.errors import CannotRunError

SOFTMAXES = (torch.softmax, torch.nn.functional.softmax, torch.Tensor.softmax)
COMPARE = "eager_attention_forward"  # what transformers calls the function that compares queries with keys
MLPS = ("mlp", "feedforward", "feed_forward", "ffn", "densereludense")  # substrings of module or class names


def stream_before(blocks: Sequence[Any], see: Callable[[int, Any], None]) -> AbstractContextManager[None]:
    """Call `see` with a stage and what its block is given, (batch, n, d)."""

    def before(stage: int) -> Any:
        def hook(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            see(stage, modules.given(args, kwargs))

        return hook

    return modules.hooked(
        block.register_forward_pre_hook(before(stage), with_kwargs=True) for stage, block in enumerate(blocks)
    )


def outputs(found: Sequence[Any], see: Callable[[int, Any], None]) -> AbstractContextManager[None]:
    """Call `see` with the number of a module and what it returns: (batch, n, d), of an MLP perhaps (batch x n, d)."""

    def after(number: int) -> Any:
        return lambda _, args, output: see(number, modules.returned(output))

    return modules.hooked(module.register_forward_hook(after(number)) for number, module in enumerate(found))


def mlp_of(block: Any) -> Any:
    """Return the module of a block's MLP, None where it has none of its own; not that of an expert inside it."""
    for name, part in block.named_children():
        if any(word in name.lower() or word in type(part).__name__.lower() for word in MLPS):
            return part
    return None


class _LastSoftmax(TorchFunctionMode):  # type: ignore[misc]  # torch declares no types
    given: Any = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in SOFTMAXES:
            self.given = args[0] if args else (kwargs or {}).get("input")
        return func(*args, **(kwargs or {}))

    def scores_of(self, weights: Any) -> Any:
        """Return what weights are the softmax of, else their logarithms; both up to a constant of each query."""
        given, self.given = self.given, None
        if given is not None and given.numel() == weights.numel():
            return given.reshape(weights.shape)
        return weights.clamp_min(torch.finfo(torch.float32).tiny).log()


@contextmanager
def attention(
    blocks: Sequence[Any], see: Callable[[int, Any], None], part: range, *, scores: bool = False
) -> Iterator[Callable[[], None]]:
    """Call `see` with a layer in `part` and its attention or scores, (batch, heads, n, n); yield what ends a batch.

    That raises CannotRunError where the attention of some layer wasn't seen.
    """
    seen = set[int]()
    softmax = _LastSoftmax()

    def after(layer: int) -> Any:
        def hook(_: Any, args: Any, output: Any) -> None:
            weights: Any = output[1] if isinstance(output, tuple) and len(output) > 1 else None
            if layer not in seen and torch.is_tensor(weights) and weights.ndim == 4:
                seen.add(layer)
                see(layer, softmax.scores_of(weights) if scores else weights)

        return hook

    def end() -> None:
        if len(seen) < len(part):
            raise CannotRunError("Where heads look can't be seen in this architecture.")
        seen.clear()

    hooks = (
        module.register_forward_hook(after(layer))
        for layer in part
        for module in blocks[layer].modules()
        if "Attention" in type(module).__name__
    )
    with modules.hooked(hooks), softmax if scores else nullcontext():
        yield end


def compared(model: Any, see: Callable[[Any, Any, Any], None]) -> AbstractContextManager[None]:
    """Call `see` with queries, keys and values of every layer in turn. Raises CannotRunError: they can't be seen."""

    def watched(compare: Any) -> Any:
        def seen(module: Any, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
            see(query, key, value)
            return compare(module, query, key, value, *args, **kwargs)

        return seen

    return modules.function_replaced(model, COMPARE, watched)
