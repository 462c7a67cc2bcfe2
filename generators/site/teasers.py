"""What the home page opens with: findings that a visitor can tell a friend, each with the picture that shows it.

The results decide which ones: a claim that holds nowhere opens nothing. The facts of a finding name its claim;
its template has the words, `headline`, and `teaser` for what is seen in the model shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.site.learned import Lesson, lessons
from generators.site.pictures import Picture
from generators.site.view import ModelPage, Section

MOST = 3


@dataclass(frozen=True)
class Teaser:
    """A claim, the first model for which it holds with its section and picture, and all models together."""

    claim: str
    page: ModelPage
    section: Section
    picture: Picture
    lesson: Lesson

    @property
    def metrics(self) -> Mapping[str, Any]:
        return self.section.record.metrics or {}


def teasers(pages: Sequence[ModelPage]) -> list[Teaser]:
    """Return at most `MOST` teasers, of claims that hold in some model that has a picture of them."""
    return list(islice((made for finding in FINDINGS for made in _teaser(finding, pages)), MOST))


def hero(pages: Sequence[ModelPage]) -> tuple[ModelPage, Picture] | None:
    """Return the first finding to tease with and the first model that has a picture of it, if it holds for none."""
    first = next((finding for finding in FINDINGS if finding.facts.teaser is not None), None)
    if first is None:
        return None
    holding = ((one.page, one.picture) for one in _teaser(first, pages))
    drawn = ((page, section.signature) for page, section in _sections(first, pages))
    return next(holding, None) or next(((page, picture) for page, picture in drawn if picture is not None), None)


def _sections(finding: Finding[Any], pages: Sequence[ModelPage]) -> Iterator[tuple[ModelPage, Section]]:
    yield from ((page, section) for page in pages for section in page.sections if section.finding is finding)


def _teaser(finding: Finding[Any], pages: Sequence[ModelPage]) -> Iterator[Teaser]:
    """Yield the finding's teaser, in the first model for which its claim holds; nothing where there is none."""
    rule = next((rule for rule in finding.rules if rule.id == finding.facts.teaser), None)
    if rule is None:
        return
    for page, section in _sections(finding, pages):
        claim, picture = page.claims.get(rule.id), section.signature
        if claim is not None and claim.verdict == "holds" and picture is not None:
            (lesson,) = lessons([rule], pages)
            yield Teaser(rule.id, page, section, picture, lesson)
            return
