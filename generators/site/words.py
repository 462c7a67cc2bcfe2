"""Templates, and the words about a finding that stand in its own: captions, and texts for those who can't see."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2
import yaml
from markupsafe import Markup, escape

from generators.base.progress import printable
from generators.base.sentences import listed
from generators.base.text import (
    NO_BREAK,
    formula,
    in_markdown,
    in_unit,
    in_units,
    number,
    share,
    two,
    typeset,
    with_unit,
)
from generators.base.verdicts import SYMBOLS
from generators.compute.records import ClaimRecord
from generators.drawing.strip import strip
from generators.findings import FINDINGS
from generators.findings.judging import Rule
from generators.findings.measured import Measurements
from generators.findings.wording import Quoted
from generators.site.locations import packaged
from generators.site.questions import address_by_name, address_of_rule

BEFORE_PERCENT = re.compile(r"(?<=\d) (?=%(?!\w))")
SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z])")  # between two


@dataclass(frozen=True)
class Caption:
    """What a figure shows for this model, and how to read it."""

    how_to_read: Markup
    alt: str

    @property
    def shows(self) -> str:
        """Return the sentence that a caption begins with."""
        return first_sentence(self.alt)


def rules() -> tuple[Rule[Any], ...]:
    return tuple(rule for finding in FINDINGS for rule in finding.rules)


class _Page(jinja2.Template):
    """A template whose pages break no line between a number and its %."""

    def render(self, *args: Any, **kwargs: Any) -> str:
        return BEFORE_PERCENT.sub(NO_BREAK, super().render(*args, **kwargs))


def environment(*, whole: bool = True) -> jinja2.Environment:
    """Return Jinja as all templates expect it; `whole` says whether they make the whole site or a report."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(packaged("templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.template_class = _Page
    made.filters |= {
        "number": number,
        "brief": brief,
        "millions": in_millions,
        "share": share,
        "in_unit": in_unit,
        "in_units": in_units,
        "with_unit": with_unit,
        "table_title": table_title,
        "two": two,
        "front_matter": front_matter,
        "md": in_markdown,
        "tex": formula,
        "listed": listed_in_words,
    }
    by_id = {rule.id: rule for rule in rules()}
    made.globals |= {
        "symbols": SYMBOLS,
        "rule": by_id.__getitem__,
        "threshold": threshold_in_words,
        "strip": claim_strip,
        "quoted_strip": quoted_strip,
        "paragraphs": paragraphs,
        "whole": whole,
        "at_finding": address_by_name,
        "at_rule": address_of_rule,
        "added": added,
    }
    return made


def front_matter(fields: Mapping[str, Any]) -> Markup:
    """Return what a page begins with, as YAML that says just this, whatever is in it; absent fields are left out."""
    given = {k: str(v) if isinstance(v, str) else v for k, v in fields.items() if v is not None}
    return Markup(f"---\n{yaml.safe_dump(given, allow_unicode=True, sort_keys=False, width=10_000)}---")


def claim_strip(claim: ClaimRecord, among: Sequence[float] = ()) -> Markup:
    """Return a claim's value, interval, threshold and chance on one line, on a scale that has all numbers `among`.

    It is green where the claim would hold, everything else being equal. Where its value is there and it doesn't hold,
    nothing is green, and the condition that isn't met is named; so is chance, where the threshold alone is reached.
    """
    rule = next(rule for rule in rules() if rule.id == claim.id)
    value, chance = claim.value, None if claim.chance is None else (claim.chance.median, claim.chance.limit)
    limit, lacking = None if chance is None else chance[1], ""
    holds_from = rule.stricter(claim.threshold, limit)
    if value is not None and claim.verdict != "holds" and rule.reached(value, claim.threshold):
        if limit is not None and not rule.beyond(value, limit):
            above, place = ("above", "99th") if rule.sense == "at least" else ("below", "1st")
            lacking = f"{above} the {place} percentile of chance, {in_unit(limit, claim.unit, value)}"
        else:
            holds_from, lacking = None, rule.also.removeprefix("and ").removeprefix("with ")
    drawn = strip(
        value, claim.interval, claim.threshold, chance, claim.unit, claim.interval_kind, rule.sense, among, holds_from
    )
    note = Markup(' <span class="also numbers">Not met: {}.</span>').format(lacking)
    return drawn + note if lacking else drawn


def quoted_strip(quoted: Quoted, rule: Rule[Any], among: Sequence[float]) -> Markup:
    return strip(
        quoted.value, None, rule.holds, None, rule.unit, sense=rule.sense, among=among, holds_from=rule.holds
    )


def caption(finding: str, figure: str, measured: Measurements[Any]) -> Caption:
    """Return the words about one figure: the macros `caption_...` and `alt_...` of the finding's template."""
    words, name = _words(finding), figure.replace("-", "_")
    how_to_read = getattr(words, f"caption_{name}")(measured.metrics, measured.arrays)
    alt = getattr(words, f"alt_{name}")(measured.metrics, measured.arrays)
    how_to_read, alt = (printable(" ".join(str(said).split())) for said in (how_to_read, Markup(alt).unescape()))
    return Caption(Markup(typeset(how_to_read)), typeset(alt))


def question(finding: str) -> str:
    """Return what a finding asks, without markup."""
    return Markup(_words(finding).question()).striptags()


def first_sentence(text: str) -> str:
    return SENTENCE.split(text)[0]


def paragraphs(words: Markup) -> tuple[Markup, Markup]:
    """Return the first paragraph of some words, and what follows it."""
    first, end, rest = words.partition(Markup("</p>"))
    return first + end, rest


@jinja2.pass_context
def added(context: jinja2.runtime.Context, name: str, *arguments: Any) -> list[Markup]:
    """Return what findings add to a page: what macros `add_<name>` say in the templates that have one."""
    made = []
    for finding in FINDINGS:
        template = context.environment.get_template(f"findings/{finding.name}.md.j2")
        macro = getattr(template.make_module(context.get_all()), f"add_{name}", None)
        made += [said] if macro is not None and (said := macro(*arguments).strip()) else []
    return made


@cache
def _words(finding: str) -> Any:
    return _shared().get_template(f"findings/{finding}.md.j2").make_module({"root": "../../"})


def table_title(stored: str) -> str:
    for pattern, words in _table_words().items():
        stored = re.sub(pattern, words, stored)
    return re.sub(r"(?<!channel )\b\d{4,}", lambda found: f"{int(found[0]):,}", stored)


@cache
def _table_words() -> dict[str, str]:
    return dict(yaml.safe_load((packaged("templates") / "table_titles.yml").read_text("utf-8")))


@cache
def _shared() -> jinja2.Environment:
    return environment()


def brief(value: float | None) -> str:
    """Return an effect as it stands in a cell among many: three significant digits, nothing where there is none."""
    if value is None:
        return ""
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def in_millions(count: int) -> str:
    return f"{count / 1e6:.{0 if count >= 1e7 else 1}f}{NO_BREAK}M"


def listed_in_words(items: Iterable[Any]) -> Markup:
    """Return "a", "a and b" or "a, b and c", of words, numbers or markup."""
    return Markup(listed([escape(item if isinstance(item, str) else number(item)) for item in items]))


def threshold_in_words(rule: Rule[Any]) -> str:
    """Return in words from where a claim holds."""
    holds = rule.holds_as if rule.holds is None else in_unit(rule.holds, rule.unit)
    partly = "" if rule.partly in (None, rule.holds) else f" (partly: {in_unit(rule.partly, rule.unit)})"
    return f"{rule.sense} {holds}{partly}{', ' + rule.also if rule.also else ''}"
