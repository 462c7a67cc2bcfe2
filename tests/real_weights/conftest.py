"""The four models whose real weights tests may find."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # imported when a test asks for it: --shapes must come before what it checks
    from tests.real_weights.measured import RealModel


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("real_weights")


def real(name: str, folder: Path | None = None) -> "RealModel":
    from tests.real_weights.measured import RealModel

    return RealModel(name, folder)


@pytest.fixture(scope="session")
def gpt2(gpt2_weights: Path) -> "RealModel":
    return real("gpt2", gpt2_weights.parent)


@pytest.fixture(scope="session")
def gpt1(gpt2_weights: Path) -> "RealModel":
    if not (gpt2_weights.parent / "openai-gpt" / "model.safetensors").is_file():
        pytest.skip("no real GPT-1: there is no openai-gpt/model.safetensors beside gpt2")
    return real("openai-gpt", gpt2_weights.parent)


@pytest.fixture(scope="session")
def minilm_l6(minilm: str) -> "RealModel":
    return real("all-minilm-l6-v2")


@pytest.fixture(scope="session")
def stdlib() -> "RealModel":
    return real("stdlib-gpt2")
