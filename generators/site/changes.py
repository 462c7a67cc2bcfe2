"""What one change to a recipe does to the claims that hold without it."""

from collections.abc import Sequence
from dataclasses import dataclass

from generators.checkpoint.registry import Place
from generators.site.claims_along import Along

UNTESTED = "untested"


@dataclass(frozen=True)
class Change:
    """Claims by what became of them in one model, beside the reference, if they hold fully in either.

    `lost` and `gained` hold in the one alone; `untested` hold in the reference; `new` hold here, and the reference
    can't test them.
    """

    place: Place
    retained: tuple[Along, ...]
    lost: tuple[Along, ...]
    gained: tuple[Along, ...]
    untested: tuple[Along, ...]
    new: tuple[Along, ...]

    @property
    def held(self) -> int:
        return len(self.retained) + len(self.lost) + len(self.untested)


def verdict(row: Along, place: Place) -> str:
    """Return a claim's verdict at a place, `untested` where nothing is known of it."""
    return next((claim.verdict for member, claim in row.tested if member.place == place), UNTESTED)


def change(rows: Sequence[Along], reference: Place, place: Place) -> Change:
    sorted_out: dict[str, list[Along]] = {kind: [] for kind in ("retained", "lost", "gained", "untested", "new")}
    for row in rows:
        kind = _kind(verdict(row, reference), verdict(row, place))
        if kind is not None:
            sorted_out[kind].append(row)
    return Change(place, **{kind: tuple(these) for kind, these in sorted_out.items()})


def _kind(before: str, after: str) -> str | None:
    if before == UNTESTED:
        return "new" if after == "holds" else None
    if before == "holds":
        return {"holds": "retained", UNTESTED: "untested"}.get(after, "lost")
    return "gained" if after == "holds" else None
