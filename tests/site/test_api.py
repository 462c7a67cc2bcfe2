"""Results for programs: every file is as the schema says and the index names it, and the example on *Data* runs."""

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import jsonschema
import pytest

from generators.checkpoint.registry import FolderSource, Model, Registry
from generators.compute.results import Store
from generators.findings import FINDINGS
from generators.site.api import FOLDER, schema
from generators.site.pages import render
from generators.site.staging import Staging
from tests.conftest import without_figures
from tests.site.conftest import served
from tests.site.made_up_series import made_up, winding

READER = re.compile(r'<pre><code id="reader">(.*?)</code></pre>', re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the pages of two models and of a member of a series, without figures."""
    folder = tmp_path_factory.mktemp("api")
    store, staging = Store(folder / "results"), Staging(folder / "pages", folder / "cache")
    for name, turns in (("one", 3.0), ("two", 0.01), ("member", 2.0)):
        made_up(store, name, {"helix": winding(turns)})
    models = tuple(
        Model(name=name, title=name, sources=(FolderSource(folder=folder),), only_in_series=name == "member")
        for name in ("one", "two", "member")
    )
    with pytest.MonkeyPatch.context() as patch:
        without_figures(patch)
        render(Registry(models=models), store, staging, folder / "src")
    return staging.folder


def read(folder: Path, path: str) -> dict:
    return json.loads((folder / FOLDER / path).read_text())


def test_the_index_names_every_file_and_each_is_as_its_schema_says(folder):
    index = read(folder, "index.json")
    there = {path.relative_to(folder / FOLDER).as_posix() for path in (folder / FOLDER).rglob("*.json")}
    named = {address for kind in ("models", "claims", "findings", "heads") for address in index[kind].values()}
    assert there == named | {"index.json", index["schema"]}
    assert set(index["models"]) == set(index["heads"]) == {"one", "two", "member"}
    assert set(index["claims"]) == {rule.id for finding in FINDINGS for rule in finding.rules}
    made = read(folder, index["schema"])
    assert made == schema()
    for kind in ("models", "claims", "findings", "heads"):
        judge = jsonschema.Draft202012Validator({**made, "anyOf": [{"$ref": f"#/$defs/{kind}"}]})
        for address in index[kind].values():
            judge.validate(read(folder, address))
    with pytest.raises(jsonschema.ValidationError):
        judge.validate({"version": 1, "model": "one"})


def test_a_model_a_claim_and_a_finding_say_the_same(folder):
    claim = read(folder, "claims/winding.json")
    assert [(row["model"], row["verdict"], row["only_in_series"]) for row in claim["models"]] == [
        ("one", "holds", False),
        ("two", "fails", False),
        ("member", "holds", True),
    ]
    for row in claim["models"]:
        model = read(folder, f"models/{row['model']}.json")
        mine = next(one for one in model["claims"] if one["claim"] == "winding")
        assert {name: mine[name] for name in ("verdict", "value", "threshold")} == {
            name: row[name] for name in ("verdict", "value", "threshold")
        }
        finding = read(folder, f"findings/{claim['finding']}.json")
        verdicts = next(one["verdicts"] for one in finding["models"] if one["model"] == row["model"])
        assert verdicts["winding"] == row["verdict"]


def test_the_reader_on_the_page_about_data_runs(folder):
    text = unescape(READER.search((folder / "data.md").read_text())[1])
    assert len(text.splitlines()) <= 10
    with served(folder) as address:
        code = re.sub(r'SITE = ".*"', f'SITE = "{address}"', text)
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "two" in ran.stdout and "holds" in ran.stdout
    assert "member" not in ran.stdout
