"""Stored results -> Markdown pages, through `templates/`. Reads no weights."""

import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2

from generators.base.errors import AtlasError, InputError
from generators.base.progress import Report, silent
from generators.checkpoint.registry import Model, Registry, Series
from generators.compute.results import Store
from generators.compute.verify import outdated
from generators.findings import FINDINGS
from generators.site import citing, data, notebooks, quality_reports
from generators.site.answers import answers, drawn_for, over_all
from generators.site.chances import chances
from generators.site.drawn_pages import drawing, page_of
from generators.site.entities import write_like
from generators.site.glossary import glossary
from generators.site.home import home_curves
from generators.site.learned import FIRST, Overview, lessons
from generators.site.navigation import DATA, write_navigation
from generators.site.previews import write_previews
from generators.site.questions import address_of, grouped, questions
from generators.site.results_table import COLUMNS, ROW, write_table
from generators.site.search import write_search
from generators.site.series import SeriesPage, series_of, write_series
from generators.site.staging import Staging
from generators.site.statements import counts, statements
from generators.site.stories import stories
from generators.site.view import Absent, ModelPage, all_models, counted
from generators.site.words import environment, rules

# What stands where a page was.
MOVED = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="refresh" content="0; url={to}">
<link rel="canonical" href="{to}"><p><a href="{to}">{title}</a></p></html>
"""
PROCESSES = os.cpu_count() or 1  # that draw figures


@dataclass(frozen=True)
class Rendered:
    """What came of rendering: the pages there are, models without one, and what of stored results is damaged.

    `in_series` are models that are shown on the page of their series.
    """

    pages: list[ModelPage]
    absent: list[Absent]
    damaged: list[str]
    in_series: list[ModelPage] = field(default_factory=list)


def render(
    registry: Registry,
    store: Store,
    staging: Staging,
    source: Path,
    unavailable: Mapping[str, str] | None = None,
    report: Report = silent,
    *,
    whole: bool = True,
) -> Rendered:
    """Write every generated page, figure and data file of the site.

    Models with results that the registry doesn't name get pages too. `source` is the folder of hand-written pages and
    notebooks; `unavailable` says why a model's weights could not be had just now. It is the `whole` site, or a report
    on its models: what they show, and nothing about the atlas.
    """
    templates = environment(whole=whole)
    rendered = _model_pages(registry, store, staging, unavailable or {}, templates, report)
    listed = notebooks.listed(source) if whole else []
    series = None
    if whole and registry.series:
        series = write_series(registry, store, staging, templates, rendered.pages, rendered.in_series)
    _write_pages(rendered, registry, staging, templates, listed, store, series or ())
    write_navigation(staging, rendered.pages, listed, series, whole=whole)
    every = [*rendered.pages, *rendered.in_series]
    data.write(every, staging)
    write_like(rendered.pages, staging)
    if whole:
        write_search(every, rendered.absent, staging)
        write_table(every, staging)
        write_previews(rendered.pages, staging)
    return rendered


def _model_pages(
    registry: Registry,
    store: Store,
    staging: Staging,
    unavailable: Mapping[str, str],
    templates: jinja2.Environment,
    report: Report,
) -> Rendered:
    rendered, whole = Rendered([], [], []), bool(templates.globals["whole"])
    models = list(all_models(registry, store))
    with drawing(models, store, staging, PROCESSES, report, whole=whole) as draw:
        for model in models:
            with _costing_only(model, rendered, report):
                drawn = draw(model)
                if drawn is None:
                    if not model.only_in_series:
                        rendered.absent.append(Absent(model))
                    continue
                series_page = _series_page(model, registry, store) if whole else None
                page = page_of(model, drawn, staging, unavailable.get(model.name), series_page)
                rendered.damaged.extend(page.damaged)
                if page.series_page is not None:
                    rendered.in_series.append(page)
                    continue
                in_series = series_of(model, registry, store) if whole else []
                staging.write(f"models/{page.name}.md", page_in_words(page, templates, in_series))
                rendered.pages.append(page)
    return rendered


def page_in_words(page: ModelPage, templates: jinja2.Environment, in_series: Sequence[Series] = ()) -> str:
    """Return a model's page as Markdown."""
    answered = answers(page)
    hero = next((one.pictures[0] for one in answered if one.pictures), None)
    made = templates.get_template("model.md.j2")
    return made.render(root="../../", page=page, answers=answered, hero=hero, in_series=in_series)


