"""Where generated pages, figures and data wait for MkDocs: a folder beside `site_src/`, which stays hand-written."""

from dataclasses import InitVar, dataclass, field
from pathlib import Path

from generators.base.cache import Cache
from generators.base.errors import AtlasError
from generators.base.files import write_if_changed


@dataclass
class Staging:
    """A folder of generated files; `cache` holds drawn figures and pages' parts between renderings."""

    folder: Path
    cached_in: InitVar[Path]
    cache: Cache = field(init=False)
    written: set[Path] = field(default_factory=set)

    def __post_init__(self, cached_in: Path) -> None:
        self.cache = Cache(cached_in)

    def write(self, path: str, content: str | bytes) -> None:
        target = self.folder / path
        self.written.add(target)
        try:
            write_if_changed(target, content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise AtlasError(f"{target} can't be written: {error}.") from error

    def again(self) -> "Staging":
        return Staging(self.folder, self.cache.folder)

    def remove_stale(self) -> None:
        """Remove what an earlier rendering wrote or cached, and this one had no use for."""
        self.cache.drop_unused()
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_file() and path not in self.written:
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                path.rmdir()
