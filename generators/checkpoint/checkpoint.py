import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.base import notices
from generators.base.architecture import Architecture
from generators.base.errors import InputError
from generators.base.plain import unusual
from generators.base.progress import Report, silent
from generators.checkpoint import lookalikes, quantization, unread
from generators.checkpoint.families import UnknownFamilyError, choose_family
from generators.checkpoint.inference import infer_type
from generators.checkpoint.positions import FORMULAS
from generators.checkpoint.reading import understood
from generators.checkpoint.roles import Family, Slot
from generators.checkpoint.sources import FLOATING, Files, Header, Layout, Origin
from generators.checkpoint.sources.formats import DTYPES
from generators.checkpoint.untabled import only_tokens
from generators.checkpoint.wrappers import unwrapped

LARGEST = 1e18  # largest weight: sums of its squares over any matrix are still finite in float32
NUMBERS_AT_ONCE = 1 << 20  # numbers checked at once, to save memory


@dataclass(frozen=True)
class TensorRecord:
    name: str
    shape: tuple[int, ...]
    dtype: str
    sha256: str


class Checkpoint(Mapping[str, Array]):
    """The tensors of one model by role; a tensor is read from disk each time it is asked for.

    What is handed out is *effective*: as the model uses it, whatever the file's layout. A partial checkpoint is
    normal: iterating yields only the roles whose tensors are there.
    """

    def __init__(
        self,
        files: Files,
        family: Family,
        architecture: Architecture,
        *,
        quantised: str = "",
        note: str | None = None,
    ) -> None:
        self.note = note  # where the file contradicts config.json, or holds a rounded copy
        self.origin: Origin = files.origin
        self.family = family
        self.architecture = architecture
        self._files = files
        self._quantised = quantised
        self._names = set(files.names())
        self._sizes = architecture.sizes()
        self._digests: dict[str, TensorRecord] = {}
        self._last: tuple[str, Array] | None = None  # Q, K and V share one tensor: read it once
        self._slots = dict(self._present_slots())
        if all(slot.formula for slot in self._slots.values()):
            raise InputError(
                files.instead()
                or f"{self._where()} has no tensor of the family {family.name!r}; it begins with "
                f"{', '.join(sorted(self._names)[:3]) or 'none at all'}."
            )

    def __iter__(self) -> Iterator[str]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, role: object) -> bool:
        return role in self._slots

    def __getitem__(self, role: str) -> Float[Array, "..."]:
        """Return a role's tensor, stream side first, as float32 (float64 if stored so); it must not be written to.

        Raises KeyError: the checkpoint lacks it. InputError: the file is damaged, the shape is wrong, or the tensor
        holds NaN, infinity, or what no weight can be.
        """
        slot = self._slots[role]
        used = slot.effective(self._read(role, slot), self._sizes)
        if slot.through is not None:
            used = used @ slot.through.effective(self._read(role, slot.through), self._sizes)
            self._digests[_product(slot)] = self._record(slot)
        return np.ascontiguousarray(used)

    def record(self, role: str) -> TensorRecord:
        """Return name, shape, dtype and SHA-256 (of the bytes in the file) of the tensor behind a role."""
        slot = self._slots[role]
        for each in (slot, slot.through):
            if each is not None:
                self._read(role, each)
        return self._record(slot)

    def _record(self, slot: Slot) -> TensorRecord:
        """Return the record of a tensor that was read; of a product that of the first, with a digest of both."""
        first = self._digests[slot.tensor]
        if slot.through is None:
            return first
        both = f"{first.sha256} {self._digests[slot.through.tensor].sha256}"
        return replace(first, name=_product(slot), sha256=hashlib.sha256(both.encode()).hexdigest())

    def size(self, role: str) -> tuple[str, int]:
        """Return the tensor behind a role and how many numbers it holds, by the file's header: none is read."""
        slot = self._slots[role]
        if slot.formula:
            return slot.tensor, prod(self._sizes[axis] or 1 for axis in slot.shape.split())
        stored = self._files.header(slot.tensor).shape
        if slot.through is not None:  # both are in memory along with the product
            through = self._files.header(slot.through.tensor).shape
            return _product(slot), prod(stored) + prod(through) + stored[0] * self.architecture.d_model
        return slot.tensor, prod(stored)

    def let_go(self) -> None:
        """Drop the last tensor read, which is cached in memory."""
        self._last = None

    def changed_since(self, tensors: Mapping[str, str]) -> str | None:
        """Return the first tensor whose SHA-256, when last read, differs from the given one, or None."""
        read = {name: record.sha256 for name, record in self._digests.items()}
        return next((name for name, sha256 in tensors.items() if read.get(name, sha256) != sha256), None)

    def prefetch(self, roles: Iterable[str], report: Report = silent, *, whole: bool = False) -> None:
        """Get ready to read those of these roles that are there. `whole`: files are needed as they are, for a run."""
        self._files.prefetch(self._stored_names(roles), report, whole=whole)

    def to_come(self, roles: Iterable[str], *, whole: bool = False) -> int:
        return self._files.to_come(self._stored_names(roles), whole=whole)

    def _stored_names(self, roles: Iterable[str]) -> list[str]:
        slots = [self._slots[role] for role in roles if role in self._slots]
        through = [slot.through.tensor for slot in slots if slot.through is not None]
        return [slot.tensor for slot in slots if not slot.formula] + through

    def layout(self, role: str) -> dict[str, Any]:
        """Return how a role is read from its tensor, as plain data: results depend on it, and not on its name."""
        slot = self._slots[role]
        layout = unusual(slot)
        for names in (layout, layout.get("through", {})):
            names.pop("tensor", None)
        if (other := self._other_layout(slot)) is not None:
            layout["stored"] = unusual(other)
        return layout

    def content(self, role: str) -> str | list[int]:
        """Return what decides a role's numbers, apart from its layout: the SHA-256 of its tensor as stored.

        Of a table by formula its sizes do: the last digits of a formula depend on the processor.
        """
        slot = self._slots[role]
        if slot.formula:
            return [self._sizes[axis] for axis in slot.shape.split()]
        return self.record(role).sha256

    def lacking(self, role: str) -> str:
        """Return the missing tensor for a role of a partial checkpoint, by its name in the family."""
        slot = dict(self.family.roles(self.architecture.n_layer)).get(role)
        if slot is None:
            return role
        if slot.through is not None and self._found(slot) is not None:
            slot = slot.through  # this is the missing one
        quantised = self._quantised and slot.shape != "d"
        how = f" as numbers that can be read: it is quantized by {self._quantised}" if quantised else ""
        return f"{self.family.called(slot.tensor)} ({role}){how}"

    def missing_for(self, role: str) -> list[str]:
        """Return what of a role, the norm in front of it and its bias the family has and this checkpoint lacks."""
        return [needed for needed in (role, *self.family.expects(role)) if needed not in self._slots]

    def _present_slots(self) -> Iterator[tuple[str, Slot]]:
        for role, slot in self.family.roles(self.architecture.n_layer):
            if role == "unembedding" and self.architecture.tied:
                continue  # some files hold the tied matrix a second time
            if slot.formula:
                yield role, slot
                continue
            found = self._found(slot)
            through = None if slot.through is None else self._found(slot.through)
            if role == "token_embedding" and found is None:
                found = self._stored_as_output(slot)
            if found is not None and (through is None) == (slot.through is None):
                yield role, replace(found, through=through)

    def _stored_as_output(self, slot: Slot) -> Slot | None:
        output = self.family.slots.get("unembedding")
        if output is None or not self.architecture.tied or slot.through is not None:
            return None
        found = self._found(output)
        return found and replace(slot, tensor=found.tensor)

    def _found(self, slot: Slot) -> Slot | None:
        names = self.family.all_found(slot.tensor, self._names)
        for other in names[1:]:
            self._check_same(names[0], other)
        # of a quantised model, some tensors are stored as something else than floats
        if not names or (self._quantised and self._files.header(names[0]).dtype not in FLOATING):
            return None
        return replace(slot, tensor=names[0])

    def _check_same(self, name: str, other: str) -> None:
        files = self._files
        if files.header(name) != files.header(other) or files.digest(name) != files.digest(other):
            raise InputError(
                f"{self._where()} holds {name} and {other}, two names of one tensor, and they differ: which one the "
                "model uses can't be told."
            )

    def _read(self, role: str, slot: Slot) -> Array:
        """Return the tensor behind a slot as stored, widened to float32 (float64 stays)."""
        name = slot.tensor
        self._check_shape(role, slot)
        if self._last is not None and self._last[0] == name:
            return self._last[1]
        self._last = None
        tensor, self._digests[name] = self._widened(slot)
        place = _beyond(tensor)
        if place is not None:
            said = f"{tensor[place]:.3g}" if np.isfinite(tensor[place]) else "NaN or infinity"
            raise InputError(
                f"{name} in {self._where()} holds {said} at {[*place]}; no weight can be beyond {LARGEST:g}."
            )
        self._last = (name, tensor)
        return tensor

    def _widened(self, slot: Slot) -> tuple[Array, TensorRecord]:
        """Read a tensor a few rows at a time, so that it is never in memory twice."""
        header, parts = self._stored(slot)
        tensor = np.empty(header.shape, np.float64 if header.dtype == "F64" else np.float32)
        digest, n_read = hashlib.sha256(), 0
        for part in parts:
            digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
            numbers = part if slot.formula else self._files.numbers(slot.tensor, header, part)
            tensor.reshape(-1)[n_read : n_read + numbers.size] = numbers.reshape(-1)
            n_read += numbers.size
        record = TensorRecord(slot.tensor, header.shape, header.dtype, digest.hexdigest())
        layout = self._other_layout(slot)  # which fits: `_check_shape` came before
        return tensor if layout is None else layout.of(tensor), record

    def _other_layout(self, slot: Slot) -> Layout | None:
        return None if slot.formula else self._files.layout(slot.tensor)

    def _stored(self, slot: Slot) -> tuple[Header, Iterable[Array]]:
        if not slot.formula:
            return self._files.header(slot.tensor), self._files.parts(slot.tensor)
        n, d = (self._sizes[axis] for axis in slot.shape.split())
        tensor = FORMULAS[slot.formula](n, d)
        return Header(DTYPES[tensor.dtype.name], tensor.shape), [tensor]

    def _check_shape(self, role: str, slot: Slot) -> None:
        shape = self._shape_stored(slot)
        shape = tuple(n for n in shape if n != 1) if slot.flat else shape
        shape = shape[::-1] if slot.transposed else shape
        wanted = slot.asked(self._sizes)
        if not _fit(shape, wanted) or (slot.part is not None and not slot.part.fits(shape[-1], self._sizes)):
            turned = " The matrix is transposed, as nanoGPT stores it: save the model with transformers."
            turned = turned if _fit(shape[::-1], wanted) else ""
            raise InputError(
                f"{slot.tensor} in {self._where()}, the {role}, has the shape {_times(shape)} "
                f"{self._files.as_said('where config.json asks for')} {_times(wanted)}.{turned}"
            )

    def _shape_stored(self, slot: Slot) -> tuple[int, ...]:
        header, layout = self._stored(slot)[0], self._other_layout(slot)
        try:
            return header.shape if layout is None else layout.shape_of(header.shape)
        except ValueError:
            raise InputError(
                f"{slot.tensor} in {self._where()} has the shape {_times(header.shape)}, which its layout can't have."
            ) from None

    def _where(self) -> str:
        return f"the checkpoint {self.origin.place}"


