"""What the home page opens with: stories that a visitor can tell a friend, each with the figure that shows it.

The results decide which ones: a claim that holds nowhere tells nothing. A finding's facts name its stories; its
template has their words, `headline` and `story`.
"""

from collections.abc import Mapping, Sequence
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


def _told(finding: str, story: Story, pages: Sequence[ModelPage]) -> Told | None:
    for page in pages:
        claim = page.claims.get(story.claim)
        section = next(section for section in page.sections if section.finding.name == finding)
        picture = next((one for one in section.pictures if one.name == story.figure), None)
        if claim is not None and claim.verdict == "holds" and picture is not None:
            return Told(story.claim, page, section, picture)
    return None
