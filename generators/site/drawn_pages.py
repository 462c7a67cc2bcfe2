"""What models' pages are made from, drawn by several processes where there are several models."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from generators.base.interrupts import ctrl_c_deferred, end_with
from generators.base.progress import Report, silent
from generators.checkpoint.registry import Model
from generators.compute.records import ModelFindings
from generators.compute.results import Store
from generators.findings import FINDINGS
from generators.site import data
from generators.site.addresses import Notable
from generators.site.entities import entity_files
from generators.site.pictures import Picture
from generators.site.previews import model_preview
from generators.site.staging import Staging
from generators.site.view import ModelPage, Section, claims_about, model_page, titled


@dataclass(frozen=True)
class PageParts:
    """One model's page as a process hands it on: without measurements, and without what the registry says of it.

    `written` are the files that were written for it, `cached` the keys of the cache that it uses.
    """

    findings: ModelFindings
    pictures: dict[str, list[Picture]]
    unstored: frozenset[str]
    damaged: list[str]
    entities: list[Notable]
    written: set[Path]
    cached: set[str]


Draw = Callable[[Model], PageParts | None]


def page_of(
    model: Model, drawn: PageParts, staging: Staging, unavailable: str | None, series_page: str | None = None
) -> ModelPage:
    """Return what a model's page is made from: what `drawing` gives, and what the registry says of it.

    `unavailable` says why the model's weights could not be had this time; `series_page` is where it is shown, if it
    has no page of its own.
    """
    staging.written |= drawn.written
    staging.cache.used |= drawn.cached
    sections = [
        Section(
            finding,
            drawn.findings.findings[finding.name],
            claims_about(finding.name, drawn.findings),
            drawn.pictures[finding.name],
            finding.name not in drawn.unstored,
        )
        for finding in FINDINGS
    ]
    page = titled(drawn.findings, model, sections, drawn.damaged, unavailable, series_page)
    return replace(page, named=drawn.entities)


@contextmanager
def drawing(
    models: Sequence[Model], store: Store, staging: Staging, processes: int, report: Report, *, whole: bool
) -> Iterator[Draw]:
    """Yield a function that draws a model's page, or waits until another process has.

    It raises what went wrong there.
    """
    there = [model for model in models if store.folder(model.name).is_dir()]
    if min(len(there), processes) < 2:
        yield lambda model: draw(model, store, staging.again(), report, whole=whole)
        return
    with _drawing_processes(processes) as pool:
        with ctrl_c_deferred():
            begun = {one.name: pool.submit(draw, one, store, staging.again(), whole=whole) for one in there}

        def drawn_apart(model: Model) -> PageParts | None:
            if model.name not in begun:
                return None
            drawn = begun[model.name].result()
            report(f"{model.name}: drawn")
            return drawn

        yield drawn_apart


@contextmanager
def _drawing_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool; where something goes wrong here, Ctrl-C for one, its processes end at once, or soon if killed."""
    spawn = get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=spawn, initializer=end_with, initargs=(os.getpid(),)) as pool:
        try:
            yield pool
        except BaseException:
            for process in pool._processes.values():
                process.kill()
            pool.shutdown(cancel_futures=True)
            raise


def draw(model: Model, store: Store, staging: Staging, report: Report = silent, *, whole: bool) -> PageParts | None:
    """Draw a model's figures, write its data, and return what its page is made from; None without results.

    Raises InputError: what is stored of the model itself is damaged.
    """
    in_series = whole and model.only_in_series
    page = model_page(model, store, staging, report, in_series=in_series)
    if page is None:
        return None
    files: dict[str, str | bytes] = {**data.model_files(page)}
    entities: list[Notable] = []
    if whole:
        known, entities = entity_files(page)
        files |= known
        files |= {} if in_series else model_preview(page, staging)
    for path, content in files.items():
        staging.write(path, content)
    return PageParts(
        findings=page.findings,
        pictures={section.finding.name: section.pictures for section in page.sections},
        unstored=frozenset(section.finding.name for section in page.sections if not section.stored),
        damaged=page.damaged,
        entities=entities,
        written=staging.written,
        cached=staging.cache.used,
    )
