"""What the home page opens with: stories that a visitor can tell a friend, each with the figure that shows it.

The results decide which ones: a claim that holds nowhere tells nothing. A finding's facts name its stories; its
template has their words, `headline` and `story`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generators.findings import FINDINGS
from generators.findings.facts import Story
from generators.site.pictures import Picture
from generators.site.view import ModelPage, Section

MOST = 3


@dataclass(frozen=True)
class Told:
    """A story, and the first model for which its claim holds, with its section and picture."""

    claim: str
    page: ModelPage
    section: Section
    picture: Picture

    @property
    def metrics(self) -> Mapping[str, Any]:
        return self.section.record.metrics or {}


def stories(pages: Sequence[ModelPage]) -> list[Told]:
    """Return at most `MOST` stories, of claims that hold in some model that has a picture of them."""
    ranked = sorted(
        ((story.rank, finding.name, story) for finding in FINDINGS for story in finding.facts.stories),
        key=lambda one: one[:2],
    )
    told = (_told(name, story, pages) for _, name, story in ranked)
    return [one for one in told if one is not None][:MOST]


def hero(pages: Sequence[ModelPage]) -> tuple[ModelPage, Picture] | None:
    """Return the first story's model and picture; where it holds for none, the first model with a picture of it."""
    first = min(
        (finding for finding in FINDINGS if finding.facts.stories),
        key=lambda finding: min(story.rank for story in finding.facts.stories),
        default=None,
    )
    if first is None:
        return None
    told = next((one for one in stories(pages) if one.section.finding is first), None)
    if told is not None:
        return told.page, told.picture
    drawn = ((page, section.signature) for page, section in _sections(first.name, pages))
    return next(((page, picture) for page, picture in drawn if picture is not None), None)


def _sections(finding: str, pages: Sequence[ModelPage]) -> Iterator[tuple[ModelPage, Section]]:
    yield from ((page, section) for page in pages for section in page.sections if section.finding.name == finding)


def _told(finding: str, story: Story, pages: Sequence[ModelPage]) -> Told | None:
    for page, section in _sections(finding, pages):
        claim = page.claims.get(story.claim)
        picture = next((one for one in section.pictures if one.name == story.figure), None)
        if claim is not None and claim.verdict == "holds" and picture is not None:
            return Told(story.claim, page, section, picture)
    return None
