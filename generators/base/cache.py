"""Files that took long to make, each named by the digest of what it was made from, so that none can be out of date.

No code that measures may import this: stored results say themselves what they were made from.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from generators.base import digests
from generators.base.errors import AtlasError
from generators.base.files import read_limited, replace_file

KEY_LENGTH = 32


def key(*made_from: object, ending: str = "") -> str:
    """Return the name of a file that is made from this.

    >>> key("helix", 3, ending=".svg") == key("helix", 3, ending=".svg") != key("helix", 4, ending=".svg")
    True
    """
    return digests.of_words(*made_from)[:KEY_LENGTH] + ending


@dataclass
class Cache:
    """A folder of such files; `used` are the keys requested or stored, which `drop_unused` keeps."""

    folder: Path
    used: set[str] = field(default_factory=set)

    def get(self, name: str) -> bytes | None:
        self.used.add(name)
        with suppress(OSError):
            return read_limited(self.folder / name, digests.LARGEST)
        return None

    def put(self, name: str, data: bytes) -> None:
        """Store a file; readers find all of it or nothing. Raises AtlasError: the cache can't be written."""
        self.used.add(name)
        try:
            replace_file(self.folder / name, data)
        except OSError as error:
            raise AtlasError(f"The cache {self.folder} can't be written: {error}.") from error

    def get_or_make(self, name: str, make: Callable[[], bytes]) -> bytes:
        found = self.get(name)
        if found is None:
            found = make()
            self.put(name, found)
        return found

    def drop_unused(self) -> None:
        for path in self.folder.glob("*"):
            if path.name not in self.used:
                path.unlink(missing_ok=True)
