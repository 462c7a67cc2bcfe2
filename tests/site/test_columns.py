"""Columns of tables on pages: what matters first, nothing in code."""

from generators.compute.results import Store
from generators.findings import FINDINGS
from generators.site.columns import shown, ties
from tests.conftest import ROOT


def test_bytes_stand_last_and_every_other_column_where_it_was():
    names = ["id", "readable", "raw_bytes", "best_id", "best_readable", "best_raw_bytes", "norm"]
    columns = shown(names)
    assert [column.index for column in columns] == [0, 1, 3, 4, 6, 2, 5]
    assert [column.name for column in columns] == [names[column.index] for column in columns]
    assert [column.words for column in columns][1:4] == ["token", "id of what it yields", "yields"]


def test_no_header_of_a_stored_table_is_a_name_in_code():
    store = Store(ROOT / "results")
    tables = [
        table
        for model in store.names()
        for finding in FINDINGS
        if (found := store.finding(model, finding.name)) is not None
        for table in found.tables.values()
    ]
    assert len(tables) > 20
    names = {name for table in tables for name in table.columns}
    assert not [column.words for column in shown(sorted(names)) if "_" in column.words]


def test_only_what_different_numbers_are_written_alike_needs_what_stands_behind():
    rows = [(0.12341, 1), (0.12344, 2), (0.5, 3), (0.5, 4), (None, 5), (7, 6)]
    assert ties(rows, 0) == {"0.1234"}
    assert ties(rows, 1) == frozenset()
