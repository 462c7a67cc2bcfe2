"""What a page links to and loads, read without a browser."""

from html.parser import HTMLParser
from pathlib import Path


def is_moved(page: Path) -> bool:
    return 'http-equiv="refresh"' in page.read_text("utf-8")


class Links(HTMLParser):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.hrefs: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if "href" in given:
            (self.hrefs if tag in ("a", "area") else self.loaded).append(given["href"])
        self.loaded += [given[name] for name in ("src", "data-interactive") if name in given]
