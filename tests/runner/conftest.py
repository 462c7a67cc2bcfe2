import pytest

pytest.importorskip("torch", reason="torch isn't installed")
pytest.importorskip("transformers", reason="transformers isn't installed")
