"""What the home page opens with: findings that a visitor can tell a friend, each with the picture that shows it.

Which ones is told by the results: a claim that holds nowhere opens nothing, whatever it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generators.base.sentences import listed, many
from generators.findings import FINDINGS
from generators.site.learned import Lesson, lessons
from generators.site.pictures import Picture
from generators.site.view import ModelPage, Section

# Claims worth telling, the most telling first; `templates/openings.j2` has the words for each.
CLAIMS = ("winding", "ln2-one-channel", "clump", "exact-positions")
HELIX = ("three-components", "winding")  # a model has the helix if all of these hold
MOST = 3
FEW = 5  # models that are named


@dataclass(frozen=True)
class Opening:
    """A claim, the first model for which it holds with its section and picture, and all models together."""

    claim: str
    page: ModelPage
    section: Section
    picture: Picture
    lesson: Lesson
    helix: str = ""  # of the claim that is a part of it: in how many models all of it holds

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Return what was measured of the model."""
        return self.section.record.metrics or {}


def openings(pages: Sequence[ModelPage]) -> list[Opening]:
    """Return at most `MOST` openings, of claims that hold in some model that has a picture of them."""
    found = (_opening(claim, pages) for claim in CLAIMS)
    return [one for one in found if one is not None][:MOST]


def _opening(claim: str, pages: Sequence[ModelPage]) -> Opening | None:
    finding = next(finding for finding in FINDINGS if any(rule.id == claim for rule in finding.rules))
    rule = next(rule for rule in finding.rules if rule.id == claim)
    for page in pages:
        if claim not in page.claims or page.claims[claim].verdict != "holds":
            continue
        section = next(section for section in page.sections if section.finding is finding)
        if section.signature is not None:
            (lesson,) = lessons([rule], pages)
            helix = helix_in_words(pages) if claim in HELIX else ""
            return Opening(claim, page, section, section.signature, lesson, helix)
    return None


def helix_in_words(pages: Sequence[ModelPage]) -> str:
    """Return in how many models positions wind, and in which they lie in three dimensions too; "" where untested."""
    winding = [page.claims["winding"].verdict for page in pages if "winding" in page.claims]
    tested = [verdict for verdict in winding if verdict != "untested"]
    if not tested:
        return ""
    both = {page.title: [page.claims[one].verdict for one in HELIX] for page in pages if {*HELIX} <= {*page.claims}}
    able = {title: verdicts for title, verdicts in both.items() if "untested" not in verdicts}
    whole = [title for title, verdicts in able.items() if verdicts == ["holds"] * len(HELIX)]
    called = f" ({listed(whole)})" if 0 < len(whole) <= FEW else ""
    return (
        f"Winding holds in {tested.count('holds')} of {many(len(tested), 'model')} tested; the helix, which is a "
        f"curve in three dimensions as well, in {len(whole)} of {len(able)}{called}"
    )
