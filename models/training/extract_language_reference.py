"""Make language-reference.txt from Python's documentation: `extract_language_reference.py html/reference > text`."""

import sys
from pathlib import Path

from bs4 import BeautifulSoup

CHAPTERS = (
    *("introduction", "lexical_analysis", "datamodel", "executionmodel", "import"),
    *("expressions", "simple_stmts", "compound_stmts", "toplevel_components"),
)
PARAGRAPHS = ("p", "h1", "h2", "h3", "h4", "dt")
LEFT_OUT = "pre, script, style, table, a.headerlink"  # code and grammars are no prose


def paragraphs(page: Path) -> list[str]:
    """Return the prose of a chapter."""
    body = BeautifulSoup(page.read_text("utf-8"), "html.parser").select_one("div.body")
    assert body is not None
    for part in body.select(LEFT_OUT):
        part.decompose()
    found = (part for part in body.find_all(PARAGRAPHS) if part.find(PARAGRAPHS) is None)
    texts = (" ".join(part.get_text().split()) for part in found)
    return [text for text in texts if text]


if __name__ == "__main__":
    for chapter in CHAPTERS:
        for paragraph in paragraphs(Path(sys.argv[1]) / f"{chapter}.html"):
            sys.stdout.write(f"{paragraph}\n\n")
