"""Where the panel on an entity opens: a query of its model's page, and which cells of tables name an entity."""

PLACE = "things"  # the section of a model's page where links lead without the script that opens panels


def query(kind: str, index: int | str) -> str:
    """Return the link to a thing from its model's page."""
    return f"?{kind}={index}#{PLACE}"


def query_of_head(layer: int, head: int) -> str:
    """Return the link to a head from its model's page."""
    return query("head", f"{layer}.{head}")
