"""Models that are written and opened once for all tests of a file."""

from collections.abc import Callable

import pytest

from generators.runner import open_model
from generators.runner.run import OpenedModel
from tests.runner.models import KINDS, Kind, architecture, write_model


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., OpenedModel]:
    """Return a function that opens a kind of model once; `encoder` is a BERT without a head."""
    opened, root = {}, tmp_path_factory.mktemp("models")

    def open_once(name: str, kind: Kind | None = None, **changed: int) -> OpenedModel:
        kind = kind or KINDS.get(name, KINDS["bert"])
        if name not in opened:
            folder = write_model(root / name, kind, head=name != "encoder")
            opened[name] = open_model(folder, architecture(kind, **changed), position_tensor=kind.tensor)
        return opened[name]

    return open_once
