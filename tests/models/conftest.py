"""A little library that trainings read."""

from pathlib import Path

import pytest

from tests.models.little_library import write_little_library


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_little_library(tmp_path_factory.mktemp("library"))
