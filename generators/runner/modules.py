import inspect
from typing import Any

from generators.runner.errors import CannotRunError


def find_blocks(model: Any, n_layer: int) -> list[Any]:
    """Return the blocks of a model in order.

    Raises:
        CannotRunError: no list of modules has one for each layer.
    """
    import torch

    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == n_layer:
            return list(module)
    raise CannotRunError("The stream of this architecture can't be followed: it has no list of one block per layer.")


def find_array(model: Any, name: str) -> Any:
    """Return the parameter or buffer whose name is `name` but for prefixes.

    Raises:
        CannotRunError: none or several are.
    """
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


def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else kwargs["hidden_states"]


def with_given(args: tuple[Any, ...], kwargs: dict[str, Any], states: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return ((states, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": states})


def returned(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output


def with_returned(output: Any, states: Any) -> Any:
    return (states, *output[1:]) if isinstance(output, tuple) else states
