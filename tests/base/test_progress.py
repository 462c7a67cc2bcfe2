"""Progress: plain lines where nobody looks, a bar on a terminal, and nothing that a terminal would obey."""

import sys
from collections.abc import Callable

import pytest

from generators.base.progress import Progress, TimeLeft, printable, progress, transfer

ESCAPES = "\x1b[31mred\x1b[0m \x07 \u202e [bold]not markup[/bold]"


@pytest.fixture
def on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda stream: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    return lambda: capsys.readouterr().err


def test_elsewhere_than_on_a_terminal_every_line_is_a_line_that_does_nothing_to_one(capsys):
    with progress() as report:
        report("one")
        report("two\nthree")
        report(ESCAPES)
    assert capsys.readouterr() == ("", f"one\ntwo\nthree\n{printable(ESCAPES)}\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, naïve, 日本", "plain, naïve, 日本"),
        ("two\nlines", "two\nlines"),
        ("\x1b[2J", "\ufffd[2J"),
        ("\r\x08\t", "\ufffd" * 3),
        ("\u202eabc", "\ufffdabc"),
        ("\udcff", "\ufffd"),
    ],
)
def test_what_is_printable_stays_and_what_is_not_is_seen_as_such(text, shown):
    assert printable(text) == shown


def test_on_a_terminal_more_than_a_line_is_printed_in_full_and_as_it_is(on_a_terminal):
    with progress() as report:
        report("a: failed\nTraceback [most recent call last]\n  " + ESCAPES)
    shown = on_a_terminal()
    assert "Traceback [most recent call last]" in shown
    assert "[bold]not markup[/bold]" in shown
    assert "\x07" not in shown
    assert "\x1b[31m" not in shown


def test_on_a_terminal_the_last_line_is_in_a_bar_and_what_goes_wrong_inside_comes_out(on_a_terminal):
    with pytest.raises(ZeroDivisionError), progress() as report:
        report("first: [bold]drawing[/bold]")
        report("about to fail")
        raise ZeroDivisionError
    shown = on_a_terminal()
    assert "about to fail" in shown
    assert "\x1b[?25h" in shown, "the cursor comes back"


def test_bytes_are_told_every_second_with_the_time_that_is_left():
    now, reported = [0.0], []
    with transfer(reported.append, "owner/tiny: reading", 10_000_000, clock=lambda: now[0]) as came:
        for second in (0.3, 30, 30.5, 60, 120):
            now[0] = second
            came(2_000_000)
    assert reported == [
        "owner/tiny: reading: 10.0 MB",
        "owner/tiny: reading: 4.0 MB of 10.0 MB, less than a minute left",
        "owner/tiny: reading: 8.0 MB of 10.0 MB, less than a minute left",
    ]


def test_printed_bytes_are_told_every_ten_seconds(capsys):
    now = [0.0]
    with progress() as report, transfer(report, "reading", None, clock=lambda: now[0]) as came:
        for second in (3, 11, 12, 25, 26):
            now[0] = second
            came(2_000_000)
    assert capsys.readouterr().err.splitlines() == ["reading: 4.0 MB", "reading: 8.0 MB"]


def told_at(*shares: tuple[float, float], start: float = 0.0) -> list[Progress]:
    """Return what is told of the time left where shares are done at these seconds."""
    now, told = [start], []
    left = TimeLeft(told.append, clock=lambda: now[0])
    for second, share in shares:
        now[0] = start + second
        left(share)
    return told


def test_the_time_left_is_shown_now_and_then_as_numbers():
    told = told_at((1, 0.01), (30, 0.1), (35, 0.12), (90, 0.5), (140, 0.95), (200, 1.0), start=100.0)
    assert [done.share for done in told] == [0.1, 0.5, 0.95]
    expected = [29 / 0.09 * 0.9, 89 / 0.49 * 0.5, 139 / 0.94 * 0.05]
    assert [done.seconds_left for done in told] == pytest.approx(expected)
    waited = told_at((1000, 0.01), (1010, 0.11))  # what came before the first share says nothing
    assert [done.seconds_left for done in waited] == pytest.approx([89])
    assert told_at((0, 0.5)) == []
