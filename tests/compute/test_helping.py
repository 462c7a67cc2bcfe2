"""A worker that is idle takes half of a finding's losses: fewer are left to the other, and nothing else changes."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from generators.base.architecture import Rotary
from generators.checkpoint.sources import Places
from generators.compute import running, schedule
from generators.compute.helping import EnoughError, as_helper
from generators.compute.jobs import Failed, Help, Measure
from generators.compute.schedule import compute_models
from generators.findings import FINDINGS
from generators.findings.inputs import RUN, Inputs
from generators.findings.measured import Measurements
from generators.runner.losses import StoredLoss
from tests import synthetic
from tests.compute.harness import Recorded, computed, in_folders, stored
from tests.findings.stand_in import StandIn
from tests.toy_findings import toy

N, PAIRS = 72, 16
ARCH = replace(
    synthetic.architecture(n_ctx=N, d_model=128, n_layer=2, n_head=4),
    positions="rotary",
    rotary=(Rotary(2 * PAIRS, tuple(2 * np.pi * 10000 ** (np.arange(PAIRS) / PAIRS))),) * 2,
)


class Storing(StandIn):
    """A model in place of one whose losses are stored in a folder. `measured` counts those that aren't read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(ARCH, None, kind="rotary", length=N, pairs=0.6 ** np.arange(PAIRS))
        self.unfinished, self.measured, self._losses = folder, 0, 0

    def loss(self, windows):
        self._losses += 1
        whole = super().loss(windows)
        whole.per_window = partial(self._counted, whole.per_window)
        return StoredLoss(whole, self.unfinished / str(self._losses), lambda windows: None)

    def _counted(self, taken, see=None):
        self.measured += 1
        return taken(see)


def measured(finding, folder: Path, most: float = float("inf")) -> tuple[Measurements, int]:
    """Measure; return what comes of it, and how many losses weren't there. After `most` it is interrupted."""
    run = Storing(folder)

    def counted(taken, see=None):
        if run.measured == most:
            raise KeyboardInterrupt
        return Storing._counted(run, taken, see)

    run._counted = counted
    return finding.measure(Inputs({}, ARCH, run=run)), run.measured


def helped(finding, folder: Path) -> int:
    """Help as far as it goes; return how many losses were taken."""
    run = Storing(folder)
    with suppress(EnoughError):
        finding.measure(Inputs({}, ARCH, run=as_helper(run)))
    return run.measured


@pytest.mark.parametrize("finding", [each for each in FINDINGS if each.splits], ids=lambda finding: finding.name)
@pytest.mark.parametrize("before", [1, 40, 201])
def test_half_of_the_losses_that_are_left_are_found_and_all_is_the_same(finding, before, tmp_path):
    alone, losses = measured(finding, tmp_path / "alone")
    folder = tmp_path / "together"
    with pytest.raises(KeyboardInterrupt):
        measured(finding, folder, before)
    taken = helped(finding, folder)
    assert taken == pytest.approx((losses - before) / 2, abs=8)
    together, left = measured(finding, folder)
    assert before + taken + left == losses
    assert together.metrics == alone.metrics
    assert together.tables == alone.tables
    assert {path.name for path in folder.rglob("*.npy")} == {
        path.name for path in (tmp_path / "alone").rglob("*.npy")
    }


def test_no_finding_is_helped_once_it_is_done(tmp_path):
    [finding] = [each for each in FINDINGS if each.name == "rotary_use"]
    with pytest.raises(EnoughError):
        finding.measure(Inputs({}, ARCH, run=as_helper(Storing(tmp_path / "gone"))))
    assert list(tmp_path.iterdir()) == []


def test_who_is_close_behind_is_not_helped(tmp_path):
    run = Storing(tmp_path / "kept")
    loss = as_helper(run).loss(run.windows(4, 0))
    folder = tmp_path / "kept/1"
    folder.mkdir(parents=True)
    (folder / "1.npy").touch()  # the other is at its second: the fourth is too close, the sixth isn't
    for _ in range(6):
        loss.per_window()
    assert {path.name for path in folder.iterdir()} == {"1.npy", "6.npy"}
    with pytest.raises(EnoughError):
        loss.per_window(lambda *_: None)


