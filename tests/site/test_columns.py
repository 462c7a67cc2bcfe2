"""Columns of tables on pages: what matters first, nothing in code."""

from generators.compute.results import Store
from generators.findings import FINDINGS
from generators.site.cells import body, header
from generators.site.columns import shown, ties
from tests.conftest import ROOT


def test_bytes_stand_last_and_every_other_column_where_it_was():
    names = ["id", "readable", "raw_bytes", "best_id", "best_readable", "best_raw_bytes", "norm"]
    columns = shown(names)
    assert [column.index for column in columns] == [0, 1, 3, 4, 6, 2, 5]
    assert [column.name for column in columns] == [names[column.index] for column in columns]
    assert [column.words for column in columns][1:4] == ["token", "best id", "best readable"]
    words = shown(["gain", "norm"], {"gain": "gain over standing still"})
    assert [column.words for column in words] == ["gain over standing still", "norm"], "words are a finding's own"


def test_no_header_of_a_stored_table_is_a_name_in_code():
    store = Store(ROOT / "results")
    tables = [
        (finding, table)
        for model in store.names()
        for finding in FINDINGS
        if (found := store.finding(model, finding.name)) is not None
        for table in found.tables.values()
    ]
    assert len(tables) > 20
    columns = [column for finding, table in tables for column in shown(table.columns, finding.words.columns)]
    assert not [column.words for column in columns if "_" in column.words]


def test_only_what_different_numbers_are_written_alike_needs_what_is_behind():
    rows = [(0.12341, 1), (0.12344, 2), (0.5, 3), (0.5, 4), (None, 5), (7, 6)]
    assert ties(rows, 0) == {"0.1234"}
    assert ties(rows, 1) == frozenset()


def row(name: str, value: object, *, with_links: bool = False, others: tuple[object, ...] = ()) -> str:
    """Return the first row of a table of one column."""
    rows = [(value,), *((other,) for other in others)]
    return next(iter(body([name], shown([name]), rows, with_links=with_links)))


def test_cells_are_numbers_words_tokens_and_links():
    assert row("norm", 0.5) == '<td class="n">0.5</td>'
    assert row("norm", None) == '<td data-value="">–</td>'
    assert row("norm", -0.12341, others=(-0.12344,)) == '<td class="n" data-value="-0.12341">−0.1234</td>'
    assert row("significant", True) == "<td>yes</td>"
    assert row("block", "<b>") == "<td>&lt;b&gt;</td>"
    assert row("best_readable", "<b>") == "<td><bdi><code>&lt;b&gt;</code></bdi></td>"
    assert row("contained_in", ["a", "b"]) == "<td><bdi><code>a</code></bdi> <bdi><code>b</code></bdi></td>"
    assert row("channel", 7) == '<td class="n">7</td>'
    assert row("channel", 7, with_links=True) == '<td class="n"><a href="?channel=7#things">7</a></td>'
    assert row("top_channels", [1, 2], with_links=True) == (
        '<td><a href="?channel=1#things">1</a> <a href="?channel=2#things">2</a></td>'
    )
    assert row("top_channels", [], with_links=True) == "<td></td>"


def test_a_column_with_a_number_is_on_the_right():
    assert header(shown(["norm", "readable"]), [(None, "a"), (1.5, "b")]) == (
        '<th scope="col" class="n">norm</th><th scope="col">token</th>'
    )
