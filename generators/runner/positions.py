import math
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray as Array

from generators.base.runs import PositionKind, Rotations
from generators.runner import modules
from generators.runner.errors import CannotRunError

# Argument that gives blocks of an ALiBi model their bias; Falcon's rotate without it.
ALIBI_ARGUMENTS = {"bloom": "alibi", "mpt": "position_bias", "falcon": "alibi"}
MASK = "attention_mask"
ROTATE = "apply_rotary_pos_emb"  # what transformers calls the function that turns queries and keys
OTHER_LAYERS = {"full_attention": "sliding_attention", "sliding_attention": "full_attention"}


@dataclass(frozen=True)
class Positions:
    """How a running model knows positions, and how they are replaced.

    `table` is the tensor of the position embedding whose row `first_row` belongs to position 0.
    """

    kind: PositionKind
    model: Any
    blocks: tuple[Any, ...] = ()
    table: Any = None
    first_row: int = 0

    @contextmanager
    def rows(self, rows: Float[Array, "m d"]) -> Iterator[None]:
        """Run with these rows as the embeddings of positions 0 to m - 1; afterwards the table is what it was."""
        if self.kind != "table":
            raise CannotRunError("There are no position rows to replace: this model's positions are no table.")
        part = self.table[self.first_row : self.first_row + len(rows)]
        if tuple(part.shape) != rows.shape:
            raise CannotRunError(
                f"Position rows of shape {rows.shape} don't fit a table of {tuple(self.table.shape)}."
            )
        with torch.no_grad():
            before = part.clone()
            try:
                part.copy_(torch.from_numpy(np.array(rows, np.float32)))
                yield
            finally:
                part.copy_(before)

    @contextmanager
    def ids(self, ids: Float[Array, " n"]) -> Iterator[None]:
        """Run with token t at position `ids[t]`, which may be a fraction; equal ids remove all positions.

        Raises CannotRunError: the model has a table, whose rows only whole ids could name.
        """
        if self.kind == "table":
            raise CannotRunError("Position ids can't be replaced: this model looks its positions up in a table.")
        places = torch.from_numpy(np.array(ids, np.float32))
        if self.kind == "rotary":
            found, replace = modules.find_rotations(self.model), _with_ids(places)
        else:
            config, found = self.model.config, list(self.blocks)
            argument = ALIBI_ARGUMENTS[config.model_type]
            replace = _in_mask(config, places) if _in_masks(config) else _with_distances(argument, places)
        # prepended: before `add_slopes_once`, which removes the source of the slopes
        hooks = (part.register_forward_pre_hook(replace, with_kwargs=True, prepend=True) for part in found)
        with modules.hooked(hooks):
            yield

    @contextmanager
    def rotations(self, how: Rotations) -> Iterator[None]:
        """Run with other rotations; pairs count as the model's frequencies do, whichever channels it pairs."""
        found = modules.find_rotations(self.model) if self.kind == "rotary" else []
        arrays = {(module, name): array for module in found for name, array in _frequencies(module)}
        if not arrays:
            raise CannotRunError("Rotations can't be changed: this model has none with frequencies.")
        before = {where: array.clone() for where, array in arrays.items()}
        after = {(module, name): _changed(before, module, name, how) for module, name in arrays}
        try:
            _copy(after, arrays)
            with nullcontext() if how.channels is None else _reordered(self.model.base_model, list(how.channels)):
                yield
        finally:
            _copy(before, arrays)


