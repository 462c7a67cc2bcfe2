"""The feed of changed results: valid Atom, dated by results, with names that stay."""

import json
import re
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest

from generators.findings import FINDINGS
from generators.site.feed import ENTRIES, FEED, as_atom, summary, write_entries, write_feed
from generators.site.staging import Staging

ATOM = "{http://www.w3.org/2005/Atom}"
ADDRESS = "https://example.org/atlas/"
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")  # RFC 3339
RULES = [rule for finding in FINDINGS for rule in finding.rules]


def page(name: str, computed_on: str | None, *verdicts: str) -> SimpleNamespace:
    claims = [SimpleNamespace(id=rule.id, verdict=kind) for rule, kind in zip(RULES, verdicts, strict=False)]
    return SimpleNamespace(
        name=name,
        address=f"models/{name}/",
        title=f"{name} & <b>co</b>",
        computed_on=computed_on,
        findings=SimpleNamespace(claims=claims),
    )


PAGES = [
    page("older", "2026-01-31", "holds", "fails"),
    page("newest", "2026-11-22", "untested"),
    page("never", None, "untested"),
    page("broken", "soon", "holds"),
    page("old", "2026-02-01", "holds", "holds", "partly", "untested", "untested"),
]


@pytest.fixture
def staging(tmp_path):
    return Staging(tmp_path / "pages", tmp_path / "cache")


def entries_of(pages, staging) -> list[dict[str, str]]:
    write_entries(pages, staging)
    return json.loads((staging.folder / ENTRIES).read_text())


def text(element: ET.Element, name: str) -> str:
    (found,) = element.findall(ATOM + name)
    return found.text or ""


def links(element: ET.Element) -> dict[str, str]:
    return {link.get("rel", ""): link.get("href", "") for link in element.findall(ATOM + "link")}


def test_every_measured_model_has_an_entry_newest_first(staging):
    feed = ET.fromstring(as_atom(entries_of(PAGES, staging), ADDRESS))
    entries = feed.findall(ATOM + "entry")
    assert [links(entry) for entry in entries] == [
        {"alternate": f"{ADDRESS}models/{name}/"} for name in ("newest", "old", "older")
    ]
    assert [text(entry, "updated") for entry in entries] == [
        f"{day}T00:00:00Z" for day in ("2026-11-22", "2026-02-01", "2026-01-31")
    ]
    assert text(entries[0], "title") == "newest & <b>co</b>"


def test_it_has_what_atom_asks_for(staging):
    feed = ET.fromstring(as_atom(entries_of(PAGES, staging), ADDRESS))
    assert feed.tag == f"{ATOM}feed"
    assert text(feed, "updated") == "2026-11-22T00:00:00Z"
    assert feed.find(f"{ATOM}author/{ATOM}name").text
    assert links(feed) == {"self": f"{ADDRESS}{FEED}", "alternate": ADDRESS}
    named = [feed, *feed.findall(ATOM + "entry")]
    ids = [text(element, "id") for element in named]
    assert all(id.startswith("urn:uuid:") for id in ids) and len({*ids}) == len(ids)
    assert all(text(element, "title") and INSTANT.fullmatch(text(element, "updated")) for element in named)
    assert all(text(entry, "summary") for entry in named[1:])


def test_an_entry_keeps_its_name_when_its_results_change(staging):
    def ids(pages) -> set[str]:
        feed = ET.fromstring(as_atom(entries_of(pages, staging), ADDRESS))
        return {text(entry, "id") for entry in feed.findall(ATOM + "entry")}

    before = ids(PAGES[:1])
    assert ids([page("older", "2026-11-23", "fails")]) == before
    assert ids([page("other", "2026-01-31", "holds", "fails")]).isdisjoint(before)


def test_a_summary_counts_verdicts_and_names_claims():
    first, second, third = (rule.short for rule in RULES[:3])
    assert summary(PAGES[-1]) == (
        f"Of 5 claims, 2 hold, 1 holds partly, 2 are untested. Holds: {first}, {second}. Partly: {third}."
    )
    assert summary(page("none", None)) == "No claim is made."


def test_where_the_address_is_not_known_links_are_relative(staging):
    feed = ET.fromstring(as_atom(entries_of(PAGES, staging), ""))
    assert links(feed) == {"alternate": "."}
    assert links(feed.find(ATOM + "entry")) == {"alternate": "models/newest/"}
    assert all(id.text.startswith("urn:uuid:") for id in feed.iter(ATOM + "id"))


def test_the_same_results_are_the_same_bytes_whenever_it_is_built(staging, tmp_path):
    write_entries(PAGES, staging)
    built = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        write_feed(staging.folder, tmp_path / name, ADDRESS)
        built.append((tmp_path / name / FEED).read_bytes())
    assert built[0] == built[1]
    assert built[0].startswith(b"<?xml")


def test_without_measured_models_there_is_none(staging, tmp_path):
    for written in ([], [page("never", None, "untested")]):
        write_entries(written, staging)
        write_feed(staging.folder, tmp_path, ADDRESS)
        assert not (tmp_path / FEED).exists()