def open_checkpoint(files: Files, family: str | None = None, *, compare: bool = True) -> Checkpoint:
    """Open a checkpoint: read its config and the names of its tensors, no weights yet.

    If no table knows the type of model, only its token embedding is read, where one can be found by its name.

    `compare`: read the output matrix of a model that is said to be tied, if the file holds one: it may be another.

    Raises InputError: no config, an unknown family, no weights, or a damaged file.
    """
    config = files.config()
    if family is None and not config.get("model_type"):
        config = {**config, "model_type": infer_type(files, config)}
    try:
        table = choose_family(config, family, files.stack)
    except UnknownFamilyError as unknown:
        found = only_tokens(files, config, unknown) if family is None and files.stack is None else None
        if found is None:
            raise
        return Checkpoint(files, *found)
    if files.folder is not None:
        files.weight_files()  # what lies there instead is said before what config.json lacks
    try:
        known, architecture = understood(config, table)
    except InputError as error:
        raise InputError(files.as_said(str(error))) from error
    known = unwrapped(files.dialect.spoken(known), architecture.n_layer, files)
    lookalikes.check(files, config, known, architecture)
    notes, unread_here = [files.dialect.note] if files.dialect.note else [], list[str]()
    if not files.dialect.software or files.dialect.names_all:
        unread_here = list(map(files.as_said, unread.sentences(files.names(), config, known, architecture)))
    compare = compare and architecture.tied and not files.dialect.software
    if compare and (own := _own_output(files, known)) is not None:
        architecture = replace(architecture, tied=False)
        notes.append(
            f"config.json says, or leaves unsaid, that this model's unembedding is its token embedding. {own} in its "
            "file is another matrix: it is the unembedding here, as in transformers 5."
        )
    tool = quantization.tool(config)
    if tool and (folded := quantization.folds_scales(config, files)):
        known = quantization.without_gains(known, folded)
    note = " ".join((*notes, *unread_here)) or None
    opened = Checkpoint(files, known, architecture, quantised=tool, note=note)
    for said in unread_here:
        notices.say_once(f"The checkpoint {files.origin.place}: {said}")
    return opened


