"""Which type a config.json without `model_type` means: that of the class which it names."""

from collections.abc import Mapping
from typing import Any

from generators.base import notices
from generators.base.errors import InputError
from generators.checkpoint.families import families
from generators.checkpoint.sources import Files
from generators.checkpoint.unread import class_stem, plain_name


def infer_type(files: Files, config: Mapping[str, Any]) -> str:
    """Return the type of model that `architectures` names.

    Raises InputError: no table knows it; says that `--family` decides.
    """
    place = f"The checkpoint {files.origin.place}"
    kinds = {plain_name(kind): kind for table in families() for kind in table.model_types if not table.stack}
    if (found := kinds.get(class_stem(config))) is not None:
        notices.say_once(f"{place}: config.json has no model_type; by its class it is read as {found!r}.")
        return found
    raise InputError(
        files.instead()
        or f"{place} has a config.json that gives no model_type and no class of a family that the atlas knows. If "
        "you know a family that is built the same, name it: --family NAME."
    )
