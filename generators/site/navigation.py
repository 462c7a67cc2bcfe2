"""The site's menu, which follows from the models and findings there are; the plugin hands it to MkDocs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from generators.base.plain import as_json
from generators.site.notebooks import Notebook
from generators.site.questions import questions
from generators.site.series import SeriesPage
from generators.site.staging import Staging
from generators.site.view import ModelPage

NAVIGATION = "navigation.json"  # in the staging folder; no page of the site
DATA = "data.md"


def write_navigation(
    staging: Staging,
    pages: Sequence[ModelPage],
    notebooks: Sequence[Notebook],
    series: Sequence[SeriesPage] | None,
    *,
    whole: bool = True,
) -> None:
    """Write the menu beside the pages it lists, in the form of mkdocs.yml's `nav`."""
    menu = navigation(pages, notebooks, series) if whole else navigation_of_report(pages)
    staging.write(NAVIGATION, as_json(menu))


def read_navigation(folder: Path) -> list[Any]:
    menu: list[Any] = json.loads((folder / NAVIGATION).read_text("utf-8"))
    return menu


def navigation(
    pages: Sequence[ModelPage],
    notebooks: Sequence[Notebook],
    series: Sequence[SeriesPage] | None = None,
) -> list[Any]:
    """Return the menu: titles and the pages behind them.

    Args:
        pages: the models.
        notebooks: the notebooks.
        series: None where none are known.
    """
    more = _series(series)
    if notebooks:
        made = ({one.title: f"notebooks/{one.name}.ipynb"} for one in notebooks)
        more.append({"Notebooks": ["notebooks/index.md", *made]})
    texts = [{"Methods": "methods.md"}, {"What the sources say": "statements.md"}, {"Glossary": "glossary.md"}]
    return [
        {"Home": "index.md"},
        _questions(),
        {"Models": ["models/index.md", *_linked(pages), {"Add a model": "add-a-model.md"}]},
        {"Compare": ["compare.md", {"What holds where": "matrix.md"}]},
        {"Data": DATA},
        {"About": ["about.md", *more, *texts]},
    ]


def navigation_of_report(pages: Sequence[ModelPage]) -> list[Any]:
    """Return the menu of a report on some models."""
    return [
        {"Overview": "index.md"},
        *_linked(pages),
        _questions(),
        {"About": ["about.md", {"Methods": "methods.md"}, {"Glossary": "glossary.md"}]},
    ]


def _linked(pages: Sequence[ModelPage]) -> list[dict[str, str]]:
    return [{page.title: f"models/{page.name}.md"} for page in pages]


def _series(series: Sequence[SeriesPage] | None) -> list[Any]:
    if series is None:
        return []
    return [{"Series": ["series/index.md", *({one.series.title: f"series/{one.series.name}.md"} for one in series)]}]


def _questions() -> dict[str, Any]:
    return {"Questions": ["questions/index.md", *({one.short: f"questions/{one.name}.md"} for one in questions())]}
