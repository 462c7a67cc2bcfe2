"""One table per architecture family: role -> tensor. Adding a family is adding a file to this folder.

Every module here that holds `FAMILIES`, a tuple of tables, is found by listing the folder.
"""

import difflib
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from generators.base.errors import InputError
from generators.checkpoint.config import read_config
from generators.checkpoint.reading import read_architecture
from generators.checkpoint.roles import Family, Slot

__all__ = ["Family", "Slot", "UnknownFamilyError", "choose_family", "families", "read_architecture", "read_config"]


class UnknownFamilyError(InputError):
    """No table knows this type of model."""


FIRST_NAMED = ("gpt2", "openai-gpt", "bert", "llama")  # in sentences: those that most readers will know
NEAR = 3


@cache
def families() -> tuple[Family, ...]:
    """Return every family that the atlas knows, by the names of their files."""
    found: list[Family] = []
    for module in pkgutil.iter_modules(__path__):
        found += getattr(import_module(f"{__name__}.{module.name}"), "FAMILIES", ())
    return tuple(found)


def choose_family(config: Mapping[str, Any], family: str | None, stack: str | None = None) -> Family:
    """Return the family called `family`, or the one that config.json's `model_type` names.

    Args:
        stack: which half of a pair is meant (`encoder`, `decoder`, `text`, `vision`).

    Raises:
        InputError: no such family, or a pair of which no half was named; names those there are.
    """
    wanted = family or config.get("model_type")
    named = [known for known in families() if wanted == known.name]
    typed = [known for known in families() if isinstance(wanted, str) and wanted in known.model_types]
    fitting = named or typed
    if not fitting:
        raise UnknownFamilyError(_unknown(wanted))
    if stack is None and len(fitting) > 1:
        halves = " or ".join(f"--{known.stack}" for known in fitting)
        raise InputError(f"A model of type {wanted!r} is several models in one: name one by its ending, {halves}.")
    for known in fitting:
        if stack in (None, known.stack):
            return known
    raise InputError(f"A model of type {wanted!r} has no {stack} of its own.")


def _unknown(wanted: object) -> str:
    names = [known.name for known in families()]
    first = ", ".join(name for name in FIRST_NAMED if name in names)
    more = len(names) - len(FIRST_NAMED)
    known = f"{first} and {more} more" if more > 0 else first
    if wanted is None:
        return f"config.json has no model_type; the atlas knows the families {known}."
    sentence = f"The architecture family {wanted!r} is unknown; the atlas knows {known}"
    near = difflib.get_close_matches(wanted.lower(), names, NEAR, cutoff=0.5) if isinstance(wanted, str) else []
    hint = f"; nearest by name: {', '.join(near)}" if near else ""
    return f"{sentence}{hint}. --family NAME reads it by the table of one of them."
