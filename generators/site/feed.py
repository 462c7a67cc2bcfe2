"""A feed of changed results (Atom, RFC 4287): an entry for each model, dated by its results.

Entries wait in the staging folder until MkDocs tells the site's address; the built site has `feed.xml`.
"""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from generators.base.plain import as_json
from generators.compute.records import by_verdict
from generators.findings.judging import Verdict
from generators.site.citing import AUTHORS
from generators.site.results_table import day
from generators.site.staging import Staging
from generators.site.view import ModelPage
from generators.site.words import rules

ENTRIES = "feed.json"  # in the staging folder; no file of the site
FEED = "feed.xml"  # in the built site
ATOM = "http://www.w3.org/2005/Atom"
MEDIA_TYPE = "application/atom+xml"
TITLE = "Helix Atlas: changed results"
SUBTITLE = "A model for each entry, when any of its findings was measured anew."
NAMED: tuple[Verdict, ...] = ("holds", "partly", "fails")  # verdicts whose claims a summary names
VERBS: Mapping[str, tuple[str, str]] = {  # of one claim, of several
    "holds": ("holds", "hold"),
    "partly": ("holds partly", "hold partly"),
    "fails": ("fails", "fail"),
    "untested": ("is untested", "are untested"),
}


def counted(page: ModelPage) -> str:
    """Return how many of a model's claims came to which verdict, in words."""
    counts = by_verdict(page.findings.claims)
    said = [f"{count} {VERBS[kind][count > 1]}" for kind, count in counts.items()]
    return f"Of {len(page.findings.claims)} claims, {', '.join(said)}." if said else "No claim is made."


def summary(page: ModelPage) -> str:
    """Return a model's verdicts in words: how many, and which claims by their short names."""
    short = {rule.id: rule.short for rule in rules()}
    named = [
        (kind, [short.get(claim.id, claim.id) for claim in page.findings.claims if claim.verdict == kind])
        for kind in NAMED
    ]
    return " ".join([counted(page), *(f"{kind.capitalize()}: {', '.join(names)}." for kind, names in named if names)])


def write_entries(pages: Iterable[ModelPage], staging: Staging) -> None:
    """Write what the feed is made from: models with a day on which they were measured, newest first."""
    entries = [
        {"address": page.address, "title": page.title, "day": measured, "summary": summary(page)}
        for page in pages
        if (measured := day(page.computed_on)) is not None
    ]
    staging.write(ENTRIES, as_json(sorted(entries, key=lambda entry: entry["day"], reverse=True)))


def has_feed(folder: Path) -> bool:
    """Return whether entries were written to a staging folder."""
    return bool(_entries(folder))


def write_feed(folder: Path, site: Path, address: str) -> None:
    """Write the feed of a built site from the entries in a staging folder, where there are any.

    `address` is the site's; where it isn't known it is empty, and links are relative to the feed.
    """
    entries = _entries(folder)
    if entries:
        (site / FEED).write_bytes(as_atom(entries, address))


def as_atom(entries: Sequence[Mapping[str, str]], address: str) -> bytes:
    """Return entries (at least one, newest first) as an Atom feed; of each the address, title, day and summary."""
    feed = ET.Element("feed", {"xmlns": ATOM, "xml:lang": "en"})  # no prefix is registered: that is for all of Python
    _texts(feed, title=TITLE, subtitle=SUBTITLE, id=_id(address, FEED), updated=_instant(entries[0]["day"]))
    if address:
        ET.SubElement(feed, "link", rel="self", type=MEDIA_TYPE, href=f"{address}{FEED}")
    ET.SubElement(feed, "link", rel="alternate", type="text/html", href=address or ".")
    _texts(ET.SubElement(feed, "author"), name=AUTHORS)
    for one in entries:
        entry = ET.SubElement(feed, "entry")
        _texts(entry, title=one["title"], id=_id(address, one["address"]), updated=_instant(one["day"]))
        ET.SubElement(entry, "link", rel="alternate", type="text/html", href=f"{address}{one['address']}")
        _texts(entry, summary=one["summary"])
    ET.indent(feed, " ")
    return ET.tostring(feed, "utf-8", xml_declaration=True) + b"\n"


def _entries(folder: Path) -> list[Any]:
    path = folder / ENTRIES
    found: list[Any] = json.loads(path.read_text("utf-8")) if path.is_file() else []
    return found


def _texts(parent: ET.Element, **texts: str) -> None:
    for name, text in texts.items():
        ET.SubElement(parent, name).text = text


def _id(address: str, path: str) -> str:
    """Return what names an entry for good: it follows from where its page is, and from nothing that changes there."""
    return uuid5(NAMESPACE_URL, f"{address or 'helix-atlas/'}{path}").urn


def _instant(day: str) -> str:
    return f"{day}T00:00:00Z"
