"""A model hub of the tests' own, for every test that names it."""

import pytest

from generators.base import notices
from generators.checkpoint.sources import patience
from tests.checkpoint.fake_hub import at_hub, serving


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Yield a server that the hub's client takes for the hub; what tests write under it is published."""
    with serving(tmp_path / "hub") as server:
        at_hub(server, tmp_path, monkeypatch)
        yield server


@pytest.fixture
def waits(monkeypatch):
    """Return a list of how long was waited, by a clock that only waiting moves on."""
    waited: list[float] = []
    monkeypatch.setattr(patience, "sleep", waited.append)
    monkeypatch.setattr(patience, "clock", lambda: sum(waited))
    return waited


@pytest.fixture
def lines():
    """Yield a list of the sentences about the whole run that are said meanwhile."""
    heard: list[str] = []
    with notices.heard_by(heard.append):
        yield heard
