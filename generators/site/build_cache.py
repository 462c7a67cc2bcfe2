"""Whether the site is built already, from just this: known by content, before anything heavy is imported.

The cache remembers from what the site was made together with what came out: where a file was changed or lost since,
it is made again. A site that something went wrong with is not remembered.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from generators.base import digests
from generators.base.cache import Cache, key
from generators.base.errors import AtlasError
from generators.site.locations import TRAINING_RECORD

LOCK = ".lock"  # in the cache
FOLDER = "built"  # in the cache
ENVIRONMENT = "SITE_URL", "REPO_URL", "SOURCE_DATE_EPOCH"  # what of it pages and MkDocs look at
SERIES = "series.yml"  # beside the registry
RECORDS = f"models/**/{TRAINING_RECORD}"  # beside it: pages of series show the losses in them


@dataclass(frozen=True)
class Workshop:
    """Where a site is made: hand-written pages, MkDocs' settings, generated files, caches, and the finished site."""

    source: Path = Path("site_src")
    settings: Path = Path("mkdocs.yml")
    pages: Path = Path(".pages")
    cache: Path = Path(".cache")
    site: Path = Path("site")


def inputs(
    registry: Path, results: Sequence[Path], workshop: Workshop, templates: Path, unavailable: Mapping[str, str]
) -> str:
    """Return the digest of everything that a site is made from."""
    files = [path for path in (registry, registry.parent / SERIES) if path.is_file()]
    records = sorted(registry.parent.glob(RECORDS))
    made_from = (*files, *records, *results, templates, workshop.source, workshop.settings)
    each = [digests.of_folder(path) for path in made_from]
    environment = [os.environ.get(name, "") for name in ENVIRONMENT]
    return digests.of_words(digests.of_code(), *records, *each, sorted(unavailable.items()), *environment)


@contextmanager
def alone(cache: Path, site: Path) -> Iterator[None]:
    """Keep other processes from making a site with the same cache meanwhile; a killed process frees it.

    Raises AtlasError: another one is at it, or the folder can't be written.
    """
    lock = FileLock(cache / LOCK)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise AtlasError(f"Another run is making the site in {site}/; wait until it is done.") from None
    except OSError as error:
        raise AtlasError(f"{cache} can't be written: {error}.") from error
    try:
        yield
    finally:
        lock.release()


def is_built(made_from: str, workshop: Workshop) -> bool:
    """Return whether the site is what was built from this."""
    if not (workshop.site / "index.html").is_file():
        return False
    return _cache(workshop).get(key(made_from, digests.of_folder(workshop.site))) is not None


def remember(made_from: str, workshop: Workshop) -> None:
    """Remember what the site was made from; without that it is made again, no more."""
    built = _cache(workshop)
    with suppress(AtlasError):
        built.put(key(made_from, digests.of_folder(workshop.site)), b"")
    built.drop_unused()


def _cache(workshop: Workshop) -> Cache:
    return Cache(workshop.cache / FOLDER)
