"""What readers look for by name: words of the glossary and things that results name, as entries of the search.

The theme's search makes its index from the headings of pages; these entries lead to places that have none, and to the
panels of things.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from generators.base.plain import as_json
from generators.site.addresses import PLACE
from generators.site.glossary import PAGE, glossary
from generators.site.staging import Staging
from generators.site.things import Notable
from generators.site.view import ModelPage

ENTRIES = "search.json"  # in the staging folder; no page of the site
INDEX = "search/search_index.json"  # in the built site
BOOST = 0.3  # of things: a page about channels comes before the channels of fifty models


def write_search(pages: Sequence[ModelPage], things: Mapping[str, Iterable[Notable]], staging: Staging) -> None:
    """Write the entries beside the pages that they lead to; `things` are those that results name, by model."""
    named = [entry for page in pages for entry in entries_of_model(page, things.get(page.name, ()))]
    staging.write(ENTRIES, as_json([*entries_of_glossary(), *named]))


def entries_of_glossary() -> list[dict[str, Any]]:
    """Return an entry for every word of the glossary, with its other spellings and the words akin to it."""
    return [
        _entry(f"{PAGE}#{term.id}", term.term, " ".join([term.says, f"Also: {', '.join(more)}." if more else ""]))
        for term in glossary()
        for more in [(*term.also, *term.akin)]
    ]


def entries_of_model(page: ModelPage, things: Iterable[Notable]) -> list[dict[str, Any]]:
    """Return an entry for every thing of a model that results name, and one that says where all others are."""
    address = f"models/{page.name}/"
    look_up = f"Any channel, head, token or position of {page.title}: all that is known of it in one place."
    return [
        _entry(f"{address}#{PLACE}", f"Look up a channel, a head, a token of {page.title}", look_up, BOOST),
        *(
            _entry(f"{address}{_without_place(one)}", f"{one.called} of {page.title}", one.says, BOOST)
            for one in things
        ),
    ]


def add_entries(folder: Path, site: Path) -> None:
    """Add the entries that were written to `folder` to the index of a built site, where it has one."""
    entries, index = folder / ENTRIES, site / INDEX
    if not entries.is_file() or not index.is_file():
        return
    content: dict[str, Any] = json.loads(index.read_text("utf-8"))
    added = json.loads(entries.read_text("utf-8"))
    taken = {entry["location"] for entry in added}
    content["docs"] = [*(one for one in content["docs"] if one["location"] not in taken), *added]
    index.write_text(json.dumps(content, separators=(",", ":")), "utf-8")


def _without_place(thing: Notable) -> str:
    """Return where a thing's panel opens; the theme doesn't find an entry of its own with a place behind a query."""
    return thing.address.partition("#")[0]


def _entry(location: str, title: str, text: str, boost: float = 1) -> dict[str, Any]:
    """Return an entry; the theme shows title and text as HTML."""
    shown = {"title": escape(title, quote=False), "text": escape(text.strip(), quote=False)}
    return {"location": location, **shown, **({} if boost == 1 else {"boost": boost})}
