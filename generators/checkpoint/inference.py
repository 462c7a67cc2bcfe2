"""Which family a config.json without `model_type` is of: the one whose table its class or its tensors fit."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from generators.base import notices
from generators.base.errors import InputError
from generators.base.sentences import first
from generators.checkpoint import lookalikes
from generators.checkpoint.families import FIRST_NAMED, families
from generators.checkpoint.reading import understood
from generators.checkpoint.roles import Family
from generators.checkpoint.sources import Files
from generators.checkpoint.unread import class_stem, plain_name

OF_OTHER_SOFTWARE = ("nanogpt", "transformer_lens")
NAMED = 6  # families in a sentence


def infer_type(files: Files, config: Mapping[str, Any]) -> str:
    """Return the type of model that `architectures` names, or else the only one whose table fits all tensors.

    Tables that read a file the same way count as one, the best known of them.

    Raises InputError: several fit, or none does; says which, and that `--family` decides.
    """
    place, stem = f"The checkpoint {files.origin.place}", class_stem(config)
    kinds = {plain_name(kind): kind for table in families() for kind in table.model_types if not table.stack}
    tables = [table for table in families() if stem and kinds.get(stem) in table.model_types]
    fitting = tables or _distinct(files, config)
    if len(fitting) == 1:
        why = "its class" if tables else "its tensors"
        notices.say_once(f"{place}: config.json has no model_type; by {why} it is read as {fitting[0].name!r}.")
        return kinds[stem] if tables else fitting[0].model_types[0]
    if said := files.instead():
        raise InputError(said)
    if not fitting:
        raise InputError(
            f"{place} has a config.json without model_type, and no table fits its tensors. If you know a family that "
            "is built the same, name it: --family NAME."
        )
    names = [table.name for table in fitting]
    raise InputError(
        f"{place} has a config.json without model_type, and its tensors fit {first(names, NAMED)}: name the right "
        f"one, as in --family {names[0]}."
    )


def _distinct(files: Files, config: Mapping[str, Any]) -> list[Family]:
    readings: dict[Any, Family] = {}
    for table, reading in sorted(_fitting(files, config), key=lambda each: _rank(each[0])):
        readings.setdefault(reading, table)
    return list(readings.values())


def _rank(table: Family) -> tuple[int, str]:
    known = table.name in FIRST_NAMED
    return FIRST_NAMED.index(table.name) if known else len(FIRST_NAMED), table.name


def _is_of_bert(config: Mapping[str, Any], names: Collection[str], table: Family) -> bool:
    """Return whether a file is BERT's and not RoBERTa's: no name says so, and config.json counts two segments."""
    kinds, own = config.get("type_vocab_size"), tuple(prefix for prefix in table.prefixes if prefix)
    named = any(name.startswith(own) for name in names)
    return "xlm-roberta" in table.model_types and not named and isinstance(kinds, int) and kinds > 1


def _fitting(files: Files, config: Mapping[str, Any]) -> Iterator[tuple[Family, Any]]:
    names = set(files.names())
    for table in families():
        if table.stack or table.name in OF_OTHER_SOFTWARE or _is_of_bert(config, names, table):
            continue
        try:
            known, architecture = understood(config, table)
            lookalikes.check_assumed(config, files.origin.place, known, architecture)
            lookalikes.check_tensors(names, files.origin.place, known, architecture)
        except InputError:
            continue
        roles = sorted((role, repr(slot)) for role, slot in known.in_file(names, architecture.n_layer))
        yield table, repr((roles, replace(architecture, family="", stated={})))
