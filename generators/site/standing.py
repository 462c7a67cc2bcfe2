"""Whether the site stands already, made from just this: known by content, before anything heavy is imported.

`built.json` in the cache says what the site was made from, and what came out: where a file was changed or lost since,
it is made again. A site that something went wrong with is not remembered.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from generators.base import digests
from generators.base.files import replace_file

RECORD = "built.json"
ENVIRONMENT = "SITE_URL", "REPO_URL", "SOURCE_DATE_EPOCH"  # what of it pages and MkDocs look at
SERIES = "series.yml"  # beside the registry


@dataclass(frozen=True)
class Workshop:
    """Where a site is made: hand-written pages, MkDocs' settings, generated files, caches, and the finished site."""

    source: Path = Path("site_src")
    settings: Path = Path("mkdocs.yml")
    pages: Path = Path(".pages")
    cache: Path = Path(".cache")
    site: Path = Path("site")


def inputs(registry: Path, results: Path, workshop: Workshop, templates: Path, unavailable: Mapping[str, str]) -> str:
    """Return the digest of everything that a site is made from."""
    files = [path for path in (registry, registry.with_name(SERIES)) if path.is_file()]
    each = [digests.of_folder(path) for path in (*files, results, templates)]
    return digests.of_words(*each, sorted(unavailable.items()), _around(workshop))


def pages(workshop: Workshop) -> str:
    """Return the digest of what MkDocs makes a site from."""
    return digests.of_words(digests.of_folder(workshop.pages), _around(workshop))


def stands(what: str, made_from: str, workshop: Workshop) -> bool:
    """Return whether the site stands as it was made from this; `what` says in which of the two ways it is told."""
    record = _record(workshop)
    if record.get(what) != made_from or not (workshop.site / "index.html").is_file():
        return False
    return record.get("site") == digests.of_folder(workshop.site)


def remember(workshop: Workshop, **made_from: str) -> None:
    """Remember what the site that stands was made from."""
    record = {**made_from, "site": digests.of_folder(workshop.site)}
    with suppress(OSError):  # without it the site is made again, no more
        replace_file(workshop.cache / RECORD, json.dumps(record, indent=1).encode())


def _record(workshop: Workshop) -> dict[str, str]:
    try:
        found = json.loads((workshop.cache / RECORD).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _around(workshop: Workshop) -> str:
    environment = [os.environ.get(name, "") for name in ENVIRONMENT]
    each = [digests.of_folder(path) for path in (workshop.source, workshop.settings)]
    return digests.of_words(digests.of_code(), *each, *environment)
