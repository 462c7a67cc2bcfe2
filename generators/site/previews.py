"""The picture by which a page's link is shown elsewhere, and what its `<head>` says for that (Open Graph)."""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

from markupsafe import Markup

from generators.base import digests
from generators.base.cache import key
from generators.base.plain import as_json
from generators.drawing import card as cards
from generators.site.staging import Staging
from generators.site.view import ModelPage, Section

PREVIEWS = "previews.json"  # in the staging folder; no file of the site
FOLDER = "previews"
SITE = "Helix Atlas"
OTHERS = ""  # the entry of pages that have no picture of their own


def model_preview(page: ModelPage, staging: Staging) -> dict[str, bytes]:
    """Return the picture of a model's page by its path, none without a figure; a cached one isn't drawn again."""
    section = _shown(page)
    if section is None or section.signature is None or section.measured is None:
        return {}
    figures = section.finding.figures(section.measured)
    figure = next(one for one in figures if one.name == section.finding.signature)
    drawn_before = digests.of_folder(staging.folder / section.signature.light)
    name = key(digests.of_drawing(), drawn_before, ending=".png")
    return {_of_model(page): staging.cache.get_or_make(name, lambda: cards.png(figure.draw()))}


def write_previews(pages: Sequence[ModelPage], staging: Staging) -> None:
    """Write which page has which picture: of models their own, all others that of the first model."""
    made = {}
    for page in pages:
        section = _shown(page)
        if section is not None and section.signature is not None:
            alt = f"{page.title}. {section.signature.title}. {section.signature.words.alt}"
            made[f"models/{page.name}"] = {"image": _of_model(page), "alt": alt}
    if made:
        made[OTHERS] = next(iter(made.values()))
    staging.write(PREVIEWS, as_json(made))


def read_previews(folder: Path) -> dict[str, dict[str, str]]:
    """Return by page, without ending, where its picture is (`image`) and what it shows (`alt`), as was written."""
    path = folder / PREVIEWS
    known: dict[str, dict[str, str]] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return known


def tags(alt: str, title: str, description: str, image: str, address: str | None) -> str:
    """Return what a page's `<head>` says of it for those who show its link.

    Where the site's address is known, `image` is absolute; else it is relative to the page, whose `address` is None.
    """
    of_graph = {
        "og:type": "website",
        "og:site_name": SITE,
        "og:title": Markup(title).striptags(),  # as the theme writes them into `<title>`
        "og:description": Markup(description).striptags(),
        "og:url": address,
        "og:image": image,
        "og:image:type": "image/png",
        "og:image:width": str(cards.WIDTH),
        "og:image:height": str(cards.HEIGHT),
        "og:image:alt": alt,
    }
    said = [f'<meta property="{name}" content="{escape(text)}">' for name, text in of_graph.items() if text]
    return "".join([*said, '<meta name="twitter:card" content="summary_large_image">'])


def _of_model(page: ModelPage) -> str:
    return f"{FOLDER}/models/{page.name}.png"


def _shown(page: ModelPage) -> Section | None:
    """Return the first finding of a model whose signature is drawn, in the order of the site."""
    return next((section for section in page.sections if section.signature is not None), None)
