"""The site, made by one process at a time, and only as much of it as isn't there yet."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from generators.base.errors import InputError
from generators.base.progress import progress
from generators.checkpoint.registry import Registry
from generators.compute.results import Store
from generators.site import build_cache
from generators.site.locations import packaged

MADE_BY = b'content="mkdocs-'


def make_site(
    registry: Path, load: Callable[[Path], Registry], store: Store, unavailable: Mapping[str, str]
) -> tuple[Path, Sequence[str]]:
    """Make the site; return where it is, and a sentence for everything that went wrong.

    `load` reads the registry; `unavailable` says why weights can't be had.

    Raises:
        InputError: the registry is wrong, something isn't installed, or `site/` is no site that MkDocs made.
        AtlasError: another run is making the site, or it can't be written.
    """
    workshop, sentences = build_cache.Workshop(), list[str]()
    _check_site(workshop.site)
    with build_cache.alone(workshop.cache, workshop.site):
        folders = [layer.root for layer in store.layers]
        given = build_cache.inputs(registry, folders, workshop, packaged("templates"), unavailable)
        if not build_cache.is_built(given, workshop):
            from generators.site.build import make_pages, run_mkdocs

            with progress() as tell:
                made = make_pages(load(registry), store, workshop, unavailable, tell)
            sentences = list(made.sentences)
            run_mkdocs(workshop)
            if not sentences:
                build_cache.remember(given, workshop)
    return workshop.site, sentences


def _check_site(folder: Path) -> None:
    """Refuse a folder that MkDocs didn't make: it would be replaced whole.

    Raises InputError: it didn't.
    """
    try:
        made = not folder.exists() or not any(folder.iterdir()) or MADE_BY in (folder / "404.html").read_bytes()
    except OSError:
        made = False
    if not made:
        raise InputError(f"{folder}/ holds something that is no site of MkDocs. Move it: the site is written there.")
