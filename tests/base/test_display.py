"""What workers do is shown in lines, or in a table; text from elsewhere does nothing to a terminal."""

import io
import sys

import pytest
from rich.console import Console

from generators.base.display import Display, TableDisplay, display
from generators.base.progress import Progress


@pytest.fixture
def clock():
    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    return Clock()


def drawn(shown: TableDisplay, tables: list) -> str:
    shown.draw()
    out = io.StringIO()
    Console(file=out, width=100).print(tables[-1])
    return out.getvalue()


def test_lines_say_what_is_measured_and_for_how_long(clock):
    lines = []
    shown = Display(lines.append, clock)
    shown.begin("1", "gpt2", "opening", measures=False)
    shown.end("1")
    shown.begin("1", "gpt2", "helix")
    shown.advance("1", Progress(0.25, 180))
    shown.say("1", "gpt2: something else")
    shown.draw()
    assert lines == ["gpt2: computing helix", "gpt2: computing helix, about 3 min left", "gpt2: something else"]


def test_that_a_model_waits_is_said_once():
    lines = []
    shown = Display(lines.append)
    shown.wait_for("gpt2", "process 7")
    shown.wait_for("gpt2", "process 7")
    assert lines == ["gpt2: waiting for another run to finish with its results (process 7)"]


def test_the_table_has_a_row_for_each_job_and_the_time_that_is_left():
    lines, tables = [], []
    shown = TableDisplay(lines.append, tables.append)
    shown.total, shown.done = 30, 10
    shown.begin("1", "gpt2", "heads")
    shown.begin("2", "bert", "opening", measures=False)
    shown.advance("1", Progress(0.1, 180))
    text = drawn(shown, tables)
    [row] = [line for line in text.splitlines() if "gpt2" in line]
    assert "heads" in row and "computing" in row and "about 3 min left" in row
    assert "s so far" in next(line for line in text.splitlines() if "bert" in line)
    assert "10 of 30 findings, less than a minute left" in text
    assert lines == []
    shown.end("1")
    assert "gpt2" not in drawn(shown, tables)


@pytest.mark.parametrize("line", ["owner/gpt2: reading from the hub, 4 MB, about 3 min left", "reading, 9 left"])
def test_what_a_worker_says_is_shown_as_it_is_and_nothing_is_read_out_of_it(line):
    tables = []
    shown = TableDisplay(lambda line: None, tables.append)
    shown.begin("1", "gpt2", "heads")
    shown.say("1", line)
    [row] = [row for row in drawn(shown, tables).splitlines() if line in row]
    assert "s so far" in row


def test_several_lines_are_printed_above_the_table():
    lines = []
    shown = TableDisplay(lines.append, lambda table: None)
    shown.begin("1", "gpt2", "heads")
    shown.say("1", "gpt2: heads failed\nTraceback")
    assert lines == ["gpt2: heads failed\nTraceback"]


def test_what_a_worker_says_does_nothing_to_a_terminal():
    tables = []
    shown = TableDisplay(lambda line: None, tables.append)
    shown.begin("1", "[red]gpt2[/red]", "heads\x1b[2J")
    text = drawn(shown, tables)
    assert "[red]gpt2[/red]" in text
    assert "\x1b" not in text


def test_the_rest_takes_as_long_as_the_share_that_is_done_says(clock):
    shown = Display(lambda line: None, clock)
    shown.total = 10
    assert shown.in_words() == "0 of 10 findings"
    shown.done, clock.now = 2, 60.0
    assert shown.in_words() == "2 of 10 findings, about 4 min left"
    shown.done = 10
    assert shown.in_words() == "10 of 10 findings"


@pytest.mark.parametrize(
    ("is_terminal", "table", "kind"),
    [(True, True, TableDisplay), (True, False, Display), (False, True, Display), (False, False, Display)],
)
def test_a_table_of_several_on_a_terminal_and_lines_elsewhere(monkeypatch, is_terminal, table, kind):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    with display(table=table) as shown:
        assert type(shown) is kind
