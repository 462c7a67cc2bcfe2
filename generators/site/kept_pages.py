"""What a model's page is made from, kept from one rendering to the next: a model that is as it was costs nothing.

What is kept says what it was made from: the model's stored results, the atlas's own code, the templates. Whatever of
these changes, everything is made anew, but for the figures, which have keys of their own.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, ValidationError

from generators.base import digests
from generators.base.progress import Report, silent
from generators.checkpoint.registry import Model
from generators.compute.records import ModelFindings
from generators.compute.results import Store
from generators.findings import FINDINGS
from generators.site import data
from generators.site.entities import Notable, write_entities, write_files
from generators.site.locations import packaged
from generators.site.pictures import Picture
from generators.site.previews import write_model_preview
from generators.site.staging import Staging
from generators.site.view import ModelPage, Section, claims_about, model_page, titled
from generators.site.words import Caption

FEWEST_FOR_MORE_PROCESSES = 2  # models to be drawn


class Kept(BaseModel):
    """One model's page, but for what the registry says of it; `files` are those that were written for it."""

    model_config = ConfigDict(frozen=True)

    made_from: str
    findings: ModelFindings
    pictures: dict[str, list[dict[str, Any]]]
    unstored: list[str]
    damaged: list[str]
    entities: list[Notable]
    files: list[str]
    drawn: list[str]  # in the cache


@dataclass(frozen=True)
class Drawn:
    """What a model's page is made from, its figures and data written, and the entities that its results name."""

    page: ModelPage
    entities: list[Notable]


@dataclass(frozen=True)
class Drawing:
    """Where pages are drawn from and to, for a process of its own."""

    results: Path
    folder: Path
    cache: Path
    whole: bool


def page_of(
    model: Model,
    store: Store,
    staging: Staging,
    unavailable: Mapping[str, str],
    report: Report,
    *,
    whole: bool = True,
) -> Drawn | None:
    """Return what a model's page is made from, its figures and data written; None where it has no results.

    Raises:
        InputError: what is stored of the model itself is damaged.
    """
    made_from = _made_from(model, store, whole=whole)
    kept = _kept(model.name, made_from, staging)
    if kept is not None:
        return Drawn(_page(kept, model, unavailable.get(model.name)), kept.entities)
    apart = Staging(staging.folder, staging.cache)
    page = model_page(model, store, apart, unavailable, report)
    named: list[Notable] = []
    if page is not None:
        data.write_model(page, apart)
        if whole:
            named = write_entities(page, apart)
            write_files(page, apart)
            write_model_preview(page, apart)
        staging.keep(_name(model.name), _to_keep(page, named, made_from, apart).model_dump_json().encode())
    staging.took(apart)
    return None if page is None else Drawn(page, named)


def draw_ahead(
    models: Sequence[Model], store: Store, staging: Staging, processes: int, report: Report, *, whole: bool = True
) -> None:
    """Draw what isn't known yet in several processes; what goes wrong there is told when it is tried again."""
    there = [model for model in models if (store.root / model.name).is_dir()]
    new = [model for model in there if _kept(model.name, _made_from(model, store, whole=whole), staging) is None]
    if len(new) < FEWEST_FOR_MORE_PROCESSES or processes < 2:
        return
    where = Drawing(store.root.resolve(), staging.folder.resolve(), staging.cache.resolve(), whole)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for model, _ in zip(new, pool.map(_draw, new, [where] * len(new)), strict=True):
            report(f"{model.name}: drawn")


def _draw(model: Model, where: Drawing) -> None:
    try:
        page_of(model, Store(where.results), Staging(where.folder, where.cache), {}, silent, whole=where.whole)
    except Exception:  # is met again, and told, where pages are put together
        return


def _made_from(model: Model, store: Store, *, whole: bool) -> str:
    """Return the digest of what is stored of a model, of what the registry says of it, and of all code."""
    return digests.of_words(whole, model.model_dump_json(), _code(), digests.of_folder(store.root / model.name))


@cache
def _code() -> str:
    return digests.of_words(digests.of_code(), digests.of_folder(packaged("templates")))


def _name(model: str) -> str:
    return f"{model}.page.json"


def _kept(model: str, made_from: str, staging: Staging) -> Kept | None:
    """Return what is kept of a model if it is made from this and all its files are there."""
    content = staging.kept(_name(model))
    if content is None:
        return None
    try:
        kept = Kept.model_validate_json(content)
    except ValidationError:
        return None
    if kept.made_from != made_from:
        return None
    there = [staging.leave(path) for path in kept.files]
    if not all(there):
        return None
    staging.used.update(kept.drawn)
    return kept


def _to_keep(page: ModelPage, named: list[Notable], made_from: str, written: Staging) -> Kept:
    return Kept(
        made_from=made_from,
        findings=page.findings,
        pictures={section.finding.name: [asdict(one) for one in section.pictures] for section in page.sections},
        unstored=[section.finding.name for section in page.sections if not section.stored],
        damaged=page.damaged,
        entities=named,
        files=sorted(path.relative_to(written.folder).as_posix() for path in written.written),
        drawn=sorted(written.used),
    )


def _page(kept: Kept, model: Model, unavailable: str | None) -> ModelPage:
    sections = [
        Section(
            finding,
            kept.findings.findings[finding.name],
            claims_about(finding.name, kept.findings),
            [_picture(each) for each in kept.pictures[finding.name]],
            finding.name not in kept.unstored,
        )
        for finding in FINDINGS
    ]
    return titled(kept.findings, model, sections, kept.damaged, unavailable)


def _picture(kept: dict[str, Any]) -> Picture:
    words = Caption(Markup(kept["words"]["how_to_read"]), kept["words"]["alt"])
    return Picture(**{**kept, "words": words})
