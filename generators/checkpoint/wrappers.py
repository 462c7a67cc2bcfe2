"""Prefixes that wrappers of a model put before the names of its tensors (DataParallel, PEFT, TRL)."""

import re
from collections.abc import Collection
from dataclasses import replace

from generators.base import notices
from generators.checkpoint.roles import Family
from generators.checkpoint.sources import Files

WRAPPERS = {
    "module.": "DataParallel",
    "base_model.model.": "PEFT",
    "policy.": "TRL",
    "pretrained_model.": "TRL",
    "model.": "a module that holds it",
    "net.": "a module that holds it",
    "network.": "a module that holds it",
    "backbone.": "a module that holds it",
    "student.": "a training script",
    "actor.": "a training script",
}
WRAPPED = re.compile("|".join(re.escape(prefix) for prefix in WRAPPERS))


def unwrapped(family: Family, n_layer: int, files: Files) -> Family:
    """Return a family's table that also knows the prefix of a wrapper, where more of its tensors are found so."""
    names = set(files.names())
    found = {prefix: _found(_prefixed(family, prefix), n_layer, names) for prefix in ("", *_prefixes(names))}
    best, bare = max(found, key=lambda prefix: len(found[prefix])), found[""]
    differ = any(role in bare and bare[role] != name for role, name in found[best].items())
    if not best or len(found[best]) <= len(bare) or differ:
        return family
    by = " and ".join(dict.fromkeys(WRAPPERS[part] for part in WRAPPED.findall(best)))
    place = f"The checkpoint {files.origin.place}"
    notices.say_once(f"{place}: names of tensors begin with {best!r}, as {by} writes them; it is left off.")
    return replace(family, prefixes=(*family.prefixes, *_prefixed(family, best).prefixes))


def _prefixes(names: Collection[str]) -> list[str]:
    stacks = set()
    for name in names:
        end = 0
        while (part := WRAPPED.match(name, end)) is not None:
            end = part.end()
            stacks.add(name[:end])
    return sorted(stacks, key=lambda stack: (len(stack), stack))


def _prefixed(family: Family, by: str) -> Family:
    return replace(family, prefixes=tuple(by + prefix for prefix in family.prefixes))


def _found(family: Family, n_layer: int, names: Collection[str]) -> dict[str, str]:
    return {role: slot.tensor for role, slot in family.in_file(names, n_layer) if slot and not slot.formula}
