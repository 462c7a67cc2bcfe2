"""What the terminal shows in which colour."""

import typer

from generators.base import terminal

RED = typer.style("", fg="red", reset=False)


def test_a_claim_that_fails_is_a_result_and_not_shown_as_an_error(monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(typer, "echo", lambda text="", err=False: said.append(text))
    terminal.sentence("There is no model of that name.")
    terminal.verdict("fails", "✗", "fails", "Positions wind.", "They don't.")
    assert RED in said[0]
    assert RED not in "".join(said[1:])
