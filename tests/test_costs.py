"""What a model takes is known before any weight comes, and is what then comes."""

import re
import threading
from pathlib import Path

import pytest

from generators import costs
from generators.checkpoint.registry import FolderSource, HubSource, Model
from generators.checkpoint.sources import Places, ranged
from generators.compute.results import Store
from generators.compute.running import RunSettings
from generators.compute.schedule import compute_model
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from generators.runner import faster
from generators.runner.run import OpenedModel
from generators.runner.texts import window_length
from tests.checkpoints import write_checkpoint
from tests.runner.models import KINDS, write_tokenizer

SKIPPED = RunSettings(skip=True)
MODELS = Path(__file__).parents[1] / "models"
RUNNING = tuple(finding for finding in FINDINGS if RUN in finding.needs and finding.name != "channel_use")
FEWEST = {"learned": costs.FEWEST_RUNS, "rotary": costs.FEWEST_ROTATING}
OF_MANY_CHANNELS = 168  # windows that `channel_use` runs of a model with more than 256


def of_hub(name: str) -> Model:
    return Model(name=name, title=name.title(), sources=(HubSource(hub=f"owner/{name}"),))


@pytest.fixture
def published(fake) -> Model:
    write_tokenizer(write_checkpoint(fake.repository("owner/model")), KINDS["gpt2"])
    return of_hub("model")


def test_what_is_announced_is_what_comes(fake, published, tmp_path):
    cost = costs.cost_of(published, Places(), SKIPPED)
    headers = fake.sent
    assert 0 < headers < cost.download
    compute_model(published, Places(), Store(tmp_path / "results"), settings=SKIPPED)
    assert fake.sent - headers == cost.download
    assert costs.cost_of(published, Places(), SKIPPED).download == 0


def test_a_model_that_is_run_takes_whole_files_more_memory_and_more_time(fake, published):
    asked = (SKIPPED, RunSettings(1e-9), RunSettings(1e-6), RunSettings())
    skipped, least, little, usual = (costs.cost_of(published, Places(), settings) for settings in asked)
    assert usual.download == (fake.repository("owner/model") / "model.safetensors").stat().st_size
    assert skipped.memory < usual.memory
    assert skipped.seconds < least.seconds == little.seconds < usual.seconds


def test_of_older_files_only_the_size_is_known(fake, published):
    write_checkpoint(fake.repository("owner/empty"))
    (fake.repository("owner/empty") / "model.safetensors").unlink()
    (fake.repository("owner/empty") / "pytorch_model.bin").write_bytes(b"x")
    found = costs.costs([of_hub("empty"), published], Places(), RunSettings())
    assert [(cost.download > 1, cost.seconds is not None) for cost in found] == [(False, False), (True, True)]


def test_the_speed_of_the_machine_is_measured_once_and_by_itself(published, monkeypatch):
    measured = []
    monkeypatch.setattr(
        faster.timeit, "repeat", lambda *_, **__: measured.append(threading.current_thread()) or [0.1]
    )
    costs._speed.cache_clear()
    list(costs.costs([published] * 8, Places(), RunSettings()))
    assert measured == [threading.main_thread()]
    costs._speed.cache_clear()


@pytest.mark.parametrize("place", FEWEST)
def test_what_is_run_in_any_case_is_what_times_are_reckoned_with(place, tmp_path, monkeypatch):
    windows, batches = [], OpenedModel._batches

    def counted(self, ids, *given):
        windows.append(ids.size / window_length(self.architecture.n_ctx))
        return batches(self, ids, *given)

    monkeypatch.setattr(OpenedModel, "_batches", counted)
    model = Model(name="model", title="Model", sources=(FolderSource(folder=MODELS / "stdlib-family" / place),))
    compute_model(model, Places(), Store(tmp_path), settings=RunSettings(budget_s=1e-3), findings=RUNNING)
    assert sum(windows) + OF_MANY_CHANNELS == pytest.approx(FEWEST[place], rel=0.2)


def test_sums_say_what_they_leave_out(published):
    known = costs.Cost(published, 2_000_000_000, 10**9, 3 * 3600)
    away = costs.Cost(published, trouble="The model hub can't be reached.")
    assert costs.in_total([known]) == "about 2.0 GB to download and about 3 h on this machine"
    assert costs.in_total([known, away]).endswith(", not counting 1 that can't be downloaded")


def test_nothing_is_run_where_the_disk_is_short(fake, published, tmp_path, monkeypatch):
    monkeypatch.setattr(ranged, "free_bytes", lambda folder: 1000)
    store = Store(tmp_path / "results")
    done = compute_model(published, Places(), store)
    assert "helix" in done.computed
    reason = store.finding("model", "stream").reason
    assert re.search(r"its files take .* kB, and the disk of .* has 1.0 kB free", reason)
    assert fake.sent < (fake.repository("owner/model") / "model.safetensors").stat().st_size
    monkeypatch.setattr(ranged, "free_bytes", lambda folder: 10**12)
    assert costs.cost_of(published, Places(), RunSettings()).download > 0
