"""Results for programs: every file is as the schema says and the index names it, and the example on *Data* runs."""

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import jsonschema
import pytest

from generators.findings import FINDINGS
from generators.site.api import FOLDER, schema
from tests.site.conftest import served

READER = re.compile(r'<pre><code id="reader">(.*?)</code></pre>', re.DOTALL)


def read(folder: Path, path: str) -> dict:
    return json.loads((folder / FOLDER / path).read_text())


def test_the_index_names_every_file_and_each_is_as_its_schema_says(three_models):
    index = read(three_models, "index.json")
    there = {path.relative_to(three_models / FOLDER).as_posix() for path in (three_models / FOLDER).rglob("*.json")}
    named = {address for kind in ("models", "claims", "findings", "heads") for address in index[kind].values()}
    assert there == named | {"index.json", index["schema"]}
    assert set(index["models"]) == set(index["heads"]) == {"one", "two", "member"}
    assert set(index["claims"]) == {rule.id for finding in FINDINGS for rule in finding.rules}
    made = read(three_models, index["schema"])
    assert made == schema()
    for kind in ("models", "claims", "findings", "heads"):
        judge = jsonschema.Draft202012Validator({**made, "anyOf": [{"$ref": f"#/$defs/{kind}"}]})
        for address in index[kind].values():
            judge.validate(read(three_models, address))
    with pytest.raises(jsonschema.ValidationError):
        judge.validate({"version": 1, "model": "one"})


def test_a_model_a_claim_and_a_finding_say_the_same(three_models):
    claim = read(three_models, "claims/winding.json")
    assert [(row["model"], row["verdict"], row["only_in_series"]) for row in claim["models"]] == [
        ("one", "holds", False),
        ("two", "fails", False),
        ("member", "holds", True),
    ]
    for row in claim["models"]:
        model = read(three_models, f"models/{row['model']}.json")
        mine = next(one for one in model["claims"] if one["claim"] == "winding")
        assert all(mine[name] == row[name] for name in ("verdict", "value", "threshold"))
        finding = read(three_models, f"findings/{claim['finding']}.json")
        verdicts = next(one["verdicts"] for one in finding["models"] if one["model"] == row["model"])
        assert verdicts["winding"] == row["verdict"]


def test_the_reader_on_the_page_about_data_runs(three_models):
    text = unescape(READER.search((three_models / "data.md").read_text())[1])
    assert len(text.splitlines()) <= 10
    with served(three_models) as address:
        code = re.sub(r'SITE = ".*"', f'SITE = "{address}"', text)
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "two" in ran.stdout and "holds" in ran.stdout
    assert "member" not in ran.stdout
