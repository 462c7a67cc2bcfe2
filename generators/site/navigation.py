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
    """Write the menu, titles and the pages behind them, in the form of mkdocs.yml's `nav`.

    `series` is None where none are known; `whole` says whether it is of the whole site, or of a report on models.
    """
    models = [{page.title: f"models/{page.name}.md"} for page in pages]
    asked = {"Questions": ["questions/index.md", *({q.short: f"questions/{q.name}.md"} for q in questions())]}
    methods, words = {"Methods": "methods.md"}, {"Glossary": "glossary.md"}
    if not whole:
        about = {"About": ["about.md", methods, words]}
        staging.write(NAVIGATION, as_json([{"Overview": "index.md"}, *models, asked, about]))
        return
    more: list[Any] = []
    if series is not None:
        listed = ({one.series.title: f"series/{one.series.name}.md"} for one in series)
        more.append({"Series": ["series/index.md", *listed]})
    if notebooks:
        made = ({one.title: f"notebooks/{one.name}.ipynb"} for one in notebooks)
        more.append({"Notebooks": ["notebooks/index.md", *made]})
    menu = [
        {"Home": "index.md"},
        asked,
        {"Models": ["models/index.md", *models, {"Add a model": "add-a-model.md"}]},
        {"Compare": ["compare.md", {"What holds where": "matrix.md"}]},
        {"Data": DATA},
        {"About": ["about.md", *more, methods, {"What the sources say": "statements.md"}, words]},
    ]
    staging.write(NAVIGATION, as_json(menu))


def read_navigation(folder: Path) -> list[Any]:
    menu: list[Any] = json.loads((folder / NAVIGATION).read_text("utf-8"))
    return menu
