"""Parts of a generated page that are HTML as they will be, and that no one searches: they are set aside meanwhile.

Markdown, the search and the glossary parse a page one after another, character by character; rows of tables and
pictures are most of it. Templates mark such a part, with nothing in it that a heading, a link's check or the search
would miss.
"""

import re

PART = re.compile(r"<!--aside-->\n?(.*?)<!--/aside-->\n?", re.DOTALL)
PLACE = re.compile(r"<!--aside (\d+)-->\n?")


def set_aside(page: str) -> tuple[str, list[str]]:
    """Return a page with a comment in place of each marked part, and the parts."""
    parts: list[str] = []

    def place(found: re.Match[str]) -> str:
        parts.append(found[1])
        return f"<!--aside {len(parts) - 1}-->\n"

    return PART.sub(place, page), parts


def put_back(page: str, parts: list[str]) -> str:
    """Return a page with the parts that were set aside in their places."""
    return PLACE.sub(lambda found: parts[int(found[1])], page)
