"""Make language-reference.txt from the HTML of Python's documentation: `extract.py FOLDER/reference > text`."""

import sys
from html.parser import HTMLParser
from pathlib import Path

CHAPTERS = (
    *("introduction", "lexical_analysis", "datamodel", "executionmodel", "import"),
    *("expressions", "simple_stmts", "compound_stmts", "toplevel_components"),
)
PARAGRAPHS = ("p", "h1", "h2", "h3", "h4", "dt")
LEFT_OUT = ("pre", "script", "style", "table")  # code and grammars are no prose


class Prose(HTMLParser):
    """Collects the paragraphs and headings of a page's body as lines of text."""

    def __init__(self) -> None:
        super().__init__()
        self.paragraphs: list[str] = []
        self._inside = 0  # depth of nested divs in the body
        self._left_out = 0
        self._permalink = False
        self._open: str | None = None
        self._parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "div":
            self._inside += bool(self._inside or given.get("class") == "body")
        elif tag in LEFT_OUT:
            self._left_out += 1
        elif tag == "a" and given.get("class") == "headerlink":
            self._permalink = True
        elif tag in PARAGRAPHS and self._inside and not self._left_out:
            self._finish()
            self._open = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == "div" and self._inside:
            self._inside -= 1
        elif tag in LEFT_OUT:
            self._left_out -= 1
        elif tag == "a":
            self._permalink = False
        elif tag == self._open:
            self._finish()

    def handle_data(self, data: str) -> None:
        if self._open and not self._left_out and not self._permalink:
            self._parts.append(data)

    def _finish(self) -> None:
        text = " ".join("".join(self._parts).split())
        if text:
            self.paragraphs.append(text)
        self._open, self._parts = None, []


def extract(folder: Path) -> str:
    """Return the prose of the chapters, a paragraph a line, an empty line after each."""
    lines: list[str] = []
    for chapter in CHAPTERS:
        page = Prose()
        page.feed((folder / f"{chapter}.html").read_text("utf-8"))
        lines += page.paragraphs
    return "".join(f"{line}\n\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(extract(Path(sys.argv[1])))
