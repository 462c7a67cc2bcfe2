"""What passes through a model while it runs: the stream, where heads look, what its MLPs write.

Each is a context in which a function is called with the tensors themselves, on the device.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from generators.runner import modules
from generators.runner.errors import CannotRunError

SOFTMAXES = (torch.softmax, torch.nn.functional.softmax, torch.Tensor.softmax)
MLPS = ("mlp", "feedforward", "feed_forward", "ffn", "densereludense")  # substrings of module or class names


@contextmanager
def stream_before(blocks: Sequence[Any], see: Callable[[int, Any], None]) -> Iterator[None]:
    def before(stage: int) -> Any:
        def hook(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            see(stage, modules.given(args, kwargs))

        return hook

    with ExitStack() as hooks:
        for stage, block in enumerate(blocks):
            hooks.callback(block.register_forward_pre_hook(before(stage), with_kwargs=True).remove)
        yield


@contextmanager
def stream_after(block: Any, see: Callable[[Any], None]) -> Iterator[None]:
    handle = block.register_forward_hook(lambda _, args, output: see(modules.returned(output)))
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def mlps(found: Sequence[Any], see: Callable[[int, Any], None]) -> Iterator[None]:
    """Call `see` with a layer and what its MLP adds to the stream, (batch, n, d) or (batch x n, d)."""

    def after(layer: int) -> Any:
        return lambda _, args, output: see(layer, modules.returned(output))

    with ExitStack() as hooks:
        for layer, mlp in enumerate(found):
            hooks.callback(mlp.register_forward_hook(after(layer)).remove)
        yield


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
    """Call `see` with a layer and its attention or its scores, (batch, heads, n, n); gives what is to end a batch.

    Only layers in `part` are seen.

    What ends a batch raises CannotRunError where the attention of some layer wasn't seen.
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

    with ExitStack() as hooks:
        for layer in part:
            for module in blocks[layer].modules():
                if "Attention" in type(module).__name__:
                    hooks.callback(module.register_forward_hook(after(layer)).remove)
        if scores:
            hooks.enter_context(softmax)
        yield end
