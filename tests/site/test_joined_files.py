"""The site's own styles and scripts: one file each, in the order in which they are named."""

import re
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from generators.site.joined_files import SCRIPTS, STYLES
from tests.site.conftest import ROOT
from tests.site.test_plugin import write

SETTINGS = """site_name: Atlas
docs_dir: src
theme: mkdocs
plugins: [atlas-joined]
extra_css: [assets/b.css, assets/a.css]
extra_javascript: [assets/last.js, assets/compare.js, assets/first.js]
"""
FILES = {
    "index.md": "# Start\n\n[Room](rooms/one.md)\n",
    "rooms/one.md": "# Room\n",
    "assets/a.css": "p { color: red }",
    "assets/b.css": "p { color: blue }",
    "assets/first.js": "first()",
    "assets/last.js": "last()",
    "assets/compare.js": "compare()",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, {"mkdocs.yml": SETTINGS})
    write(tmp_path / "src", FILES)
    return tmp_path


def test_they_are_joined_as_they_are_named(project):
    build(load_config(str(project / "mkdocs.yml"), strict=True))
    site = project / "site"
    assert (site / STYLES).read_text() == "p { color: blue }\np { color: red }"
    assert (site / SCRIPTS).read_text() == "last()\nfirst()"
    assert (site / "assets/compare.js").read_text() == "compare()", "one page's script is by itself"


def test_pages_name_them_and_run_them_last(project):
    build(load_config(str(project / "mkdocs.yml"), strict=True))
    page = (project / "site/rooms/one/index.html").read_text()
    assert re.findall(r'<link href="([^"]*assets/[^"]*)"', page) == ["../../assets/site.css"]
    scripts = re.findall(r'<script src="([^"]*assets/[^"]*)"([^>]*)>', page)
    assert [name for name, _ in scripts] == ["../../assets/site.js", "../../assets/compare.js"]
    assert all("defer" in how for _, how in scripts)


def test_a_file_that_is_named_and_not_there_is_told(project, caplog):
    (project / "src/assets/first.js").unlink()
    with pytest.raises(Abort):
        build(load_config(str(project / "mkdocs.yml"), strict=True))
    assert "mkdocs.yml names assets/first.js, which is not there." in caplog.text


def test_every_script_of_the_site_is_named_and_can_be_joined():
    config = load_config(str(ROOT / "mkdocs.yml"))
    named = {Path(str(each)).name for each in (*config.extra_css, *config.extra_javascript)}
    assert named == {path.name for path in (ROOT / "site_src/assets").iterdir() if path.suffix in (".css", ".js")}
    for path in (ROOT / "site_src/assets").glob("*.js"):
        text = path.read_text("utf-8").rstrip()
        assert '"use strict";' in text and text.endswith(";"), f"{path.name} would run on into the next"
