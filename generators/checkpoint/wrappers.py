"""Prefixes that wrappers of a model put before the names of its tensors (torch.compile, DataParallel, PEFT)."""

import re
from collections.abc import Collection
from dataclasses import replace

from generators.base import notices
from generators.base.errors import InputError
from generators.checkpoint.roles import Family
from generators.checkpoint.sources import Files

WRAPPERS = {
    "_orig_mod.": "torch.compile",
    "module.": "DataParallel",
    "base_model.model.": "PEFT",
    "model.": "a module that holds it",
}
WRAPPED = re.compile("|".join(re.escape(prefix) for prefix in WRAPPERS))
LORA = ".lora_A."


def unwrapped(family: Family, n_layer: int, files: Files) -> Family:
    """Return a family's table that also knows the prefix of a wrapper, where more of its tensors are found so.

    Raises InputError: matrices of LoRA lie beside the weights, which they would change.
    """
    names = set(files.names())
    place = f"The checkpoint {files.origin.place}"
    if any(LORA in name for name in names):
        raise InputError(
            f"{place} holds matrices of LoRA beside its weights. Merge them with peft (merge_and_unload, then "
            "save_pretrained), and name the folder that this writes."
        )
    found = {prefix: _found(family, prefix, n_layer, names) for prefix in ("", *_prefixes(names))}
    best = max(found, key=lambda prefix: len(found[prefix]))
    if not best or len(found[best]) <= len(found[""]) or found[best] & found[""]:
        return family
    by = " and ".join(dict.fromkeys(WRAPPERS[part] for part in WRAPPED.findall(best)))
    notices.say_once(f"{place}: names of tensors begin with {best!r}, as {by} writes them; it is left off.")
    return replace(family, prefixes=(*family.prefixes, *(best + prefix for prefix in family.prefixes)))


def _prefixes(names: Collection[str]) -> list[str]:
    stacks = set()
    for name in names:
        end = 0
        while (part := WRAPPED.match(name, end)) is not None:
            end = part.end()
            stacks.add(name[:end])
    return sorted(stacks, key=lambda stack: (len(stack), stack))


def _found(family: Family, prefix: str, n_layer: int, names: Collection[str]) -> set[str]:
    return {
        role
        for role, slot in family.roles(n_layer)
        if not slot.formula and any(prefix + name in names for name in family.spellings(slot.tensor))
    }
