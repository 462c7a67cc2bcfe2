"""Safetensors files: a header of names, types and shapes, then the tensors."""

import json
from collections.abc import Collection
from pathlib import Path

from generators.base.errors import InputError
from generators.checkpoint.sources.formats import Contents, Format, Header, check_layout, once_per_content

HEADERS_AT_ONCE = 256  # of files, as many as a large model has shards
METADATA = "__metadata__"  # of a header, beside its tensors
LENGTH = 8  # bytes before the header, which say how long it is


class Safetensors(Format):
    """Safetensors. A file's header is read and checked once; no file stays open, so that no page stays mapped."""

    def contents(self, path: Path) -> Contents:
        return _contents(path)


@once_per_content(HEADERS_AT_ONCE)
def _contents(path: Path, size: int) -> Contents:
    from safetensors import SafetensorError, safe_open

    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(LENGTH), "little")
            with safe_open(path, framework="numpy") as checked:  # the library checks that all of it fits together
                names = list(checked.keys())
            said = json.loads(file.read(length))
        spans = {name: tuple(LENGTH + length + at for at in said[name]["data_offsets"]) for name in names}
        check_layout(spans, LENGTH + length, size)
        tensors = {name: Header(said[name]["dtype"], tuple(said[name]["shape"]), spans[name][0]) for name in names}
        return Contents(tensors, aliases_in(said.get(METADATA), tensors))
    except (SafetensorError, OSError, ValueError, KeyError, RecursionError) as error:
        raise InputError(f"{path} isn't a whole safetensors file: {error}.") from error


def aliases_in(metadata: object, names: Collection[str]) -> dict[str, str]:
    """Return the names that `save_model` left out, from a header's metadata: it stores tied tensors once."""
    said = metadata if isinstance(metadata, dict) else {}
    return {alias: name for alias, name in said.items() if name in names and alias not in names}
