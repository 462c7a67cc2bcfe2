"""What workers do is shown in a table, or in a line now and then; text from elsewhere does nothing to a terminal."""

import io
import sys
import time

import pytest
from rich.console import Console

from generators.base import display as module
from generators.base.display import Display, TableDisplay, Tally, display
from generators.base.progress import Progress


def drawn(shown: TableDisplay) -> str:
    out = io.StringIO()
    Console(file=out, width=100).print(shown.table())
    return out.getvalue()


def gpt2(**fields) -> Tally:
    return Tally("gpt2", 2, 7, **fields)


def test_one_line_says_which_model_of_how_many_which_finding_and_for_how_long():
    lines = []
    shown, tally = Display(lines.append, lambda: 0.0), gpt2()
    shown.begin("1", tally, "opening", measures=False)
    shown.tell()
    shown.say("1", "openai/gpt2: reading from the hub: 4.0 MB of 10.0 MB")
    shown.tell()
    shown.end("1")
    tally.findings, tally.done, tally.left = 31, 12, {"attention": 60.0, "helix": 120.0}
    shown.begin("1", tally, "attention")
    shown.tell()
    shown.tell()  # nothing has changed
    assert lines == [
        "gpt2 (2 of 7): opening",
        "gpt2 (2 of 7): openai/gpt2: reading from the hub: 4.0 MB of 10.0 MB",
        "gpt2 (2 of 7): attention, 12 of 31 findings, about 3 min left",
    ]


def test_several_workers_are_in_one_line_by_model():
    lines = []
    shown, tally = Display(lines.append, lambda: 0.0), gpt2(findings=31, done=12)
    tally.left = {"attention": 200.0, "helix": 200.0, "gains": 200.0}
    shown.begin("1", tally, "attention")
    shown.begin("2", Tally("bert", 3, 7), "opening", measures=False)
    shown.begin("3", tally, "helix")
    shown.tell()
    assert lines == ["gpt2 (2 of 7): attention, helix, 12 of 31 findings, about 5 min left; bert (3 of 7): opening"]


def test_of_one_model_alone_no_number_is_said_and_that_it_waits_once():
    lines = []
    shown = Display(lines.append, lambda: 0.0)
    shown.begin("1", Tally("gpt2"), "opening", measures=False)
    assert shown.in_words() == "gpt2: opening"
    shown.end("1")
    assert shown.in_words() == ""
    for _ in range(2):
        shown.wait_for("gpt2")
    assert lines == ["gpt2: waiting for another run to finish with its results"]


def test_the_time_left_is_learned_from_findings_of_the_same_kind():
    now, left = [0.0], {"stream": 100.0, "heads": 100.0, "gains": 3.0, "helix": 3.0}
    shown = Display(lambda line: None, lambda: now[0])
    tally = gpt2(findings=4, left=left, runs=frozenset({"stream", "heads"}))
    assert [tally.seconds_of(finding) for finding in left] == [100.0, 100.0, 3.0, 3.0]
    shown.begin("1", tally, "stream")
    now[0] = 20.0
    shown.end("1")
    assert tally.seconds_of("heads") == 20.0
    assert tally.seconds_of("gains") == 3.0
    shown.begin("1", tally, "gains")
    now[0] = 140.0
    shown.end("1")
    assert tally.seconds_of("helix") == 120.0
    tally.done = 2
    shown.begin("1", tally, "heads")
    assert shown.in_words() == "gpt2 (2 of 7): heads, 2 of 4 findings, about 2 min left"
    shown.say("1", Progress(0.1, 180.0))  # it knows better
    assert shown.in_words() == "gpt2 (2 of 7): heads, 2 of 4 findings, about 5 min left"


def test_the_table_has_a_row_for_each_job_and_the_time_that_is_left():
    lines = []
    shown, tally = TableDisplay(lines.append), gpt2(findings=30, done=10, left={"heads": 60.0})
    shown.begin("1", tally, "heads")
    shown.begin("2", Tally("bert", 3, 7), "opening", measures=False)
    shown.say("1", Progress(0.1, 180))
    text = drawn(shown)
    [row] = [line for line in text.splitlines() if "gpt2" in line and "heads" in line]
    assert "gpt2 (2 of 7)" in row and "computing" in row and "about 3 min left" in row
    assert "s so far" in next(line for line in text.splitlines() if "opening" in line)
    assert "gpt2 (2 of 7), 10 of 30 findings, about 3 min left" in text
    assert lines == []
    shown.end("1")
    assert "gpt2" not in drawn(shown)


@pytest.mark.parametrize("kind", [Display, TableDisplay])
def test_several_lines_are_reported_at_once(kind):
    lines = []
    shown = kind(lines.append)
    shown.begin("1", gpt2(), "heads")
    shown.say("1", "gpt2: heads failed\nTraceback")
    assert lines == ["gpt2: heads failed\nTraceback"]


def test_what_a_worker_says_is_shown_as_it_is_and_does_nothing_to_a_terminal():
    shown = TableDisplay(lambda line: None)
    shown.begin("1", Tally("[red]gpt2[/red]"), "heads\x1b[2J")
    shown.say("1", "reading, about 3 min left")
    [row] = [row for row in drawn(shown).splitlines() if "reading, about 3 min left" in row]
    assert "[red]gpt2[/red]" in row and "s so far" in row
    assert "\x1b" not in row


def test_elsewhere_than_on_a_terminal_a_line_comes_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(module, "FIRST_AFTER", 0.01)
    monkeypatch.setattr(module, "REPORT_EVERY", 0.3)
    with display() as shown:
        assert type(shown) is Display
        for i in range(50):
            shown.begin("1", gpt2(), f"finding {i}")
            time.sleep(0.02)
            shown.end("1")
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) <= 5  # a second in all, and the first comes at once
    assert all(line.startswith("gpt2 (2 of 7): finding ") for line in lines)


def test_on_a_terminal_a_table_is_shown_and_lines_above_it(monkeypatch, capsys):
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda stream: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with display() as shown:
        shown.begin("1", gpt2(findings=30, done=10), "heads")
        shown.report("bert: computed helix")
    shown = capsys.readouterr().err
    assert "bert: computed helix" in shown
    assert "gpt2 (2 of 7), 10 of 30 findings" in shown
    assert "\x1b[?25h" in shown, "the cursor comes back"
