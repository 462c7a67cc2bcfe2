"""The site's own styles and scripts: one file each, in which modules find what they import."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from generators.site.joined_files import OF_ONE_PAGE, SCRIPTS, STYLES, with_imports
from tests.site.conftest import ASSETS, ROOT
from tests.site.test_plugin import write

SETTINGS = """site_name: Atlas
docs_dir: src
theme: mkdocs
plugins: [atlas-joined]
extra_css: [assets/b.css, assets/a.css]
extra_javascript: [assets/site.js, assets/compare.js]
"""
FILES = {
    "index.md": "# Start\n\n[Room](rooms/one.md)\n",
    "rooms/one.md": "# Room\n",
    "assets/a.css": "p { color: red }",
    "assets/b.css": "p { color: blue }",
    "assets/site.js": 'import {\n  one,\n  two as deux,\n} from "./last.js";\n\nconst three = "a";\n'
    "said.push(one, deux(), three);\n",
    "assets/last.js": 'import { three } from "./first.js";\nexport const one = 1;\nexport async function two() {}\n'
    "said.push(three);\n",
    "assets/first.js": "/* A\n   remark */\nexport class Three {}\n/** @type {number} */\nexport const three = 3;\n",
    "assets/compare.js": 'import { Three } from "./first.js";\nimport { own } from "./own.js";\n'
    "said.push(new Three(), own);\n",
    "assets/own.js": 'export const own = "own";\n',
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, {"mkdocs.yml": SETTINGS})
    write(tmp_path / "src", FILES)
    return tmp_path


@pytest.fixture
def site(project: Path) -> Path:
    build(load_config(str(project / "mkdocs.yml"), strict=True))
    return project / "site"


def test_styles_are_joined_as_they_are_named_and_parts_are_not_published(site):
    assert (site / STYLES).read_text().endswith("p { color: blue }\np { color: red }")
    assert {path.name for path in (site / "assets").iterdir()} == {"site.css", "site.js", "compare.js"}


def test_modules_run_once_after_what_they_import_and_another_script_uses_them(site):
    scripts = [(site / name).read_text() for name in (SCRIPTS, OF_ONE_PAGE["compare"])]
    assert "/*" not in "".join(scripts), "remarks are not sent"
    assert "first.js" in scripts[0] and "class Three" not in scripts[1], "what the first script has comes once"
    both = site / "both.js"
    both.write_text("\n".join(["const said = [];", *scripts, "console.log(JSON.stringify(said));"]))
    node = shutil.which("node")
    assert node, "scripts are tried in node"
    done = subprocess.run([node, both], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == '[3,1,{},"a",{},"own"]'


def test_pages_name_them_and_run_them_last(site):
    page = (site / "rooms/one/index.html").read_text()
    assert re.findall(r'<link href="([^"]*assets/[^"]*)"', page) == ["../../assets/site.css"]
    scripts = re.findall(r'<script src="([^"]*assets/[^"]*)"([^>]*)>', page)
    assert [name for name, _ in scripts] == ["../../assets/site.js", "../../assets/compare.js"]
    assert all("defer" in how for _, how in scripts)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("b.css", None, "mkdocs.yml names assets/b.css, which is not there."),
        ("compare.js", None, "mkdocs.yml names assets/compare.js, which is not there."),
        ("first.js", 'import "./own.js";\n', "first.js can't be joined, as it has a line of a form that is not read"),
        ("first.js", "export let three = 3;\n", "form that is not read: export let three = 3;"),
    ],
)
def test_what_can_not_be_joined_is_shown(project, caplog, file, text, said):
    path = project / "src/assets" / file
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(Abort):
        build(load_config(str(project / "mkdocs.yml"), strict=True))
    assert said in caplog.text


def test_every_style_and_script_of_the_site_is_part_of_a_file():
    config = load_config(str(ROOT / "mkdocs.yml"))
    entries = [ASSETS / Path(str(name)).name for name in config.extra_javascript]
    reached = {name for entry in entries for name in with_imports(entry)}
    named = {Path(str(name)).name for name in config.extra_css}
    assert reached | named == {path.name for path in ASSETS.iterdir() if path.suffix in (".css", ".js")}
