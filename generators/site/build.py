"""From stored results to a built site: render, execute notebooks, and let MkDocs put it together."""

import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generators.base.cache import Cache
from generators.base.errors import AtlasError
from generators.base.files import swap_folder
from generators.base.progress import Report, silent
from generators.checkpoint.registry import Registry
from generators.compute.results import Store
from generators.site.build_cache import Workshop
from generators.site.notebooks import check_installed, write_notebooks
from generators.site.pages import Rendered, render
from generators.site.staging import Staging

OF_NOTEBOOKS = "mkdocs-jupyter"  # the plugin that makes pages of them; a report has none
FOR_SERVERS = ("404.html", "sitemap.xml", "sitemap.xml.gz")  # files that only a server has a use for


@dataclass(frozen=True)
class Made:
    """What came of making a site: what was rendered, and a sentence for every notebook that failed."""

    rendered: Rendered
    failures: list[str]

    @property
    def sentences(self) -> list[str]:
        return [*self.failures, *self.rendered.damaged]


def make_pages(
    registry: Registry,
    store: Store,
    workshop: Workshop,
    unavailable: Mapping[str, str] | None = None,
    report: Report = silent,
    *,
    whole: bool = True,
) -> Made:
    """Write every generated page, figure and data file, and execute the notebooks, which read them.

    Without `whole`, a report on these models: no notebooks, and no pages about the atlas.
    Raises InputError: something isn't installed that a whole site needs.
    """
    if whole:
        check_installed()
    staging = Staging(workshop.pages, workshop.cache / "figures")
    rendered = render(registry, store, staging, workshop.source, unavailable, report, whole=whole)
    failures = []
    if whole:
        executed = Cache(workshop.cache / "notebooks")
        failures = write_notebooks(workshop.source, staging, executed, report)
        executed.drop_unused()
    staging.remove_stale()
    return Made(rendered, failures)


def run_mkdocs(workshop: Workshop, *, from_disk: bool = False) -> None:
    """Build the site from hand-written and generated pages; the old one stays until the new one is whole.

    With `from_disk`, pages will be opened from the disk: without search, which needs a server, with links to files
    instead of folders, and without the hand-written pages.

    Raises AtlasError: MkDocs warned or failed; what it printed says why.
    """
    os.environ |= {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    from mkdocs.commands.build import build
    from mkdocs.exceptions import Abort, MkDocsException

    new = workshop.cache / "site"
    shutil.rmtree(new, ignore_errors=True)
    with _warnings_printed():
        try:
            config = _config(workshop, new, from_disk)
            config.plugins.on_startup(command="build", dirty=False)
            try:
                build(config)
            finally:
                config.plugins.on_shutdown()
        except (Abort, MkDocsException) as error:
            why = " ".join(str(error).split()).rstrip(".!") or type(error).__name__
            raise AtlasError(f"MkDocs could not build the site: {why}. The old site stays.") from error
    if from_disk:
        for served in FOR_SERVERS:
            (new / served).unlink(missing_ok=True)
    try:
        swap_folder(new, workshop.site)
    except OSError as error:
        raise AtlasError(f"The site can't be written to {workshop.site}: {error}.") from error


def _config(workshop: Workshop, new: Path, from_disk: bool) -> Any:
    from mkdocs.config import load_config
    from mkdocs.utils.yaml import yaml_load

    settings: dict[str, Any] = {}
    if from_disk:
        with workshop.settings.open("rb") as file:
            settings["plugins"] = [each for each in yaml_load(file)["plugins"] if OF_NOTEBOOKS not in each]
    config = load_config(
        str(workshop.settings.resolve()),
        strict=True,
        docs_dir=str(workshop.source.resolve()),
        site_dir=str(new.resolve()),
        **settings,
    )
    pages = config.plugins["atlas-pages"].config
    pages.folder, pages.from_disk = str(workshop.pages.resolve()), from_disk
    if from_disk:
        config.plugins["material/search"].config.enabled = False
    return config


@contextmanager
def _warnings_printed() -> Iterator[None]:
    """Let MkDocs print its warnings meanwhile, and nothing else."""
    logger, handler = logging.getLogger("mkdocs"), logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
