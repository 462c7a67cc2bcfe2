"""Where the panel on an entity opens: a query of its model's page, and which cells of tables name an entity."""

from dataclasses import dataclass

PLACE = "things"  # the section of a model's page where links lead without the script that opens panels


def query(kind: str, index: int | str) -> str:
    """Return the link to a thing from its model's page; a head's index is `layer.head`."""
    return f"?{kind}={index}#{PLACE}"


@dataclass(frozen=True)
class Notable:
    """An entity that results name: where its panel opens, relative to its model's page, and what is said of it.

    `name` is what a head or a token is called beside its index, `roles` what it is and no other of the model, each
    with the claim that there is such an entity, or with none.
    """

    kind: str
    index: int
    name: str | None
    address: str
    says: str
    roles: tuple[tuple[str, str], ...] = ()

    @property
    def called(self) -> str:
        parts = [self.kind.capitalize(), "" if self.kind == "head" else str(self.index), self.name or ""]
        return " ".join(part for part in parts if part)