def test_help_ends_with_the_finding_even_if_the_last_loss_makes_the_folder_anew(tmp_path):
    run = Storing(tmp_path / "kept")
    loss = as_helper(run).loss(run.windows(4, 0))
    folder = tmp_path / "kept/1"
    folder.mkdir(parents=True)
    (folder / "1.npy").touch()
    for _ in range(6):
        loss.per_window()
    (folder / "1.npy").unlink()
    assert folder.is_dir()
    with pytest.raises(EnoughError):
        loss.per_window()


class TwoAtOnce(Recorded):
    """Two workers, of whom one measures `longest` until the other has helped, or died of it."""

    def __init__(self, **options: object) -> None:
        super().__init__(2, **options)
        self.helpers: list[object] = []

    def answers(self, seconds):
        waits = {
            worker: self._running.pop(worker)
            for worker, (job, _) in list(self._running.items())
            if isinstance(job, Measure) and job.what == "longest" and not self.helpers
        }
        for job, _ in waits.values():
            job.unfinished.mkdir(parents=True, exist_ok=True)
        for worker, answer in super().answers(seconds):
            job = self.done[-1] if self.done else None
            if type(answer).__name__ in ("Helped", "Failed", "Died"):
                self.helpers.append(answer)
                assert isinstance(job, Help) or type(answer).__name__ == "Died"
            yield worker, answer
        self._running |= waits


@pytest.fixture
def prepared(monkeypatch, tmp_path):
    """Return a model, findings of which the longest splits, and what they come to one after another."""
    monkeypatch.setattr(running, "why_not", lambda files, checkpoint, device: None)
    monkeypatch.setattr(running, "depends_on", lambda files, checkpoint: {"weights": 1})
    monkeypatch.setattr(running, "opened_model", lambda files, checkpoint, device: StandIn(ARCH, None))
    monkeypatch.setattr(schedule, "HELPED_AFTER_S", 0.0)
    calls = Counter()

    def measure(inputs):
        calls[type(inputs.run).__name__] += 1
        if "fails" in calls and type(inputs.run) is not StandIn:
            raise RuntimeError("a helper broke")
        return Measurements({"sum": 1.0}, {}, {})

    needs = ("position_embedding", RUN)
    findings = (toy("short"), replace(toy("longest", needs=needs, passes=9.0, measure=measure), splits=True))
    models = in_folders(tmp_path / "models", 1)
    return models, findings, calls


@pytest.mark.parametrize("how", ["well", "fails", "dies"])
def test_an_idle_worker_helps_and_whatever_becomes_of_it_costs_nothing(prepared, store, tmp_path, how):
    models, findings, calls = prepared
    alone = type(store)(tmp_path / "alone")
    compute_models(models, Places(), alone, named=True, findings=findings)
    if how == "fails":
        calls["fails"] = 1
    workers = TwoAtOnce(dies=lambda job: how == "dies" and isinstance(job, Help))
    summary = computed(models, store, workers, findings)
    assert summary.sentences == []
    assert stored(store.root) == stored(alone.root)
    assert not (store.root / "model-0" / ".unfinished").exists()
    [answer] = workers.helpers
    assert type(answer).__name__ == {"well": "Helped", "fails": "Failed", "dies": "Died"}[how]
    assert isinstance(answer, Failed) == any("a helper broke" in line for line in workers.lines)
    assert calls["StandIn"] == 2
    assert calls["Ahead"] == (how != "dies")


def test_nobody_helps_where_jobs_are_left_or_the_finding_does_not_split(prepared, store):
    models, findings, _ = prepared
    workers = Recorded(2)
    computed(models, store, workers, (findings[0], replace(findings[1], splits=False)))
    assert not any(isinstance(job, Help) for job in workers.done)
