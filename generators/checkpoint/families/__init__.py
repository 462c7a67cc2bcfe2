"""One table per architecture family: role -> tensor. Adding a family is adding a file to this folder.

Every table in a module here is found by listing the folder. Where no table knows a model, its token embedding is
found by name and size (`untabled`).
"""

import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from generators.base.errors import InputError
from generators.base.nearest import nearest
from generators.checkpoint.roles import Family

FIRST_NAMED = ("gpt2", "openai-gpt", "bert", "llama")  # named first in sentences: best known
ADD_ONE = "`Add a model` on the site, or CONTRIBUTING.md, says how to add a table"


class UnknownFamilyError(InputError):
    """No table knows this type of model."""


@cache
def families() -> tuple[Family, ...]:
    modules = (import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    found = {id(table): table for module in modules for table in vars(module).values() if isinstance(table, Family)}
    return tuple(found.values())


def choose_family(config: Mapping[str, Any], family: str | None, stack: str | None = None) -> Family:
    """Return the family called `family`, or that of config.json's `model_type`; of a pair, the half `stack`."""
    wanted = family or config.get("model_type")
    named = [known for known in families() if wanted == known.name]
    fitting = named or [known for known in families() if wanted in known.model_types]
    if not fitting and family is not None:
        near = nearest(family, [known.name for known in families()])
        raise InputError(f"There is no family {family!r}{near}; the atlas knows {_first_names()}.")
    if not fitting and wanted is None:
        raise UnknownFamilyError(f"config.json has no model_type; the atlas knows the families {_first_names()}.")
    if not fitting:
        raise UnknownFamilyError(
            f"The architecture family {wanted!r} is unknown; the atlas knows {_first_names()}. {ADD_ONE}. If one of "
            "these families is built the same, --family NAME reads the model by its table."
        )
    if stack is None and len(fitting) > 1:
        halves = " or ".join(f"--{known.stack}" for known in fitting)
        raise InputError(f"A model of type {wanted!r} is several models in one: name one by its ending, {halves}.")
    for known in fitting:
        if stack in (None, known.stack):
            return known
    raise InputError(f"A model of type {wanted!r} has no {stack} of its own.")


def _first_names() -> str:
    return f"{', '.join(FIRST_NAMED)} and {len(families()) - len(FIRST_NAMED)} more"


# Without a table


def has_table(family: Family) -> bool:
    """Return whether a full table describes the family, not only its token embedding."""
    return not isinstance(family.without, NoRoles)


class NoRoles(Mapping[str, str]):
    """Has no roles, and gives the same reason for each."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __getitem__(self, role: str) -> str:
        return self._reason

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
