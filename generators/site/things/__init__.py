"""Things with an address: every channel, head, token and position of a model, for the panel that shows one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from generators.base.plain import as_compact_json
from generators.site.addresses import query, query_of_head
from generators.site.staging import Staging
from generators.site.things.channels import channels
from generators.site.things.heads import heads
from generators.site.things.known import Things
from generators.site.things.positions import positions
from generators.site.things.tokens import tokens
from generators.site.view import ModelPage

LISTED = ("channel", "head", "token")  # kinds of which those that results name are listed on pages


@dataclass(frozen=True)
class Notable:
    """A thing that results name: where its panel opens, relative to its model's page, and what is said of it.

    `name` is what a head or a token is called beside its index.
    """

    kind: str
    index: int
    name: str | None
    address: str
    says: str

    @property
    def called(self) -> str:
        """Return what the thing is called: Channel 138, Head L0H7, Token 262 ␠the."""
        parts = [self.kind.capitalize(), "" if self.kind == "head" else str(self.index), self.name or ""]
        return " ".join(part for part in parts if part)


def write_things(page: ModelPage, staging: Staging) -> list[Notable]:
    """Write what is known of a model's things, for panels to fetch; return those that results name."""
    known = {"channel": channels(page), "head": heads(page), "position": positions(page)}
    named = {"token": tokens(page)}
    shared = {"model": _model(page), "findings": _findings(page)}
    for file, kinds in (("things", known), ("things-tokens", named)):
        content = {**(shared if kinds is known else {}), **{kind: one.as_json() for kind, one in kinds.items()}}
        staging.write(f"data/{page.name}/{file}.json", as_compact_json(content))
    found = {**known, **named}
    return [one for kind in LISTED for one in _notable(kind, found[kind], page.findings.model.n_head)]


def _model(page: ModelPage) -> dict[str, Any]:
    model = page.findings.model
    return {"name": page.name, "title": page.title, "n_layer": model.n_layer, "n_head": model.n_head}


def _findings(page: ModelPage) -> dict[str, Any]:
    """Return the titles of findings, and of the figures that this model has of each."""
    return {
        section.finding.name: {
            "title": section.finding.title,
            "figures": {picture.name: picture.title for picture in section.pictures},
        }
        for section in page.sections
    }


def _notable(kind: str, things: Things, n_head: int = 1) -> Iterator[Notable]:
    for index, notes in sorted(things.notes.items()):
        says = [note.says for note in notes if note.named]
        if says:
            address = query_of_head(*divmod(index, n_head)) if kind == "head" else query(kind, index)
            yield Notable(kind, index, things.names.get(index), address, " ".join(says))
