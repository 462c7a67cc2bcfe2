"""Made-up results: those of a model that the repository keeps, stored under other names with other numbers."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from generators.compute.results import Store
from tests.conftest import ROOT

STORED = "openai-gpt"  # its helix, channels, gains and attention are computed, the rest is missing
Change = Callable[[dict[str, Any]], None]


def made_up(store: Store, name: str, changes: Mapping[str, Change]) -> None:
    """Store what is kept of one model as that of `name`, the metrics of some findings changed in place.

    Findings that `changes` doesn't name are left out.
    """
    saved = Store(ROOT / "results")
    model = saved.model(STORED)
    assert model is not None
    store.save_model(model.model_copy(update={"name": name, "title": name}))
    for finding, change in changes.items():
        whole = saved.load(STORED, finding)
        assert whole is not None
        record, arrays = whole
        metrics = dict(record.metrics or {})
        change(metrics)
        store.save_finding(name, record.model_copy(update={"metrics": metrics, "arrays_sha256": None}), arrays)


def winding(turns: float) -> Change:
    def change(metrics: dict[str, Any]) -> None:
        metrics["winding"] = turns

    return change


def same(metrics: dict[str, Any]) -> None:
    """Change nothing."""


def project(folder: Path, series: str, names: list[str]) -> Path:
    entries = [
        f"- {{name: {name}, title: {name}, only_in_series: true, sources: [{{folder: {name}}}]}}" for name in names
    ]
    (folder / "models.yml").write_text("\n".join(entries) or "[]")
    (folder / "series.yml").write_text(series)
    return folder / "models.yml"
