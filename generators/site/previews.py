"""The picture by which a page's link is shown elsewhere, and what its `<head>` says for that (Open Graph)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from markupsafe import Markup

from generators.base import digests
from generators.base.cache import Cache, key
from generators.base.plain import as_json, canonical_json
from generators.base.sentences import many
from generators.compute.records import by_verdict
from generators.drawing import card as cards
from generators.drawing.card import Card
from generators.findings.contract import Figure
from generators.site.pictures import Picture
from generators.site.questions import Question, questions
from generators.site.staging import Staging
from generators.site.view import ModelPage, Section

PREVIEWS = "previews.json"  # in the staging folder; no file of the site
FOLDER = "previews"
SITE = "Helix Atlas"
OTHERS = ""  # the entry of pages that have no picture of their own


@dataclass(frozen=True)
class Preview:
    """A page's picture, from the site's root, and what it shows, for those who can't see it."""

    image: str
    alt: str


def model_preview(page: ModelPage, staging: Staging) -> dict[str, bytes]:
    """Return the picture of a model's page, by its path; it is drawn only if the cache has no such picture."""
    card, figure, picture = model_card(page), _figure(page), _picture(page)
    shown = None if picture is None else staging.folder / picture.light
    return {_of_model(page.name): _drawn(card, staging.cache, figure, shown)}


def write_previews(pages: Sequence[ModelPage], staging: Staging) -> None:
    """Write the pictures of questions and of all other pages, and which page has which; models have theirs."""
    made = {f"models/{page.name}": _preview(_of_model(page.name), model_card(page)) for page in pages}
    for one in questions():
        path, card = f"{FOLDER}/questions/{one.name}.png", question_card(one, pages)
        staging.write(path, _drawn(card, staging.cache))
        made[f"questions/{one.name}"] = _preview(path, card)
    site = site_card(pages)
    staging.write(f"{FOLDER}/atlas.png", _drawn(site, staging.cache))
    made[OTHERS] = _preview(f"{FOLDER}/atlas.png", site)
    staging.write(PREVIEWS, as_json({page: asdict(one) for page, one in made.items()}))


def model_card(page: ModelPage) -> Card:
    """Return the card of a model's page: its sizes, what its figure shows, and its claims by verdict."""
    model, claims, picture = page.findings.model, page.findings.claims, _picture(page)
    layers, kind = many(model.n_layer, "layer"), {True: ", decoder", False: ", encoder", None: ""}[model.causal]
    sizes = f"{layers}, {model.d_model} channels, {model.family}{kind}"
    words = "" if picture is None else f"{picture.title}."
    return Card(f"{SITE}: {sizes}", page.title, words, by_verdict(claims), many(len(claims), "claim"))


def question_card(asked: Question, pages: Sequence[ModelPage]) -> Card:
    """Return the card of a question's page: the question, and its claims by verdict, over all models."""
    names = {finding.name for finding in asked.findings}
    counts = by_verdict([claim for page in pages for claim in page.findings.claims if claim.finding in names])
    rules = sum(len(finding.rules) for finding in asked.findings)
    counted = f"{many(rules, 'claim')} in {many(len(pages), 'model')}"
    return Card(f"{SITE}: a question", asked.short, asked.title, counts, counted if counts else "")


def site_card(pages: Sequence[ModelPage]) -> Card:
    """Return the card of all other pages: all claims by verdict, over all models."""
    counts = by_verdict([claim for page in pages for claim in page.findings.claims])
    claims = many(sum(len(one.rules) for asked in questions() for one in asked.findings), "claim")
    words = "Which findings about GPT-2's embeddings hold in which models, with numbers and chance baselines."
    return Card("", SITE, words, counts, f"{claims} in {many(len(pages), 'model')}")


def read_previews(folder: Path) -> dict[str, Preview]:
    """Return the previews that were written to a staging folder by page, without ending."""
    path = folder / PREVIEWS
    known: dict[str, dict[str, str]] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return {page: Preview(**found) for page, found in known.items()}


def preview_of(page: str, known: Mapping[str, Preview]) -> Preview | None:
    """Return the preview of a page by its path without ending; None where there are none."""
    return known.get(page) or known.get(OTHERS)


def tags(preview: Preview, title: str, description: str, image: str, address: str | None) -> str:
    """Return what a page's `<head>` says of it for those who show its link.

    Args:
        preview: the page's picture.
        title: the page's.
        description: the page's.
        image: where the picture is: absolute if the site's address is known, else relative to the page.
        address: the page's, if known.
    """
    of_graph = {
        "og:type": "website",
        "og:site_name": SITE,
        "og:title": title,
        "og:description": description,
        "og:url": address,
        "og:image": image,
        "og:image:type": "image/png",
        "og:image:width": str(cards.WIDTH),
        "og:image:height": str(cards.HEIGHT),
        "og:image:alt": preview.alt,
    }
    said = [f'<meta property="{name}" content="{escape(text)}">' for name, text in of_graph.items() if text]
    return "".join([*said, '<meta name="twitter:card" content="summary_large_image">'])


def _of_model(name: str) -> str:
    return f"{FOLDER}/models/{name}.png"


def _shown(page: ModelPage) -> Section | None:
    """Return the first finding of a model whose signature is drawn, in the order of the site."""
    return next((section for section in page.sections if section.signature is not None), None)


def _picture(page: ModelPage) -> Picture | None:
    section = _shown(page)
    return None if section is None else section.signature


def _figure(page: ModelPage) -> Figure | None:
    """Return what draws the figure of a model's card; its page has just been made from measurements."""
    section = _shown(page)
    if section is None or section.measured is None:
        return None
    return next(one for one in section.finding.figures(section.measured) if one.name == section.finding.signature)


def _drawn(card: Card, cache: Cache, figure: Figure | None = None, shown: Path | None = None) -> bytes:
    """Return a card's picture; `shown` is its figure as the page has it, by which a changed one is known."""
    of_figure = "" if shown is None else digests.of_folder(shown)
    name = key(canonical_json(asdict(card)), digests.of_drawing(), of_figure, ending=".png")
    return cache.get_or_make(name, lambda: cards.png(card, None if figure is None else figure.draw))


def _preview(path: str, card: Card) -> Preview:
    counts = ", ".join(f"{count} {cards.VERBS[kind]}" for kind, count in card.counts.items() if count)
    said = f"{card.title}: {card.counted}, {counts}." if counts else f"{card.title}."
    return Preview(path, said)


def plain_text(html: str) -> str:
    """Return a title or a description without markup, as the theme writes it into `<title>`."""
    return Markup(html).striptags()
