"""A model hub of the tests' own, for every test that names it."""

import pytest

from tests.checkpoint.fake_hub import at_hub, serving


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Yield a server that the hub's client takes for the hub; what tests write under it is published."""
    with serving(tmp_path / "hub") as server:
        at_hub(server, tmp_path, monkeypatch)
        yield server
