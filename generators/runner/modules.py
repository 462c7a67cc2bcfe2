import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from generators.runner.errors import CannotRunError


@contextmanager
def hooked(handles: Iterable[Any]) -> Iterator[None]:
    """Run with hooks, given by a generator that registers each; afterwards they are removed."""
    with ExitStack() as hooks:
        for handle in handles:
            hooks.callback(handle.remove)
        yield


@contextmanager
def function_replaced(model: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """Run with a function of a model's code replaced by what `make` makes of it. Raises CannotRunError: none such."""
    code = sys.modules[type(model).__module__]
    function = getattr(code, name, None)
    if function is None:
        raise CannotRunError(f"This architecture can't be followed: its code has no {name}.")
    setattr(code, name, make(function))
    try:
        yield
    finally:
        setattr(code, name, function)


def find_blocks(model: Any, n_layer: int) -> list[Any]:
    """Return the blocks of a model in order. Raises CannotRunError: no list of modules has one for each layer."""
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == n_layer:
            return list(module)
    raise CannotRunError("The stream of this architecture can't be followed: it has no list of one block per layer.")


def find_array(model: Any, name: str) -> Any:
    """Return the parameter or buffer of a name, but for prefixes. Raises CannotRunError: none or several have it."""
    arrays = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    parts = name.split(".")
    for begin in range(len(parts) - 1):
        ending = ".".join(parts[begin:])
        found = [array for key, array in arrays.items() if key == ending or key.endswith(f".{ending}")]
        if len(found) == 1:
            return found[0]
    raise CannotRunError(f"Positions can't be replaced: the running model has no tensor {name}.")


def find_rotations(model: Any) -> list[Any]:
    return [
        module
        for module in model.modules()
        if type(module).__name__.endswith("RotaryEmbedding")
        and "position_ids" in inspect.signature(module.forward).parameters
    ]


def find_joining(blocks: Sequence[Any], width: int, run: Callable[[], Any]) -> list[Any]:
    """Return the module of every block that joins its heads: the last one with a matrix that its attention calls.

    `width` is that of all heads together; `run` runs the model once. Raises CannotRunError: a block has none.
    """
    called: list[Any] = [None] * len(blocks)

    def note(layer: int) -> Any:
        def hook(module: Any, args: tuple[Any, ...]) -> None:
            if args and torch.is_tensor(args[0]) and args[0].shape[-1] == width:
                called[layer] = module

        return hook

    def noted() -> Iterator[Any]:
        for layer, block in enumerate(blocks):
            attention = next((part for part in block.modules() if "Attention" in type(part).__name__), None)
            for module in [] if attention is None else attention.modules():
                if getattr(module, "weight", None) is not None and module.weight.ndim == 2:
                    yield module.register_forward_pre_hook(note(layer))

    with hooked(noted()):
        run()
    if None in called:
        raise CannotRunError("Heads can't be silenced: where they are joined can't be found in this architecture.")
    return called


def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else kwargs["hidden_states"]


def with_given(args: tuple[Any, ...], kwargs: dict[str, Any], states: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return ((states, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": states})


def returned(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output


def with_returned(output: Any, states: Any) -> Any:
    return (states, *output[1:]) if isinstance(output, tuple) else states
