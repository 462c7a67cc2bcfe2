"""Notebooks: executed when something they follow from changes, and only then; one's trouble is its own."""

import ast
import json
import sys
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import jupytext
import pytest

from generators.base.cache import Cache
from generators.site import notebooks
from generators.site.notebook_markup import as_theme_expects
from generators.site.notebooks import listed
from generators.site.staging import Staging

ROOT = Path(__file__).parents[2]
HEADER = """\
# ---
# jupyter:
#   atlas:
#     reads: [../data/*/findings.json]
# ---

"""
TEXT = HEADER + "# %% [markdown]\n# # Count\n\n# %%\nprint(1 + 1)\n"


@dataclass
class Site:
    """A folder of hand-written pages, where generated ones go, and what was executed."""

    source: Path
    staging: Staging
    cache: Path

    def write(self, path: str, text: str) -> None:
        folder = self.staging.folder if path.startswith("data/") else self.source
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")

    def made(self) -> list[str]:
        return notebooks.write_notebooks(self.source, self.staging, Cache(self.cache))

    def text(self, name: str = "count") -> str:
        return (self.staging.folder / f"notebooks/{name}.ipynb").read_text()

    def outputs(self, name: str = "count") -> list[dict]:
        return [output for cell in json.loads(self.text(name))["cells"] for output in cell.get("outputs", ())]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path / "src", Staging(tmp_path / "pages", tmp_path / "figures"), tmp_path / "cache")
    site.write("data/gpt2/findings.json", "{}")
    site.write("notebooks/count.py", TEXT)
    return site


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(notebooks, "_execute", lambda parsed, notebook, where: names.append(notebook.name))
    return names


def test_a_notebook_is_executed_by_this_python_in_its_own_folder(site):
    code = "import sys, pathlib\nprint(sys.executable, sorted(p.name for p in pathlib.Path('../data').iterdir()))\n"
    site.write("notebooks/count.py", TEXT + f"\n# %%\n{code}")
    assert site.made() == []
    found = site.outputs()
    assert found[0]["text"] == ["2\n"]
    assert "".join(found[1]["text"]) == f"{sys.executable} ['gpt2']\n"


def test_what_is_shown_has_words(site):
    code = (
        '# %% shows="A rising <line>"\nimport matplotlib.pyplot as plt\nplt.plot([0, 1])\nplt.show()\n'
        '# %% shows="A table"\nimport pandas as pd\npd.DataFrame({"x": [1]})\n'
    )
    site.write("notebooks/count.py", TEXT + "\n" + code)
    assert site.made() == []
    text = site.text()
    assert 'role=\\"img\\" aria-label=\\"A rising &lt;line&gt;\\"' in text
    assert 'aria-label=\\"A table\\"' in text


def test_a_second_time_nothing_is_executed_and_the_bytes_are_the_same(site, executed):
    site.made()
    first = site.text()
    site.write("data/gpt2/other.csv", "1")  # which it does not read
    site.made()
    assert executed == ["count"]
    assert site.text() == first


def test_without_the_cache_the_bytes_are_the_same(site, tmp_path):
    pages = [(replace(site, cache=tmp_path / name).made(), site.text()) for name in ("one", "two")]
    assert pages[0] == pages[1]


@pytest.mark.parametrize("path", ["notebooks/count.py", "data/gpt2/findings.json", "data/new/findings.json", None])
def test_it_is_executed_again_when_its_text_an_input_or_a_library_changes(site, executed, monkeypatch, path):
    site.made()
    if path is None:
        monkeypatch.setattr(notebooks.metadata, "version", lambda name: "99")
    else:
        site.write(path, TEXT + "\n# %%\n3\n" if path.endswith(".py") else '{"changed": true}')
    site.made()
    assert executed == ["count", "count"]


def test_an_error_is_a_sentence_and_costs_the_others_nothing(site):
    site.write("notebooks/broken.py", HEADER + "# %% [markdown]\n# # Broken\n\n# %%\n1 / 0\n")
    (sentence,) = site.made()
    assert sentence == "The notebook broken could not be executed: ZeroDivisionError: division by zero"
    assert sentence in site.text("broken")
    assert site.outputs("broken") == []
    assert site.outputs()[0]["text"] == ["2\n"]
    assert len(site.made()) == 1  # what failed isn't kept


def test_a_kernel_that_dies_is_a_sentence_too(site):
    site.write("notebooks/count.py", TEXT + "# %%\nimport os\nos._exit(3)\n")
    (sentence,) = site.made()
    assert sentence.startswith("The notebook count could not be executed: DeadKernelError")
    assert "# Count" in site.text()


def test_what_its_text_no_longer_backs_is_removed_and_what_is_written_by_hand_stays(site, executed):
    by_hand = site.source / "notebooks/mine.ipynb"
    by_hand.write_text('{"metadata": {}}')
    site.made()
    assert (site.staging.folder / "notebooks/count.ipynb").is_file()
    (site.source / "notebooks/count.py").unlink()
    again = replace(site, staging=site.staging.again())
    again.made()
    again.staging.remove_stale()
    assert list(site.staging.folder.rglob("*.ipynb")) == []
    assert [path.name for path in site.source.rglob("*") if path.is_file()] == ["mine.ipynb"]


def test_they_are_listed_with_their_titles_in_the_order_of_the_index(site):
    site.write("notebooks/a.py", "# %% [markdown]\n# # The first\n")
    assert [(one.name, one.title) for one in listed(site.source)] == [("a", "The first"), ("count", "Count")]
    site.write("notebooks/index.md", "[Count](count.ipynb), [A](a.ipynb)\n")
    assert [one.name for one in listed(site.source)] == ["count", "a"]
    assert listed(site.source / "nowhere") == []


@pytest.mark.parametrize("path", sorted((ROOT / "site_src/notebooks").glob("*.py")), ids=lambda path: path.stem)
def test_every_cell_that_shows_something_says_what_and_what_it_imports_of_the_atlas_is_there(path):
    cells = [cell for cell in jupytext.read(path).cells if cell.cell_type == "code"]
    showing = [cell for cell in cells if "plt.show()" in cell.source]
    assert all(cell.metadata.get("shows") for cell in showing)
    assert f"({path.stem}.ipynb)" in (path.parent / "index.md").read_text()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("generators."):
            assert [name.name for name in node.names if not hasattr(import_module(node.module), name.name)] == []


def test_markup_that_is_not_mkdocs_jupyters_is_refused():
    with pytest.raises(ValueError, match="marks up"):
        as_theme_expects("<div>something else</div>")