def _series_page(model: Model, registry: Registry, store: Store) -> str | None:
    """Return where a model is shown that has no page of its own: on that of its series, if this has one."""
    if not model.only_in_series:
        return None
    return next((f"series/{one.name}/" for one in series_of(model, registry, store)), "series/")


@contextmanager
def _costing_only(model: Model, rendered: Rendered, report: Report) -> Iterator[None]:
    """Let a model whose results no page can be made from cost no other its page; what is wrong is reported."""
    try:
        yield
    except InputError as error:
        sentence = str(error)
    except AtlasError:
        raise
    except Exception as error:
        report(f"{model.name}: no page can be made from its results\n{traceback.format_exc()}")
        sentence = f"{model.name}: No page can be made from its results ({type(error).__name__})."
    else:
        return
    rendered.damaged.append(sentence)
    if not model.only_in_series:  # the others are in no list of models
        rendered.absent.append(Absent(model))


def _write_pages(
    rendered: Rendered,
    registry: Registry,
    staging: Staging,
    templates: jinja2.Environment,
    listed: Sequence[notebooks.Notebook],
    store: Store,
    series: Sequence[SeriesPage],
) -> None:
    learned = {f.name: list(lessons(f.rules, rendered.pages, rendered.in_series)) for f in FINDINGS}
    everything = [lesson for of_finding in learned.values() for lesson in of_finding]
    first = next((page for page in rendered.pages if page.name == FIRST), None)
    shared: dict[str, Any] = {
        "pages": rendered.pages,
        "counted": counted(rendered.pages),
        "of_series": rendered.in_series,
        "absent": rendered.absent,
        "registry": registry,
        "rules": rules(),
        "findings": FINDINGS,
        "questions": questions(),
        "groups": grouped(),
        "notebooks": listed,
        "repository": os.environ.get("REPO_URL", "").strip() or None,
        "learned": learned,
        "general": Overview(tuple(everything), first),
        "over_all": {one.name: over_all(one, everything, counted(rendered.pages)) for one in questions()},
    }

    def write(path: str, template: str, **context: Any) -> None:
        """Write one page; `root` leads from it to the site's root."""
        depth = path.count("/") + (0 if path.endswith("index.md") else 1)
        staging.write(path, templates.get_template(template).render(root="../" * depth, **shared, **context))

    if templates.globals["whole"]:
        _write_over_models(write, rendered.pages, staging)
        titles = {one.series.name: one.series.title for one in series}
        said = statements(everything, titles, () if first is None else first.measured)
        write("statements.md", "statements.md.j2", sources=said, tally=counts(said))
        if registry.series:
            shown = [one.series for one in series]
            waiting = [(one, len(registry.members(one))) for one in registry.series if one not in shown]
            write("series/index.md", "all_series.md.j2", series=series, waiting=waiting)
    else:
        write("index.md", "report.md.j2")
    write("about.md", "about.md.j2", bibtex=citing.bibtex(os.environ.get("SITE_URL", "").strip() or None))
    reports = quality_reports.read_all(store.layers[-1].root)
    write("methods.md", "methods.md.j2", outdated=outdated(store), chances=chances(rendered.pages), **reports)
    write("glossary.md", "glossary.md.j2", glossary=glossary())
    write("questions/index.md", "questions.md.j2")
    for one in questions():
        about = {"question": one, "answer": shared["over_all"][one.name], "drawn": drawn_for(one, rendered.pages)}
        write(f"questions/{one.name}.md", "question.md.j2", **about)


def _write_over_models(write: Callable[..., None], pages: Sequence[ModelPage], staging: Staging) -> None:
    write("index.md", "home.md.j2", curves=home_curves(pages, staging), stories=stories(pages))
    write("models/index.md", "models.md.j2")
    write("compare.md", "compare.md.j2")
    site = os.environ.get("SITE_URL", "").strip() or "https://…/"
    write(DATA, "data.md.j2", columns=COLUMNS, dictionary_of=ROW, site=site)
    write("matrix.md", "matrix.md.j2")
    moved = {f"findings/{one.name}": (address_of(one).replace("#", "index.html#"), one.title) for one in FINDINGS}
    moved |= {"findings": ("questions/index.html", "Questions"), "learned": ("matrix/index.html", "All claims")}
    for before, (to, title) in moved.items():
        up = "../" * (before.count("/") + 1)
        staging.write(f"{before}/index.html", MOVED.format(to=up + to, title=title))
