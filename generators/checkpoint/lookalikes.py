"""`--family` on a model of another type: read where the table certainly fits it, refused otherwise.

A type that has a table of its own is read by another only if both tables read it the same way. Of any other type, the
table must know every setting and every tensor, and find all that it expects in each block that is there.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isclose
from types import MappingProxyType
from typing import Any

from generators.base.architecture import Architecture
from generators.base.errors import InputError
from generators.checkpoint.families import families
from generators.checkpoint.reading import understood
from generators.checkpoint.roles import Family, Slot
from generators.checkpoint.sources import Files

# Tensors that no table names and that change nothing a table says: masks and angles, which the software computes,
# and what stands on top of the last layer.
COMPUTED = re.compile(
    r"(^|\.)(attn\.bias|attn\.masked_bias|attention\.bias|attention\.masked_bias|position_ids|token_type_ids|"
    r"inv_freq|original_inv_freq|cos_cached|sin_cached|num_batches_tracked)$"
)
ON_TOP = re.compile(
    r"^(lm_head|cls|pooler|[a-z_]+\.pooler|score|classifier|qa_outputs|generator_lm_head|generator_predictions|"
    r"discriminator_predictions|vocab_transform|vocab_layer_norm|vocab_projector|predictions|head|decoder|"
    r"final_logits_bias)\."
)
EXPERTS = re.compile(r"\.experts\.")
ROUTED = "blocks.*.mlp.in"

# Types without a table whose code differs from every table in a way that neither config.json nor a tensor shows.
IN_CODE: Mapping[str, str] = MappingProxyType({})


def check(files: Files, config: Mapping[str, Any], family: Family, architecture: Architecture) -> None:
    """Check that a table which isn't that of the file's own type reads it rightly.

    Args:
        family, architecture: as `understood` gives them for this config.

    Raises:
        InputError: it doesn't, or that can't be known.
    """
    kind = config.get("model_type")
    if kind in family.model_types:
        return
    own = [table for table in families() if kind in table.model_types]
    if own:
        if not any(_same(files, config, table, family, architecture) for table in own):
            raise InputError(
                f"The model is of type {kind!r}, which the atlas reads by a table of its own; the table of the family "
                f"{family.name!r} would read it another way. Leave out --family."
            )
        return
    if kind in IN_CODE:
        raise InputError(
            f"The table of the family {family.name!r} would read a model of type {kind!r} wrongly: {IN_CODE[kind]}."
        )
    if assumed := _assumed(config, family, architecture):
        raise InputError(
            f"The table of the family {family.name!r} {assumed}. Nothing in {files.origin.place} shows that models of "
            f"type {kind!r} do so, too: the model is not read."
        )
    understood(config, _named(family.name), strictly=True)
    _check_tensors(files, family, architecture)


def _named(name: str) -> Family:
    """Return the table of this name, as it is before a config alters it."""
    return next(table for table in families() if table.name == name)


def _same(files: Files, config: Mapping[str, Any], own: Family, family: Family, architecture: Architecture) -> bool:
    """Return whether a type's own table reads these files as another does."""
    try:
        known, wanted = understood(config, own)
    except InputError:
        return False
    return replace(wanted, family="") == replace(architecture, family="") and dict(
        _roles(files, known, wanted)
    ) == dict(_roles(files, family, architecture))


def _assumed(config: Mapping[str, Any], family: Family, a: Architecture) -> str:
    """Return what a table says of a model that neither its config nor its tensors show; empty without any such thing."""
    slots = dict(family.roles(a.n_layer)).values()
    if any(slot.plus for slot in slots):
        return "adds 1 to the gains of norms"
    if any(slot.formula for slot in slots):
        return "computes positions by a formula"
    if a.slopes and not config.get("alibi"):
        return "lowers scores with distance (ALiBi)"
    if any(turns is not None and turns.adjacent for turns in a.rotary):
        return "rotates neighboring channels together"
    if any(turns is None for turns in a.rotary):
        return "rotates in some layers only"
    if isclose(a.embedding_scale, a.d_model**0.5) and not config.get("scale_embedding"):
        return "multiplies embeddings by the square root of their width"
    return "doesn't scale attention scores" if a.score_scale == 1 else ""


def _roles(files: Files, family: Family, architecture: Architecture) -> Iterator[tuple[str, Slot | None]]:
    """Yield every role with its slot, as its tensor is called in these files; None where that isn't there."""
    names = set(files.names())
    for role, slot in family.roles(architecture.n_layer):
        name = next((name for name in family.spellings(slot.tensor) if name in names), None)
        yield role, slot if slot.formula else None if name is None else replace(slot, tensor=name)


def _check_tensors(files: Files, family: Family, architecture: Architecture) -> None:
    """Check that the table knows every tensor, and that no block which is there lacks what the table expects.

    Raises:
        InputError: it doesn't, or one does.
    """
    slots = dict(_roles(files, family, architecture))
    known = {slot.tensor for slot in slots.values() if slot is not None}
    unknown = [name for name in files.names() if name not in known and not _changes_nothing(name, family)]
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise InputError(
            f"{files.origin.place} has {unknown[0]}{more}, which the table of the family {family.name!r} does not "
            "know: the model isn't one of that family, so it is not read."
        )
    there = {_block(role) for role, slot in slots.items() if slot is not None and not slot.formula}
    blocks = there - {""}
    lacking = [
        role
        for role, slot in slots.items()
        if slot is None and not role.startswith("unembedding") and blocks and _block(role) in {*blocks, ""}
    ]
    if lacking:
        slot = dict(family.roles(architecture.n_layer))[lacking[0]]
        raise InputError(
            f"{files.origin.place} lacks {slot.tensor} ({lacking[0]}), which every model of the family "
            f"{family.name!r} has: the model isn't one of that family, so it is not read."
        )


def _changes_nothing(name: str, family: Family) -> bool:
    routed = ROUTED in family.without and EXPERTS.search(name)
    return bool(COMPUTED.search(name) or ON_TOP.search(name) or routed)


def _block(role: str) -> str:
    """Return which block a role is in, empty outside of all."""
    return role.split(".")[1] if role.startswith("blocks.") else ""
