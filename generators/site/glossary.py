"""What the words of the atlas mean, and how pages link each at its first use."""

import html
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from generators.site.locations import packaged

PAGE = "glossary/"
TAG = re.compile(r"""(<(?:[^<>"']|"[^"]*"|'[^']*')*>)""")
NAME = re.compile(r"</?\s*([a-zA-Z][\w-]*)")
# Text in which words are linked, and what in it is left alone: other links, names, numbers, headings.
TEXT = frozenset({"p", "li", "dd"})
HEADINGS = {f"h{level}" for level in range(1, 7)}
FORMS = {"button", "label", "option", "select", "summary", "textarea"}
LEFT_ALONE = frozenset(
    {"a", "abbr", "code", "figure", "math", "pre", "script", "style", "svg", "table", *HEADINGS, *FORMS}
)


@dataclass(frozen=True)
class Term:
    """A word, its other spellings, what it means, and the words `akin` to it by which readers may look for it.

    `at` is the address in the site that shows all that the word names, where there is one.
    """

    term: str
    says: str
    also: tuple[str, ...] = ()
    pattern: str | None = None
    akin: tuple[str, ...] = ()
    at: str = ""

    @property
    def id(self) -> str:
        return re.sub(r"\W+", "-", self.term.lower())

    @property
    def spellings(self) -> tuple[str, ...]:
        """Return regular expressions of all its spellings, the longest first."""
        if self.pattern is not None:
            return (self.pattern,)
        spelled = sorted((self.term, *self.also), key=len, reverse=True)
        return tuple(re.escape(one).replace(r"\ ", r"\s") for one in spelled)  # spaces that don't break, too


@cache
def glossary() -> tuple[Term, ...]:
    entries: list[dict[str, Any]] = yaml.safe_load((packaged("templates") / "glossary.yml").read_text("utf-8"))
    terms = [
        Term(**{**one, "says": one["says"].strip()} | {name: tuple(one.get(name, ())) for name in ("also", "akin")})
        for one in entries
    ]
    return tuple(sorted(terms, key=lambda one: one.term.lower()))


@cache
def _words() -> tuple[re.Pattern[str], tuple[Term, ...]]:
    """Return what finds any term, and which one each group of it is."""
    terms = glossary()
    longest_first = sorted(
        ((spelling, i) for i, term in enumerate(terms) for spelling in term.spellings), key=lambda one: -len(one[0])
    )
    found = "|".join(f"(?P<t{i}_{n}>{spelling})" for n, (spelling, i) in enumerate(longest_first))
    return re.compile(rf"(?<![\w&#/-])(?:{found})(?![\w-]| Atlas)", re.IGNORECASE), terms


def with_terms(page: str, address: str) -> str:
    """Return a page's content in which the first use of every term leads to the glossary, which is at `address`."""
    pattern, terms = _words()
    seen: set[int] = set()
    alone = inside = 0

    def link(found: re.Match[str]) -> str:
        i = int(str(found.lastgroup)[1:].partition("_")[0])
        if i in seen:
            return found[0]
        seen.add(i)
        says = html.escape(terms[i].says, quote=True)
        return f'<a class="term" href="{address}#{terms[i].id}" data-says="{says}">{found[0]}</a>'

    parts: list[str] = []
    for part in TAG.split(page):
        name = NAME.match(part)
        if name is None:
            parts.append(pattern.sub(link, part) if inside and not alone else part)
            continue
        step = -1 if part.startswith("</") else 0 if part.endswith("/>") else 1
        inside += step if name[1].lower() in TEXT else 0
        alone += step if name[1].lower() in LEFT_ALONE else 0
        parts.append(part)
    return "".join(parts)
