"""What a model's page is made from, stored from one rendering to the next: an unchanged model costs nothing.

The key says what it was made from: the model's stored results, the registry's entry, the atlas's own code, the
templates. Whatever of these changes, everything is made anew, but for the figures, which have keys of their own.
Every page is made from what is stored, one that was drawn just now as well.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, ValidationError

from generators.base import digests
from generators.base.cache import key
from generators.base.interrupts import ctrl_c_deferred, end_with
from generators.base.progress import Report, silent
from generators.checkpoint.registry import Model
from generators.compute.records import ModelFindings
from generators.compute.results import Store
from generators.findings import FINDINGS
from generators.site import data
from generators.site.entities import Notable, entity_files
from generators.site.locations import packaged
from generators.site.pictures import Picture
from generators.site.previews import model_preview
from generators.site.staging import Staging
from generators.site.view import ModelPage, Section, claims_about, model_page, titled
from generators.site.words import Caption

FEWEST_FOR_MORE_PROCESSES = 2  # models to be drawn


class StoredPage(BaseModel):
    """One model's page, but for what the registry says of it; `files` are those that were written for it."""

    model_config = ConfigDict(frozen=True)

    findings: ModelFindings
    pictures: dict[str, list[dict[str, Any]]]
    unstored: list[str]
    damaged: list[str]
    entities: list[Notable]
    files: list[str]
    cached: list[str]  # keys of the cache


@dataclass(frozen=True)
class DrawnPage:
    """What a model's page is made from, its figures and data written, and the entities that its results name."""

    page: ModelPage
    entities: list[Notable]


@dataclass(frozen=True)
class PagePlaces:
    """Where pages are drawn from and to, by this process or another."""

    results: Store
    folder: Path
    cache: Path
    whole: bool


def page_of(
    model: Model, name: str, staging: Staging, unavailable: str | None, series_page: str | None = None
) -> DrawnPage | None:
    """Return what a model's page is made from, None where it has no results.

    Args:
        model: what the registry says of it.
        name: the page's, as `drawing` gives it.
        staging: where it was drawn to.
        unavailable: why the model's weights could not be had this time.
        series_page: where it is shown, if it has no page of its own.
    """
    stored = _stored(name, staging)
    if stored is None:
        return None
    sections = [
        Section(
            finding,
            stored.findings.findings[finding.name],
            claims_about(finding.name, stored.findings),
            [_picture(each) for each in stored.pictures[finding.name]],
            finding.name not in stored.unstored,
        )
        for finding in FINDINGS
    ]
    return DrawnPage(
        titled(stored.findings, model, sections, stored.damaged, unavailable, series_page), stored.entities
    )


@contextmanager
def drawing(
    models: Sequence[Model], store: Store, staging: Staging, processes: int, report: Report, *, whole: bool
) -> Iterator[Callable[[Model], str]]:
    """Yield a function that draws a model's page, or waits until another process has, and returns its name.

    It raises what went wrong there. Pages that are stored aren't drawn; several others are, in several processes.
    Names are made once, before: results that change meanwhile make other pages the next time.
    """
    names = {model.name: _name(model, store, whole=whole) for model in models}
    places = PagePlaces(store, staging.folder, staging.cache.folder, whole)
    new = [model for model in models if _stored(names[model.name], staging.again()) is None]
    there = [model for model in new if store.folder(model.name).is_dir()]
    if len(there) < FEWEST_FOR_MORE_PROCESSES or processes < 2:

        def drawn(model: Model) -> str:
            if model in new:
                draw(model, names[model.name], places, report)
            return names[model.name]

        yield drawn
        return
    with _drawing_processes(processes) as pool:
        with ctrl_c_deferred():
            begun = {model.name: pool.submit(draw, model, names[model.name], places) for model in there}

        def drawn_apart(model: Model) -> str:
            if model.name in begun:
                begun[model.name].result()
                report(f"{model.name}: drawn")
            return names[model.name]

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


def draw(model: Model, name: str, places: PagePlaces, report: Report = silent) -> None:
    """Draw a model's figures, write its data, and store under a name what its page is made from.

    Raises:
        InputError: what is stored of the model itself is damaged.
    """
    store, staging = places.results, Staging(places.folder, places.cache)
    in_series = places.whole and model.only_in_series
    page = model_page(model, store, staging, report, in_series=in_series)
    if page is None:
        return
    files: dict[str, str | bytes] = {**data.model_files(page)}
    entities: list[Notable] = []
    if places.whole:
        known, entities = entity_files(page)
        files |= known
    if places.whole and not in_series:
        files |= {**data.script_files(page), **model_preview(page, staging)}
    for path, content in files.items():
        staging.write(path, content)
    staging.cache.put(name, _to_store(page, entities, staging).model_dump_json().encode())


def _name(model: Model, store: Store, *, whole: bool) -> str:
    """Return the key of a model's page, made from its stored results, its entry in the registry, and all code."""
    results = digests.of_folder(store.folder(model.name))
    return f"{model.name}.{key(whole, model.model_dump_json(), _code(), results)}.page.json"


@cache
def _code() -> str:
    return digests.of_words(digests.of_code(), digests.of_folder(packaged("templates")))


def _stored(name: str, staging: Staging) -> StoredPage | None:
    """Return what is stored of a page if all its files are there."""
    content = staging.cache.get(name)
    if content is None:
        return None
    try:
        stored = StoredPage.model_validate_json(content)
    except ValidationError:
        return None
    there = [staging.leave(path) for path in stored.files]
    staging.cache.used.update(stored.cached)
    return stored if all(there) else None


def _to_store(page: ModelPage, entities: list[Notable], written: Staging) -> StoredPage:
    return StoredPage(
        findings=page.findings,
        pictures={section.finding.name: [asdict(one) for one in section.pictures] for section in page.sections},
        unstored=[section.finding.name for section in page.sections if not section.stored],
        damaged=page.damaged,
        entities=entities,
        files=sorted(path.relative_to(written.folder).as_posix() for path in written.written),
        cached=sorted(written.cache.used),
    )


def _picture(stored: Mapping[str, Any]) -> Picture:
    words = Caption(Markup(stored["words"]["how_to_read"]), stored["words"]["alt"])
    return Picture(**{**stored, "words": words})
