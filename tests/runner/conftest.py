"""Models that are written and opened once for all tests of a file."""

from collections.abc import Callable
from typing import Any

import pytest

from generators.runner import open_model
from generators.runner.run import OpenedModel
from generators.runner.shared import BEFORE
from tests.runner.models import KINDS, Kind, architecture, write_model


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., OpenedModel]:
    """Return a function that opens a kind of model once; `encoder` is a BERT without a head.

    It is run whenever it is asked, so that what it is after a change isn't what it was before.
    """
    opened, root = {}, tmp_path_factory.mktemp("models")

    def open_once(name: str, kind: Kind | None = None, **changed: int) -> OpenedModel:
        kind = kind or KINDS.get(name, KINDS["bert"])
        if name not in opened:
            folder = write_model(root / name, kind, head=name != "encoder")
            run = opened[name] = open_model(folder, architecture(kind, **changed), position_tensor=kind.tensor)
            run._shared.changes.append(BEFORE)  # as if it were changed all the time: nothing is kept then
        return opened[name]

    return open_once


@pytest.fixture
def anew(opened: Callable[..., OpenedModel]) -> Callable[..., OpenedModel]:
    """Return a function that opens a kind of model once more, as findings do."""

    def open_again(name: str, **options: Any) -> OpenedModel:
        first, tensor = opened(name), KINDS.get(name, KINDS["bert"]).tensor
        return open_model(first._folder, first.architecture, position_tensor=tensor, **options)

    return open_again
