"""Where generated pages, figures and data wait for MkDocs: a folder beside `site_src/`, which stays hand-written."""

from dataclasses import dataclass, field
from pathlib import Path

from generators.base.errors import AtlasError
from generators.base.files import replace_file, write_if_changed


@dataclass
class Staging:
    """A folder of generated files; `cache` keeps drawn figures and pages' parts between renderings."""

    folder: Path
    cache: Path
    written: set[Path] = field(default_factory=set)
    used: set[str] = field(default_factory=set)  # of the cache

    def write(self, path: str, content: str | bytes) -> None:
        """Write a file of the site; an unchanged one is left alone, a changed one replaced at once."""
        target = self.folder / path
        self.written.add(target)
        try:
            write_if_changed(target, content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise AtlasError(f"{target} can't be written: {error}.") from error

    def leave(self, path: str) -> bool:
        """Let a file of the site stay as it is; return whether it is there."""
        target = self.folder / path
        self.written.add(target)
        return target.is_file()

    def took(self, other: "Staging") -> None:
        """Take over what another rendering into the same folder wrote and used."""
        self.written |= other.written
        self.used |= other.used

    def kept(self, name: str) -> bytes | None:
        """Return what was kept in the cache, None where it isn't there."""
        self.used.add(name)
        try:
            return (self.cache / name).read_bytes()
        except OSError:
            return None

    def keep(self, name: str, data: bytes) -> None:
        """Keep a drawn figure, or what else took long, for the next rendering.

        Raises:
            AtlasError: the cache can't be written.
        """
        try:
            replace_file(self.cache / name, data)
        except OSError as error:
            raise AtlasError(f"The cache {self.cache} can't be written: {error}.") from error

    def remove_stale(self) -> None:
        """Remove what an earlier rendering wrote or kept, and this one had no use for."""
        for path in self.cache.glob("*"):
            if path.name not in self.used:
                path.unlink(missing_ok=True)
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_file() and path not in self.written:
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                path.rmdir()
