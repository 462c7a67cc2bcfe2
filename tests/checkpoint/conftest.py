"""What `oracle` marks, and a clock that only waiting moves on."""

import pytest

from generators.base import notices
from generators.checkpoint.sources import patience
from tests.checkpoints import write_checkpoint


@pytest.fixture(autouse=True)
def _of_an_oracle(request):
    if "oracle" in request.keywords:
        import transformers

        transformers.logging.set_verbosity_error()


@pytest.fixture
def tiny(fake):
    write_checkpoint(fake.repository("owner/tiny"))


@pytest.fixture
def waits(monkeypatch):
    """Return a list of how long was waited, by a clock that only waiting moves on."""
    waited: list[float] = []
    monkeypatch.setattr(patience._stopped, "wait", lambda after: waited.append(after) if after else None)
    monkeypatch.setattr(patience, "clock", lambda: sum(waited))
    return waited


@pytest.fixture
def lines():
    """Yield a list of the sentences about the whole run that are said meanwhile."""
    heard: list[str] = []
    with notices.heard_by(heard.append):
        yield heard
