"""All results as one table: the numbers of the pages, columns that the dictionary describes, the same bytes again."""

import csv
import io
import json
import re
from datetime import date
from html import unescape
from pathlib import Path

import pytest
from pyarrow import parquet

from generators.site.results_table import (
    COLUMNS,
    CSV_FILE,
    DICTIONARY_FILE,
    JSON_FILE,
    PARQUET_FILE,
    as_lines,
    as_parquet,
    day,
)

MODELS = ("one", "two", "member")  # the last stands in a series alone
READER = re.compile(r'<pre><code id="reader">(.*?)</code></pre>', re.DOTALL)
SAME = ("value", "verdict", "close", "threshold", "baseline", "statement", "answer", "finding")  # cells of a claim


def cells(claim: dict) -> dict:
    low, high = claim["interval"] or (None, None)
    chance = {f"chance_{name}": (claim["chance"] or {}).get(name) for name in ("null", "median", "limit", "draws")}
    other = {"unit": claim["unit"] or None, "interval_low": low, "interval_high": high}
    return {name: claim[name] for name in SAME} | other | chance


@pytest.fixture(scope="module")
def rows(three_models: Path) -> list[dict]:
    return json.loads((three_models / JSON_FILE).read_text())


@pytest.fixture(scope="module")
def in_parquet(three_models: Path):
    return parquet.read_table(three_models / PARQUET_FILE)


def as_json_has_it(row: dict) -> dict:
    return {name: cell.isoformat() if isinstance(cell, date) else cell for name, cell in row.items()}


def test_numbers_are_those_of_the_pages(three_models, rows):
    expected = []
    for name in MODELS:
        published = json.loads((three_models / f"data/{name}/findings.json").read_text())
        for claim in published["claims"]:
            found = published["findings"][claim["finding"]]
            expected.append(
                {"model": name, "claim": claim["id"], "layers": published["model"]["n_layer"]}
                | {"digest": found["key"], "computed_on": found["computed_on"], "status": found["status"]}
                | cells(claim)
            )
    assert [{column: row[column] for column in one} for row, one in zip(rows, expected, strict=True)] == expected
    assert {row["value"] for row in rows if row["claim"] == "winding" and row["model"] == "two"} == {0.125}
    assert len({row["verdict"] for row in rows}) > 2


def test_all_files_have_the_same_rows(three_models, rows, in_parquet):
    assert [as_json_has_it(row) for row in in_parquet.to_pylist()] == rows
    with (three_models / CSV_FILE).open(encoding="utf-8", newline="") as file:
        in_csv = list(csv.DictReader(file))
    as_text = [{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in rows]
    assert [{name: cell.removeprefix("'") for name, cell in row.items()} for row in in_csv] == as_text


def test_the_dictionary_describes_what_is_written(three_models, rows, in_parquet):
    dictionary = json.loads((three_models / DICTIONARY_FILE).read_text())
    described = {column["name"]: column for column in dictionary["columns"]}
    assert list(described) == [column.name for column in COLUMNS] == in_parquet.column_names
    assert all(list(row) == list(described) for row in rows)
    for field in in_parquet.schema:
        column = described[field.name]
        assert str(field.type).startswith(column["parquet"].replace("float64", "double"))
        assert field.nullable == (column["null"] is not None), field.name
        assert field.metadata[b"meaning"].decode() == column["meaning"]
    for name, column in described.items():
        assert column["null"] or all(row[name] is not None for row in rows), name
    assert {column["unit"] for column in described.values()} > {None, "channels", "UTC"}


def test_every_column_is_explained_on_the_page_about_data(three_models):
    page = (three_models / "data.md").read_text()
    for column in COLUMNS:
        assert f'id="column-{column.name}"' in page
    for file in (JSON_FILE, PARQUET_FILE, DICTIONARY_FILE):
        assert f'href="../{file}"' in page
    assert all(f"data/{name}/findings.json" in page for name in ("one", "two"))


def test_the_reader_on_the_page_about_data_runs(three_models, capsys):
    code = unescape(READER.search((three_models / "data.md").read_text())[1])
    exec(code.replace("https://…", str(three_models)), {})
    printed = capsys.readouterr().out
    assert "two" in printed and "holds" in printed and "member" not in printed


def test_readers_are_led_to_it(three_models):
    for page in ("index.md", "about.md", "models/one.md"):
        assert 'data/">' in (three_models / page).read_text(), page
    assert "data.md" in (three_models / "navigation.json").read_text()


def test_models_of_a_series_come_last_and_are_marked(rows):
    assert [row["only_in_series"] for row in rows] == [False] * (2 * len(rows) // 3) + [True] * (len(rows) // 3)


def test_the_same_rows_are_the_same_bytes(three_models, rows):
    assert as_parquet(rows) == (three_models / PARQUET_FILE).read_bytes()
    assert as_lines(rows) == (three_models / JSON_FILE).read_text()
    assert as_parquet([{**rows[0], "value": 0.5}]) != as_parquet([{**rows[0], "value": 0.25}])


def test_without_a_model_there_are_columns_still():
    table = parquet.read_table(io.BytesIO(as_parquet([])))
    assert (table.num_rows, table.column_names) == (0, [column.name for column in COLUMNS])
    assert json.loads(as_lines([])) == []


@pytest.mark.parametrize("stored", [None, "", "yesterday", "2026-13-01"])
def test_what_is_no_day_is_null(stored):
    assert day(stored) is None
    assert day("2026-11-22") == "2026-11-22"
