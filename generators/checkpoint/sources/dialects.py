"""How other software than transformers names and lays out the weights of an architecture that a table knows."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy import ndarray as Array

from generators.base import notices
from generators.checkpoint.roles import Family, FusedPart, Slot

# Modules around a module, wherever one stands: no model calls a part of its own so.
AROUND = {
    "_orig_mod": "torch.compile",
    "_checkpoint_wrapped_module": "activation checkpointing",
    "_fsdp_wrapped_module": "FSDP",
    "_fpw_module": "FSDP",
    "_forward_module": "Lightning",
    "_module": "Opacus",
}
SEGMENT = re.compile(rf"(?<![^.])({'|'.join(AROUND)})\.")

Arrangement = Literal["transposed", "heads first", "flat heads", "neighbors turned"]


@dataclass(frozen=True)
class Layout:
    """How a stored tensor becomes what a family's table expects.

    transposed: (in, out) where the table has (out, in).
    heads first: (h, d, c) becomes (d, h c).
    flat heads: (h, c, ...) becomes (h c, ...).
    neighbors turned: in each of `heads` heads, pairs of neighboring output channels become channels c and c + half.
    """

    how: Arrangement
    heads: int = 1

    def of(self, stored: Array) -> Array:
        """Return a stored tensor as the table expects it. Raises ValueError: it has another shape."""
        if self.how == "transposed":
            return stored.T
        if self.how == "heads first":
            h, d, c = stored.shape
            return stored.transpose(1, 0, 2).reshape(d, h * c)
        if self.how == "flat heads":
            h, c, *rest = stored.shape
            return stored.reshape(h * c, *rest)
        paired = stored.reshape(self.heads, -1, 2, *stored.shape[1:])
        return paired.swapaxes(1, 2).reshape(stored.shape)

    def shape_of(self, stored: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of what `of` gives for a tensor of that shape. Raises ValueError: as it does."""
        return self.of(np.broadcast_to(np.float32(0), stored)).shape  # a view of one number: no memory is taken


def neighbors_turned(config: Mapping[str, Any], queries: str, keys: str) -> tuple[tuple[str, Layout], ...]:
    """Return the layouts of queries and keys, by patterns of their names, where neighboring channels are turned.

    None where `config`, as config.json would say it, doesn't give the heads: the table asks for them, and says so.
    """
    heads = config.get("num_attention_heads")
    shared = config.get("num_key_value_heads") or heads
    if not isinstance(heads, int) or not isinstance(shared, int):
        return ()
    return (queries, Layout("neighbors turned", heads)), (keys, Layout("neighbors turned", shared))


@dataclass(frozen=True)
class Dialect:
    """What else must be known to read a file by a family's table.

    Args:
        software: what wrote the file, as a sentence names it; empty for transformers.
        config: what config.json would say; None where only config.json says it.
        modules: what the table calls a module, with {i} for the layer -> what the file calls it.
        tensors: what the table calls a tensor -> what the file calls it, where modules don't say it.
        parts: what the table calls a tensor -> which part it is of a tensor of the file.
        layouts: patterns of names in the file, and how such a tensor is stored.
        adds_one: gains are stored with the 1 that transformers adds to them (Gemma).
        pieces: what transformers calls the equal parts of a tensor of the file, where modules don't say it.
        names_all: its table names every tensor of such a file.
        note: what a model's page says of its numbers.
    """

    software: str = ""
    config: Mapping[str, Any] | None = None
    modules: Mapping[str, str] = field(default_factory=dict)
    tensors: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, FusedPart] = field(default_factory=dict)
    layouts: tuple[tuple[str, Layout], ...] = ()
    adds_one: bool = False
    pieces: Callable[[str], tuple[str, ...]] | None = None
    names_all: bool = False
    note: str | None = None

    def layout(self, name: str) -> Layout | None:
        return next((layout for pattern, layout in self.layouts if re.search(pattern, name)), None)

    def in_transformers(self, name: str) -> tuple[str, ...]:
        """Return what transformers calls a tensor of the file, or its equal parts; nothing if it has none such."""
        if self.pieces is not None:
            return self.pieces(name)
        module, dot, kind = name.rpartition(".")
        layer = re.search(r"\.(\d+)\.", name)
        here = module if layer is None else module.replace(layer[0], ".{i}.", 1)
        there = next((there for there, ours in self.modules.items() if ours == here), None)
        return () if there is None else (f"{there.format(i=layer and layer[1])}{dot}{kind}",)

    def spoken(self, family: Family) -> Family:
        if not self.modules and not self.tensors:
            return family
        return replace(family.with_slots(self._renamed), prefixes=("",))

    def _renamed(self, slot: Slot) -> Slot:
        if slot.tensor in self.tensors:
            return replace(slot, tensor=self.tensors[slot.tensor], part=self.parts.get(slot.tensor))
        module, dot, kind = slot.tensor.rpartition(".")
        plus = 0.0 if self.adds_one else slot.plus
        return replace(slot, tensor=f"{self.modules.get(module, module)}{dot}{kind}", plus=plus)


AS_TRANSFORMERS = Dialect()


def without_wrappers(stored: Sequence[str], place: str) -> Mapping[str, str]:
    """Return the name of each tensor without wrappers -> its stored name.

    Names that would no longer differ from one another are left as they are.
    """
    plain = {name: SEGMENT.sub("", name) for name in stored}
    count = Counter(plain.values())
    found = {by if count[by] == 1 else name: name for name, by in plain.items()}
    wrapped = {word for name, stored in found.items() if name != stored for word in SEGMENT.findall(stored)}
    if wrapped:
        words, by = (" and ".join(sorted(each)) for each in (wrapped, {AROUND[word] for word in wrapped}))
        notices.say_once(f"{place}: names of tensors hold {words}, as {by} writes them; that is left off.")
    return found