def _frequencies(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield the angles per position of a module that rotates, (pairs,): one set, or one for each type of layer.

    Copies that transformers restores them from are among them.
    """
    for name, array in {**vars(module), **dict(module.named_buffers(recurse=False))}.items():
        if name.endswith("inv_freq") and torch.is_tensor(array):
            yield name, array


def _changed(before: Mapping[tuple[Any, str], Any], module: Any, name: str, how: Rotations) -> Any:
    if how.exchanged:
        kind = next((kind for kind in OTHER_LAYERS if name.startswith(kind)), "")
        name = OTHER_LAYERS.get(kind, "") + name.removeprefix(kind)
        if not kind or (module, name) not in before:
            raise CannotRunError("Rotations can't be exchanged: this model's layers all turn alike.")
    values = before[module, name]
    pairs = torch.arange(len(values), device=values.device)
    values = values / how.theta ** (pairs / len(values))
    if how.pairs is not None:
        values[~torch.isin(pairs, torch.tensor(list(how.pairs), device=pairs.device))] = 0
    return values


def _copy(values: Mapping[tuple[Any, str], Any], arrays: Mapping[tuple[Any, str], Any]) -> None:
    with torch.no_grad():
        for where, array in arrays.items():
            array.copy_(values[where])


def _reordered(model: Any, channels: list[int]) -> AbstractContextManager[None]:
    """Give queries and keys to the model's rotation with the first channels of every head in another order.

    Scores are the same in any order but for the rotation.
    """

    def reordered(x: Any) -> Any:
        return torch.cat([x[..., channels], x[..., len(channels) :]], dim=-1)

    def other(rotate: Any) -> Any:
        return lambda q, k, *args, **kwargs: rotate(reordered(q), reordered(k), *args, **kwargs)

    return modules.function_replaced(model, ROTATE, other)


def find_positions(model: Any, blocks: list[Any], tensor: str | None, first_row: int) -> Positions | None:
    if tensor is not None:
        return Positions("table", model, table=modules.find_array(model, tensor), first_row=first_row)
    if model.config.model_type in ALIBI_ARGUMENTS and getattr(model.config, "alibi", True):
        return Positions("alibi", model, tuple(blocks))
    if modules.find_rotations(model):
        return Positions("rotary", model)
    return None


def add_slopes_once(model: Any, n_layer: int) -> None:
    """Have an ALiBi model whose masks hold its bias already add it once, as it does with fused kernels.

    transformers 5 puts Falcon's into the mask, and without fused kernels Falcon adds it to the scores once more.
    """
    if _in_masks(model.config):
        for block in modules.find_blocks(model, n_layer):
            block.register_forward_pre_hook(
                lambda _, args, kwargs: (args, {**kwargs, "alibi": 0 * kwargs["alibi"]}), with_kwargs=True
            )


def _in_masks(config: Any) -> bool:
    return config.model_type == "falcon" and bool(config.alibi)


def _in_mask(config: Any, places: Any) -> Any:
    """Return a hook that gives a block a mask that holds slope x position of the key, scaled as scores are."""
    scale = math.sqrt(config.hidden_size // config.num_attention_heads)

    def replace(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        mask, bias = kwargs[MASK], kwargs["alibi"]
        least = torch.finfo(mask.dtype).min
        distances = bias[..., 1:2] * places[: bias.shape[-1]].to(bias.device)
        return args, {**kwargs, MASK: torch.where(mask > least / 2, distances / scale, least)}

    return replace


def _with_ids(places: Any) -> Any:
    def like(before: Any) -> Any:
        return places[: before.shape[-1]].to(before.device).expand(before.shape)

    def replace(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if "position_ids" in kwargs:
            return args, {**kwargs, "position_ids": like(kwargs["position_ids"])}
        return (args[0], like(args[1]), *args[2:]), kwargs

    return replace


def _with_distances(argument: str, places: Any) -> Any:
    """Return a hook that gives a block a bias of slope x position of the key; softmax loses what a row shares."""

    def replace(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bias = kwargs[argument]
        n = modules.given(args, kwargs).shape[1]
        own = places[:n].to(bias.device)
        if argument == "alibi":  # slope x 0, slope x 1, ...
            slopes, distances = bias[..., 1:2], own
        else:  # ..., slope x -1, slope x 0
            slopes, distances = -bias[..., -2:-1], own - own[-1]
        return args, {**kwargs, argument: slopes * distances}

    return replace