def _own_output(files: Files, family: Family) -> str | None:
    """Return the name of an output matrix in the file that isn't the token embedding stored once more."""
    names, roles = set(files.names()), ("token_embedding", "unembedding")
    tokens, output = (family.found(slot.tensor, names) if (slot := family.slots.get(r)) else None for r in roles)
    if tokens is None or output is None or tokens == output:
        return None
    one, other = files.header(tokens), files.header(output)
    if one.dtype not in FLOATING or other.dtype not in FLOATING:
        return None
    widened = one.dtype != other.dtype
    same = one.shape == other.shape and files.digest(tokens, widened) == files.digest(output, widened)
    return None if same else output


def _product(slot: Slot) -> str:
    return slot.tensor if slot.through is None else f"{slot.tensor} x {slot.through.tensor}"


def _fit(shape: Sequence[int], wanted: Sequence[int | None]) -> bool:
    return len(shape) == len(wanted) and all(w in (None, s) for w, s in zip(wanted, shape, strict=True))


def _times(sizes: Sequence[int | None]) -> str:
    return " x ".join("any" if size is None else str(size) for size in sizes) or "of a single number"


def _beyond(tensor: Array) -> tuple[int, ...] | None:
    """Return the index of the first impossible weight, or None; large tensors are checked in parts."""
    flat = tensor.reshape(-1)
    for begin in range(0, flat.size, NUMBERS_AT_ONCE):
        part = flat[begin : begin + NUMBERS_AT_ONCE]
        if not (part.min() >= -LARGEST and part.max() <= LARGEST):  # NaN is neither
            at = np.unravel_index(begin + int(np.argmin(np.abs(part) <= LARGEST)), tensor.shape)
            return tuple(int(i) for i in at)
    return None
