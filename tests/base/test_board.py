"""What workers do stands in lines, or in a table; text from elsewhere does nothing to a terminal."""

import io
import sys

import pytest
from rich.console import Console

from generators.base.board import Board, TableBoard, board


@pytest.fixture
def clock():
    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    return Clock()


def drawn(shown: TableBoard, tables: list) -> str:
    shown.draw()
    out = io.StringIO()
    Console(file=out, width=100).print(tables[-1])
    return out.getvalue()


def test_lines_are_handed_on(clock):
    lines = []
    shown = Board(lines.append, clock)
    shown.begun("1", "gpt2", "helix")
    shown.told("1", "gpt2: computing helix")
    shown.draw()
    assert lines == ["gpt2: computing helix"]


def test_that_a_model_waits_is_told_once():
    lines = []
    shown = Board(lines.append)
    shown.waits("gpt2")
    shown.waits("gpt2")
    assert lines == ["gpt2: another run writes its results; it comes later"]


def test_the_table_has_a_row_for_each_job_and_the_time_that_is_left():
    lines, tables = [], []
    shown = TableBoard(lines.append, tables.append)
    shown.total, shown.done = 30, 10
    shown.begun("1", "gpt2", "heads")
    shown.begun("2", "bert", "helix")
    shown.told("1", "gpt2: computing heads")
    shown.told("1", "gpt2: computing heads, about 3 min left")
    text = drawn(shown, tables)
    [row] = [line for line in text.splitlines() if "gpt2" in line]
    assert "heads" in row and "computing" in row and "about 3 min left" in row
    assert "s so far" in next(line for line in text.splitlines() if "bert" in line)
    assert "10 of 30 findings, less than a minute left" in text
    assert lines == []
    shown.ended("1")
    assert "gpt2" not in drawn(shown, tables)


def test_several_lines_stand_above_the_table():
    lines = []
    shown = TableBoard(lines.append, lambda table: None)
    shown.begun("1", "gpt2", "heads")
    shown.told("1", "gpt2: heads failed\nTraceback")
    assert lines == ["gpt2: heads failed\nTraceback"]


def test_what_a_worker_says_does_nothing_to_a_terminal():
    tables = []
    shown = TableBoard(lambda line: None, tables.append)
    shown.begun("1", "[red]gpt2[/red]", "heads\x1b[2J")
    text = drawn(shown, tables)
    assert "[red]gpt2[/red]" in text
    assert "\x1b" not in text


def test_the_rest_takes_as_long_as_the_share_that_is_done_says(clock):
    shown = Board(lambda line: None, clock)
    shown.total = 10
    assert shown.in_words() == "0 of 10 findings"
    shown.done, clock.now = 2, 60.0
    assert shown.in_words() == "2 of 10 findings, about 4 min left"
    shown.done = 10
    assert shown.in_words() == "10 of 10 findings"


@pytest.mark.parametrize(("is_terminal", "kind"), [(True, TableBoard), (False, Board)])
def test_a_table_on_a_terminal_and_lines_elsewhere(monkeypatch, is_terminal, kind):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    with board() as shown:
        assert type(shown) is kind
