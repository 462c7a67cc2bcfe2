"""The words of a finding, from the YAML file beside its code.

Sentences are Jinja templates over the numbers that a rule returns. Measuring code doesn't import this.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from generators.base.sentences import first, layers, listed, many
from generators.base.text import in_units, ordinal, share, two

if TYPE_CHECKING:
    import jinja2


@dataclass(frozen=True)
class Quoted:
    """A figure that others published: of which model, in the claim's unit, and where."""

    model: str
    value: float
    source: str
    url: str


@dataclass(frozen=True)
class ClaimWords:
    """What a claim is called, and the template of its verdict in one sentence, `answer`.

    `value` says what its number is, `also` what else must be true, `holds_as` the threshold where it is relative to
    chance (the rule's is None then), `why` that threshold, `over` what its interval is over, where that isn't what
    others' are. `measured_in` is where the metrics have the unit of a cost that differs between models, such as
    "rows.unit". `quoted` are others' figures.
    """

    short: str
    statement: str
    value: str
    answer: str
    unit: str = ""
    also: str = ""
    over: str = ""
    holds_as: str = ""
    why: str = ""
    measured_in: str = ""
    quoted: tuple[Quoted, ...] = ()


@dataclass(frozen=True, eq=False)
class Words:
    """What is in the file.

    Args:
        title: of the finding.
        order: its place on pages.
        question: the number of the question that it helps to answer, in `templates/questions.yml`.
        claims: words by a claim's id.
        untested: why claims can't be tested, by the name that rules give the reason.
        search: words by which the search finds the finding's page first.
    """

    title: str
    order: int
    question: int
    claims: Mapping[str, ClaimWords] = field(default_factory=dict)
    untested: Mapping[str, str] = field(default_factory=dict)
    search: tuple[str, ...] = ()


@cache
def words_of(package: str) -> Words:
    """Return the words of the finding in a package; the file has the package's name.

    `macros` in it are Jinja macros for its sentences.
    """
    import yaml

    file = resources.files(package) / f"{package.rpartition('.')[2]}.yml"
    content = yaml.load(file.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    macros, claims = content.pop("macros", ""), content.pop("claims", {})
    untested = {name: macros + reason for name, reason in content.pop("untested", {}).items()}
    for words in claims.values():
        words["answer"] = macros + words["answer"]
        words["quoted"] = tuple(Quoted(**one) for one in words.get("quoted", ()))
    said = {id: ClaimWords(**words) for id, words in claims.items()}
    return Words(**content | {"search": tuple(content.get("search", ()))}, claims=said, untested=untested)


def sentence(template: str, numbers: Mapping[str, Any]) -> str:
    """Return what a template says; line breaks in it are spaces.

    >>> sentence("{{ x | share }} of {{ n }}, {{ r | form('+.2f') }}", {"x": 0.25, "n": 4.0, "r": 0.5})
    '25\\xa0% of 4, +0.50'
    """
    return re.sub(r"[ \n]+", " ", _template(template).render(numbers)).strip() if "{" in template else template


@cache
def _template(source: str) -> "jinja2.Template":
    return _jinja().from_string(source)


@cache
def _jinja() -> "jinja2.Environment":
    import jinja2

    made = jinja2.Environment(undefined=jinja2.StrictUndefined, finalize=_written, autoescape=False)
    made.filters |= {each.__name__: each for each in (share, two, in_units, ordinal, many, layers)}
    made.filters |= {"listed": lambda words: listed([*words]), "first_few": first, "form": format}
    made.filters["as_head"] = lambda row: f"L{row['layer']}H{row['head']}"
    return made


def _written(value: Any) -> Any:
    return f"{value:g}" if isinstance(value, float) else value
