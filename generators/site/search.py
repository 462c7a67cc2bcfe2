"""What readers look for by name: words of the glossary and entities that results name, as entries of the search.

The theme's search makes its index from the headings of pages; these entries lead to places that have none, and to the
panels of entities. Words for which one place is the answer are tags of it, which the theme puts before all else.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import yaml

from generators.base.plain import as_json
from generators.findings import FINDINGS
from generators.site.addresses import PLACE
from generators.site.glossary import PAGE, glossary
from generators.site.locations import packaged
from generators.site.questions import address_of
from generators.site.staging import Staging
from generators.site.view import Absent, ModelPage
from generators.site.words import question

ENTRIES = "search.json"  # in the staging folder; no page of the site
INDEX = "search/search_index.json"  # in the built site
ANSWERS = "search.yml"  # among templates
MODEL = re.compile(r"models/([^/#]+)/")  # a model's page, which is found by the name that commands take
WORKERS = "assets/javascripts/workers"  # in the built site
# lunr tells the nodes of its automaton of words apart by each edge's letter and the number of the node it leads to,
# written one after another. A letter that is a digit may be read as part of a number: then two nodes are taken for
# one, the automaton accepts words that the index lacks, and the search fails:
# https://github.com/olivernn/lunr.js/issues/503
AMBIGUOUS, APART = "e=e+s+o.id", 'e=e+s+o.id+","'
# The theme finds places with any of the words, and with all only where they are in quotes. Here all are asked for;
# where no place has all, any of the words will do.
ANY, ALL = "n&1?r.replace(", "1?r.replace("
ASKED = "n=this.index.search(e).reduce("
ASKED_AGAIN = r"""n=[e,e.replace(/(^|\s)\+/g,"$1")].reduce((s,o)=>s.length?s:this.index.search(o),[]).reduce("""
# It finds words by how they begin, but not those that are asked for by a plus sign, as all now are. Stop words can't
# be asked for: the index has none.
WHOLE = "/(^[+-]|[~^]\\d+$)/.test(r)?r:"
BEGUN = "/(^-|[~^]\\d+$)/.test(r)?r:lunr.stopWordFilter&&!lunr.stopWordFilter(r.slice(1).toLowerCase())?r.slice(1):"
MENDED = {AMBIGUOUS: APART, ANY: ALL, WHOLE: BEGUN, ASKED: ASKED_AGAIN}


def write_search(pages: Sequence[ModelPage], absent: Iterable[Absent], staging: Staging) -> None:
    """Write the entries beside the pages that they lead to; members of series are among `pages`."""
    named = [entry for page in pages for entry in entries_of_model(page)]
    asked = [_entry(address_of(one), one.title, question(one.name)) for one in FINDINGS if not one.rules]
    staging.write(ENTRIES, as_json([*entries_of_glossary(), *asked, *named, *map(entry_of_absent, absent)]))


def entry_of_absent(absent: Absent) -> dict[str, Any]:
    """Return an entry for a model without results: the command that computes it is the answer."""
    model = absent.model
    said = f"{model.adds or ''} Not computed yet. With the weights at hand: atlas compute {model.name}"
    return _entry(f"models/#absent-{model.name}", f"{model.title} ({model.name}): not computed yet", said)


def entries_of_glossary() -> list[dict[str, Any]]:
    return [
        _entry(f"{PAGE}#{term.id}", term.term, " ".join([term.says, f"Also: {', '.join(more)}." if more else ""]))
        for term in glossary()
        for more in [(*term.also, *term.akin)]
    ]


def entries_of_model(page: ModelPage) -> list[dict[str, Any]]:
    """Return an entry for every entity of a model that results name, and one that says where all others are.

    A member of a series has one entry in all: such models are many and much alike.
    """
    address = page.address
    if page.series_page is not None:
        return [_entry(address, f"{page.title} (series member)", page.notes or "")]
    look_up = f"Any channel, head, token or position of {page.title}: all that is known of it in one place."
    return [
        _entry(f"{address}#{PLACE}", f"Look up a channel, a head, a token of {page.title}", look_up),
        *(
            # the theme doesn't find an entry that has a place behind a query
            _entry(f"{address}{one.address.partition('#')[0]}", f"{one.called} of {page.title}", one.says)
            for one in page.named
        ),
    ]


def add_entries(folder: Path, site: Path) -> None:
    """Add the entries that were written to `folder` to the index of a built site; a report has none."""
    entries, index = folder / ENTRIES, site / INDEX
    if not entries.is_file():
        return
    content: dict[str, Any] = json.loads(index.read_text("utf-8"))
    added, words = json.loads(entries.read_text("utf-8")), answers()
    taken = {entry["location"] for entry in added}
    others = [one for one in content["docs"] if one["location"] not in taken]
    content["docs"] = [with_tags(one, words) for one in (*others, *added)]
    index.write_text(json.dumps(content, separators=(",", ":")), "utf-8")


def mend_lunr(site: Path) -> None:
    """Have a built site's search keep the nodes of lunr's automaton apart, and ask for all words: see `MENDED`.

    Raises:
        ValueError: the theme's search is written otherwise, so that one has to look whether it needs this still.
    """
    for worker in (site / WORKERS).glob("search.*.min.js"):
        code = worker.read_text("utf-8")
        for theirs, ours in MENDED.items():
            if code.count(theirs) != 1:
                raise ValueError(f"{worker} is another version of the theme's search: see mend_lunr.")
            code = code.replace(theirs, ours)
        worker.write_text(code, "utf-8")


def answers() -> dict[str, list[str]]:
    said = yaml.safe_load((packaged("templates") / ANSWERS).read_text("utf-8"))
    of_findings = {address_of(finding): [*finding.words.search] for finding in FINDINGS if finding.words.search}
    return {one["at"]: one["words"] for one in said} | of_findings


def with_tags(entry: dict[str, Any], words: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return an entry with the words that it answers; a model's page answers its name."""
    model = MODEL.fullmatch(entry["location"])
    tags = [*words.get(entry["location"], ()), *([model[1]] if model else [])]
    return {**entry, "tags": tags} if tags else entry


def _entry(location: str, title: str, text: str) -> dict[str, Any]:
    """Return an entry; the theme shows title and text as HTML."""
    return {"location": location, "title": escape(title, quote=False), "text": escape(text.strip(), quote=False)}
