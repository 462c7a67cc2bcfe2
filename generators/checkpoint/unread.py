"""What a file holds besides what the table of its own type reads: known to change nothing, said, or refused."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from generators.base.architecture import Architecture
from generators.base.errors import InputError
from generators.base.sentences import first
from generators.checkpoint import quantization
from generators.checkpoint.lookalikes import as_matrices, unknown_tensors
from generators.checkpoint.roles import Family

IN_BLOCK = re.compile(r"(.*?\.)(\d+)\.")
# What a decoder has for an encoder's output, of which no table speaks.
ACROSS = re.compile(r"encoder_attn|EncDecAttention|crossattention|cross_attn|relative_attention_bias|1\.layer_norm\.")
TASK = re.compile(r"(For[A-Z]\w*|(LMHead|WithLMHead|DoubleHeads|MT|Encoder|Decoder)?Model\w*)$")
BEFORE_BLOCKS = re.compile(r"emb|norm|scal")  # what else would change what blocks are given
NAMED = 2  # tensors in a sentence


def sentences(names: Collection[str], config: Mapping[str, Any], family: Family, a: Architecture) -> list[str]:
    """Return what is said of tensors that aren't read, and of a class that isn't the family's own.

    Raises InputError: the model is of another class, and its file holds what the family's blocks don't have.
    """
    blocks = _blocks(family)
    left = unknown_tensors(as_matrices(names, packed=bool(quantization.tool(config))), family, a)
    beyond = [name for name in left if _layer(name, blocks) >= a.n_layer]
    unknown = [name for name in left if name not in beyond and _is_of_this_model(name, family, blocks)]
    inside = [name for name in unknown if _layer(name, blocks) >= 0 or BEFORE_BLOCKS.search(name)]
    other = other_class(config, family)
    if other and inside:
        raise InputError(
            f"config.json names the class {other}, which is not transformers' own for {family.name!r}, and the file "
            f"holds {first(inside, NAMED)}, which that family does not have. Read as that, it would be another "
            "model. With a model_type of its own in config.json, its token embedding can be measured."
        )
    said = [f"config.json names the class {other}; it is read as {family.name!r}, all of whose tensors it has."]
    return [
        *(said if other else ()),
        *_counted(beyond, f"beyond the {a.n_layer} layers of config.json, so they are not measured"),
        *_counted(unknown, "not used by this architecture"),
    ]


def other_class(config: Mapping[str, Any], family: Family) -> str:
    """Return the class that config.json names, where it isn't called as the family is; else empty."""
    stem = class_stem(config)
    kinds = [plain_name(kind) for kind in (*family.model_types, family.name.split("--")[0])]
    fits = any(kind.startswith(stem) or stem.startswith(kind) for kind in kinds)
    return "" if not stem or fits else _first_class(config)[:60]


def class_stem(config: Mapping[str, Any]) -> str:
    """Return what the class that config.json names is called before its task, plainly; empty where none is named."""
    return plain_name(TASK.sub("", _first_class(config)))


def _first_class(config: Mapping[str, Any]) -> str:
    named = config.get("architectures")
    return named[0] if isinstance(named, list) and named and isinstance(named[0], str) else ""


def plain_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _blocks(family: Family) -> set[str]:
    slots = (slot.in_layer(0) for slot in family.block_slots.values())
    spelled = (name for slot in slots for name in family.spellings(slot.tensor))
    return {found[1] for name in spelled if (found := IN_BLOCK.match(name)) is not None}


def _layer(name: str, blocks: Collection[str]) -> int:
    found = IN_BLOCK.match(name)
    return int(found[2]) if found is not None and found[1] in blocks else -1


def _is_of_this_model(name: str, family: Family, blocks: Collection[str]) -> bool:
    """Return whether a tensor may be of the model that is read, and not of its other half or what it sees with."""
    if not family.stack and "token_embedding" in family.slots:
        return True
    return _layer(name, blocks) >= 0 and not ACROSS.search(name)


def _counted(names: Sequence[str], why: str) -> list[str]:
    if not names:
        return []
    tensors = "1 tensor in the file is" if len(names) == 1 else f"{len(names)} tensors in the file are"
    return [f"{tensors} {why}: {first(names, NAMED)}."]
