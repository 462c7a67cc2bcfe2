"""Roles: what a tensor does, where a family stores it, and what must be done to it before it can be used.

A *role* is what a tensor does (`blocks.3.attn.q`), not what a checkpoint calls it. Weights that read from the
residual stream and weights that write to it are both handed out as (d, m), stream side first; a table says with
`transposed` where the file stores the other way round. Norms are named by function: `blocks.{i}.ln1.gain`
belongs to the norm whose output attention i reads, `blocks.{i}.ln2.gain` to the one whose output MLP i reads.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from jaxtyping import Float
from numpy import ndarray as Array

from generators.base.architecture import Norm, Positions
from generators.checkpoint.config import ModelConfig

EMPTY: Mapping[str, Any] = MappingProxyType({})
Fields = Mapping[str, Any]  # fields of Architecture
Sizes = Mapping[str, int]  # sizes of the axes named by `Architecture.sizes`

NORM_READ_BY = {"attn.q": "ln1", "attn.k": "ln1", "attn.v": "ln1", "mlp.in": "ln2", "mlp.gate": "ln2"}


@dataclass(frozen=True)
class FusedPart:
    """One of several matrices that are fused along their output channels.

    `sizes` names the widths of all of them by axis, in the order of the file (`a b b`); `index` is ours. The
    sequence is repeated `groups` times, each time with an equal share of every part: once, once per head ("h")
    or group of shared keys ("g"), once per channel ("f"), or once per machine that trained it.
    """

    index: int
    sizes: str
    groups: str | int = 1

    def of(self, fused: Float[Array, "*rows all"], sizes: Sizes) -> Float[Array, "*rows part"]:
        widths = self.widths(fused.shape[-1], sizes)
        groups = self._count(widths, sizes)
        shares = [width // groups for width in widths]
        start = sum(shares[: self.index])
        grouped = fused.reshape(*fused.shape[:-1], groups, sum(shares))
        return grouped[..., start : start + shares[self.index]].reshape(*fused.shape[:-1], widths[self.index])

    def widths(self, total: int, sizes: Sizes) -> list[int]:
        """Return the width of every part; parts whose axis the architecture doesn't fix share `total` equally."""
        letters = self.sizes.split()
        return [sizes.get(letter, total // len(letters)) for letter in letters]

    def total(self, sizes: Sizes) -> int | None:
        """Return the width of the fused tensor, None where the architecture doesn't fix it."""
        letters = self.sizes.split()
        return sum(sizes[letter] for letter in letters) if all(letter in sizes for letter in letters) else None

    def fits(self, width: int, sizes: Sizes) -> bool:
        widths = self.widths(width, sizes)
        groups = self._count(widths, sizes)
        return sum(widths) == width and groups > 0 and all(share % groups == 0 for share in widths)

    def _count(self, widths: list[int], sizes: Sizes) -> int:
        if isinstance(self.groups, int):
            return self.groups
        return widths[self.index] if self.groups == "f" else sizes[self.groups]


@dataclass(frozen=True)
class Slot:
    """Where a role lives: a tensor name with {i} (this layer) or {j} (the layer before), and its layout.

    `shape` names the axes of what is handed out: n positions, V tokens, d stream width, e embedding width, a
    attention width, b attention width of keys and values, c width of a head, h heads, f MLP width, s any length.

    Args:
        transposed: the file stores it the other way round.
        part: it is fused with others.
        skip: rows at the start that are no position (padding, class token).
        plus: added to what is stored: 1 where the model multiplies by 1 + g.
        when: the switch of config.json that must be on for the model to have it, or off (`!no_bias`).
        flat: axes of length 1 in the file that are left out.
        through: what the model uses is this tensor times that one, which takes its rows into the stream.
        formula: it is in no file; the rule (of `positions.FORMULAS`) by which the model's software computes it.
    """

    tensor: str
    shape: str
    transposed: bool = False
    part: FusedPart | None = None
    skip: int = 0
    plus: float = 0.0
    when: str = ""
    flat: bool = False
    formula: str = ""
    through: "Slot | None" = None

    def effective(self, stored: Float[Array, "..."], sizes: Sizes) -> Float[Array, "..."]:
        """Return what the model uses, stream side first, of a tensor as stored (and of the right shape)."""
        tensor = stored.squeeze() if self.flat else stored
        tensor = tensor.T if self.transposed else tensor
        if self.part is not None:
            tensor = self.part.of(tensor, sizes)
        if self.skip:
            tensor = tensor[self.skip :]
        return tensor + tensor.dtype.type(self.plus) if self.plus else tensor

    def asked(self, sizes: Sizes) -> list[int | None]:
        """Return the shape that the stored tensor must have, stream side first; None where any length will do."""
        wanted = [sizes.get(axis) for axis in self.shape.split()]
        if self.part is not None:
            wanted[-1] = self.part.total(sizes)
        if self.skip and wanted[0] is not None:
            wanted[0] += self.skip
        return wanted

    def in_layer(self, layer: int) -> "Slot":
        return replace(self, tensor=self.tensor.format(i=layer, j=layer - 1))


Slots = Mapping[str, Slot]


@dataclass(frozen=True)
class Family:
    """How one family of checkpoints is configured and what it calls its tensors.

    Args:
        config: field of `Architecture` -> dotted key of config.json.
        slots: roles outside the blocks; `block_slots` those inside block i, without their `blocks.{i}.`;
            `first_block_slots` where the first block differs (None: it has no such thing), `second_block_slots`
            where the second does.
        at: where in config.json the settings are (`text_config`); empty at the top.
        model_types: what config.json says; if empty, what the name says.
        defaults: what the family's own software takes where config.json is silent.
        second_names: key of config.json -> what older files call it.
        aliases: endings of tensor names, and what older files write instead.
        without: role -> why there is none.
        only: key of config.json -> what it may say; a model of which it says anything else is refused.
        ignores: switches that change nothing a table describes, or that the family's own software never reads.
        variant: the table for one config, where its switches change the layout; may refuse it.
        extra: further fields of `Architecture` from the settings and those already read.
        bare_norms: its norms have neither gains nor biases.
    """

    name: str
    prefixes: tuple[str, ...]
    config: Mapping[str, str]
    slots: Slots
    block_slots: Slots
    model_types: tuple[str, ...] = ()
    first_block_slots: Mapping[str, Slot | None] = field(default_factory=lambda: EMPTY)
    second_block_slots: Slots = field(default_factory=lambda: EMPTY)
    causal: bool = True
    post_norm: bool = False
    tied: bool = True  # default, unless config.json says otherwise
    positions: Positions = "learned"
    norm: Norm = "layer"
    at: str = ""
    defaults: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    second_names: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    aliases: tuple[tuple[str, str], ...] = ()
    without: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=lambda: EMPTY)
    ignores: tuple[str, ...] = ()
    variant: Callable[["Family", ModelConfig], "Family"] | None = None
    extra: Callable[[ModelConfig, Fields], Fields] | None = None
    bare_norms: bool = False

    def __post_init__(self) -> None:
        if not self.model_types:
            object.__setattr__(self, "model_types", (self.name.partition("--")[0],))

    @property
    def stack(self) -> str:
        """Return which half of a pair it is (`encoder`), empty where a checkpoint is one model."""
        return self.name.partition("--")[2]

    def with_slots(self, change: Callable[[Slot], Slot], keep: Callable[[Slot], bool] = lambda _: True) -> "Family":
        """Return the same family with its slots changed, those left out that are not to be kept."""

        def changed(slots: Mapping[str, Any]) -> dict[str, Any]:
            return {role: slot and change(slot) for role, slot in slots.items() if slot is None or keep(slot)}

        return replace(
            self,
            slots=changed(self.slots),
            block_slots=changed(self.block_slots),
            first_block_slots=changed(self.first_block_slots),
        )

    def called(self, tensor: str) -> str:
        return " or ".join([tensor, *(old for new, old in self.aliases if tensor == new)])

    def spellings(self, tensor: str) -> Iterator[str]:
        old = [tensor.removesuffix(new) + old for new, old in self.aliases if tensor.endswith(new)]
        for name in (tensor, *old):
            for prefix in self.prefixes:
                yield prefix + name

    def found(self, tensor: str, names: Collection[str]) -> str | None:
        return next(iter(self.all_found(tensor, names)), None)

    def all_found(self, tensor: str, names: Collection[str]) -> list[str]:
        """Return all that a tensor is called among the names in a file: more than one where it is there twice."""
        return list(dict.fromkeys(name for name in self.spellings(tensor) if name in names))

    def in_file(self, names: Collection[str], n_layer: int) -> Iterator[tuple[str, Slot | None]]:
        """Yield each role with its slot by the name that a file has for its tensor, None where it has none."""
        for role, slot in self.roles(n_layer):
            name = self.found(slot.tensor, names)
            yield role, slot if slot.formula else None if name is None else replace(slot, tensor=name)

    def roles(self, n_layer: int) -> Iterator[tuple[str, Slot]]:
        yield from self.slots.items()
        for i in range(n_layer):
            for role, slot in self._in_block(str(i)).items():
                yield f"blocks.{i}.{role}", slot.in_layer(i)

    def _in_block(self, layer: str) -> Slots:
        differing = {"0": self.first_block_slots, "1": self.second_block_slots}.get(layer, EMPTY)
        return {role: slot for role, slot in {**self.block_slots, **differing}.items() if slot is not None}

    def expects(self, role: str) -> list[str]:
        """Return what the family has in front of and next to a role, without which it can't be computed with.

        That is the norm whose output a matrix reads, the bias of what it gives, and the norm right after that.
        Matrices that write to the stream expect nothing: their biases change nothing that is read from them.
        """
        if role == "unembedding":
            return [each for each in ("final_norm.gain", "final_norm.bias", "unembedding.bias") if each in self.slots]
        *_, layer, inner = ("", *role.split(".", 2))
        if inner not in NORM_READ_BY:
            return []
        read = NORM_READ_BY[inner]
        expected = (f"{read}.gain", f"{read}.bias", f"{inner}.bias", f"{inner}_norm.gain")
        return [f"blocks.{layer}.{each}" for each in expected if each in self._in_block(layer)]


def like(base: Family, name: str, **changed: Any) -> Family:
    """Return a family built like another: mappings are merged (None takes a role away), all else is replaced.

    Its type of model is what its name says, unless `model_types` names others.
    """
    for key in ("config", "slots", "block_slots", "defaults", "without", "first_block_slots", "only"):
        if key in changed:
            merged = {**getattr(base, key), **changed[key]}
            keep_none = key in ("defaults", "first_block_slots")
            changed[key] = merged if keep_none else {k: v for k, v in merged.items() if v is not None}
    return replace(base, **{"name": name, "model_types": (), **changed})


def changed(base: Family, **changes: Any) -> Family:
    return like(base, base.name, model_types=base.model_types, **changes)


def resolved(family: Family, settings: ModelConfig) -> Family:
    """Return the table for one config: its variant, with the roles that its switches leave out left out."""
    for key, known in family.only.items():
        settings.must_be(key, *known)
    chosen = family if family.variant is None else family.variant(family, settings)
    return chosen.with_slots(lambda slot: slot, lambda slot: _is_on(slot, settings))


def _is_on(slot: Slot, settings: ModelConfig) -> bool:
    if not slot.when:
        return True
    return settings.flag(slot.when.removeprefix("!")) is not slot.when.startswith("!")


# Building blocks of tables

SIZES = {  # names in most configs
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "d_model": "hidden_size",
    "n_ctx": "max_position_embeddings",
    "vocab_size": "vocab_size",
}


def norm(
    role: str, tensor: str, bias: bool = True, plus: float = 0.0, when: str = "", axis: str = "d"
) -> dict[str, Slot]:
    gain, shift = Slot(f"{tensor}.weight", axis, plus=plus), Slot(f"{tensor}.bias", axis, when=when)
    return {f"{role}.gain": gain, **({f"{role}.bias": shift} if bias else {})}


def no_norm(role: str) -> dict[str, None]:
    return dict.fromkeys((f"{role}.gain", f"{role}.bias"))


AXES = {"attn.q": "a", "attn.k": "b", "attn.v": "b", "attn.o": "a", "mlp.in": "f", "mlp.gate": "f", "mlp.out": "f"}
WRITING = ("attn.o", "mlp.out")


def linear(
    role: str,
    tensor: str,
    bias: bool | str = True,
    stored: Literal["out in", "in out"] = "out in",
    axis: str = "",
    part: FusedPart | None = None,
) -> dict[str, Slot]:
    """Return the roles of one matrix of a block and its bias; `bias` may be the switch that says if it has one.

    Args:
        stored: torch's Linear stores (out, in), its Conv1D (in, out).
        axis: the one that isn't the stream's, where it isn't that of the role.
    """
    axis, writes, when = axis or AXES[role], role in WRITING, bias if isinstance(bias, str) else ""
    weight = Slot(f"{tensor}.weight", f"d {axis}", transposed=(stored == "out in") is not writes, part=part)
    shift = Slot(f"{tensor}.bias", "d" if writes else axis, part=part, when=when)
    return {role: weight, f"{role}.bias": shift} if bias else {role: weight}


QKV = {f"attn.{name}": f"{name}_proj" for name in "qkv"}  # what most software calls these matrices
QKVO = {**QKV, "attn.o": "out_proj"}


def linears(place: str, names: Mapping[str, str], **how: Any) -> dict[str, Slot]:
    return {key: slot for role, name in names.items() for key, slot in linear(role, f"{place}.{name}", **how).items()}


def fused(
    tensor: str,
    parts: str,
    bias: bool | str = True,
    stored: Literal["out in", "in out"] = "out in",
    order: str = "qkv",
    groups: str | int = 1,
) -> dict[str, Slot]:
    """Return the roles of queries, keys and values that one matrix holds; `parts` are their widths in its order."""
    slots: dict[str, Slot] = {}
    for index, name in enumerate(order):
        axis, part = parts.split()[index], FusedPart(index, parts, groups)
        slots |= linear(f"attn.{name}", tensor, bias, stored, axis, part)
    return slots


def part_of(role: str, tensor: str, parts: str, index: int, bias: bool | str = False) -> dict[str, Slot]:
    return linear(role, tensor, bias, part=FusedPart(index, parts))
