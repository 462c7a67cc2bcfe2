"""What comes over the network for a model's results: just what its findings read, and once."""

from dataclasses import replace
from math import prod
from pathlib import Path
from types import SimpleNamespace

import pytest

from generators import findings as all_findings
from generators.checkpoint.config import WEIGHTS
from generators.checkpoint.sources import Hub, Places
from generators.compute import reconcile, running
from generators.compute.records import SourceRecord
from generators.compute.results import UP_TO_DATE, Store
from generators.compute.schedule import compute_model, compute_models
from generators.compute.summary import Outcome
from generators.compute.verify import adopt
from generators.findings.attention import FINDING as ATTENTION
from generators.findings.channels import FINDING as CHANNELS
from generators.findings.gains import FINDING as GAINS
from generators.findings.inputs import NotApplicableError
from generators.findings.stream import FINDING as STREAM
from tests.checkpoint.fake_hub import HubServer
from tests.checkpoint.oracle.cases import OracleCase
from tests.checkpoint.oracle.model import build
from tests.checkpoints import Sizes, _write_shards, config_of, tensors_of_llama, write_checkpoint, write_json
from tests.cli.conftest import results_of
from tests.compute.harness import at_hub, raising
from tests.runner.models import KINDS, write_tokenizer

QUICK = replace(ATTENTION, measure=raising(NotApplicableError("It is not measured here.")))
READING = (GAINS, QUICK)


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(all_findings, "FINDINGS", READING)


def computed(store: Store, skip: bool = True) -> Outcome:
    return compute_model(at_hub(), Places(hub=Hub()), store, settings=running.RunSettings(skip=skip))


def with_tokenizer(fake: HubServer) -> Path:
    """Publish a model that could be run, but for its tokenizer, which has words for few letters."""
    folder = write_checkpoint(fake.repository("owner/tiny"))
    write_tokenizer(folder, KINDS["gpt2"])
    return folder


def with_memory(free: int, total: int) -> tuple:
    return "psutil.virtual_memory", lambda: SimpleNamespace(available=free, total=total)


def tensors_read(store: Store, *findings: str) -> int:
    """Return the bytes of all tensors that findings say they were measured from, each tensor once."""
    entries = [entry for finding in findings for entry in store.finding("tiny", finding).tensors.values()]
    return sum({entry.name: 4 * prod(entry.shape) for entry in entries}.values())


def gpt2_like(folder) -> None:
    write_checkpoint(folder, sizes=Sizes(n_layer=6, n_head=4, d_model=256, n_ctx=512, vocab_size=8000))


def llama_like(folder, d=256, layers=8, tokens=12000) -> None:
    folder.mkdir(parents=True)
    _write_shards(folder, tensors_of_llama(d, 1024, tokens, layers), 3)
    write_json(folder / "config.json", config_of("llama", Sizes(layers, 4, d, vocab_size=tokens)))


@pytest.mark.parametrize("made", [gpt2_like, llama_like])
def test_what_findings_read_comes_at_once_and_next_to_nothing_else(fake, store, made):
    folder = fake.repository("owner/tiny")
    made(folder)
    assert computed(store).computed
    assert len(fake.weights_asked()) < 20  # for 44 or 57 tensors
    needed = tensors_read(store, *(finding.name for finding in READING))
    assert needed <= fake.sent <= 1.03 * needed
    assert needed < 0.8 * sum(path.stat().st_size for path in folder.glob("*.safetensors"))


@pytest.fixture
def remembered(fake: HubServer, store, tmp_path, monkeypatch) -> HubServer:
    """Compute a model, forget all requests, and all caches: a machine that has the results and nothing else."""
    write_checkpoint(fake.repository("owner/tiny"))
    computed_all(store)
    assert sum(asked.path.startswith("/api/models/") for asked in fake.asked) == 1
    monkeypatch.setenv("ATLAS_CACHE", str(tmp_path / "none"))
    fake.asked.clear()
    fake.sent = 0
    return fake


def computed_all(store: Store) -> dict[str, str]:
    """Compute the model, and return why it could not be used."""
    settings = running.RunSettings(skip=True)
    return compute_models([at_hub()], Places(hub=Hub()), store, settings=settings, named=True).unavailable


def test_of_a_model_that_is_as_it_was_the_commit_is_asked_for_and_nothing_else(remembered, store, tmp_path):
    before = results_of(tmp_path)
    assert computed_all(store) == {}
    assert [asked.path for asked in remembered.asked] == ["/api/models/owner/tiny/revision/main"]
    assert remembered.sent == 0
    assert results_of(tmp_path) == before


@pytest.mark.parametrize("of_a_folder", [False, True])
def test_what_is_remembered_goes_with_results_that_another_store_takes_over(remembered, store, tmp_path, of_a_folder):
    other, model = Store(tmp_path / "other"), store.model("tiny")
    assert adopt(other, store) == ["tiny/attention", "tiny/gains"]
    if of_a_folder:  # the same results, computed from a folder
        (other.root / "tiny" / UP_TO_DATE).unlink()
        other.save_model(model.model_copy(update={"source": SourceRecord(kind="folder", place="tiny")}))
    assert adopt(other, store) == []
    assert other.model("tiny") == model
    computed_all(other)
    assert len(remembered.asked) == 1


@pytest.mark.parametrize(
    ("place", "other"),
    [
        ("tests.checkpoint.fake_hub.COMMIT", "0ddba11" * 5 + "0ddba"),
        ("generators.base.digests.of_files", lambda paths, root: "changed"),
        ("generators.compute.reconcile._version", lambda name: "0"),
        ("generators.compute.memory.of_machine", lambda: 1 << 40),
    ],
    ids=["commit", "declared", "library", "memory"],
)
def test_where_anything_changed_it_is_opened(remembered, store, monkeypatch, place, other):
    reconcile._here.cache_clear()
    monkeypatch.setattr(place, other)
    computed_all(store)
    reconcile._here.cache_clear()
    assert any(asked.path.endswith(WEIGHTS) for asked in remembered.asked)


OF_MACHINE = ("generators.compute.memory.of_machine", lambda: 1 << 40)


@pytest.mark.parametrize(
    ("patches", "reason", "is_settled", "comes_whole"),
    [
        ([OF_MACHINE, with_memory(1_000, 20_000_000)], "more than is free", False, False),
        ([OF_MACHINE, with_memory(1_000, 2_000)], "memory", True, False),
        ([("generators.compute.running.opened_model", raising(MemoryError()))], "not enough memory", False, True),
        ([], "only 27 different tokens", True, True),
    ],
    ids=["little-is-free", "machine-is-small", "memory-error", "few-tokens"],
)
def test_what_cannot_be_run_is_tried_again_where_memory_may_get_free(
    fake, store, monkeypatch, patches, reason, is_settled, comes_whole
):
    size = (with_tokenizer(fake) / WEIGHTS).stat().st_size
    monkeypatch.setattr(all_findings, "FINDINGS", (GAINS, STREAM))
    for place, patched in patches:
        monkeypatch.setattr(place, patched)
    computed(store, skip=False)
    assert store.finding("tiny", "stream").status == "missing"
    assert reason in store.finding("tiny", "stream").reason
    assert (store.up_to_date("tiny") is not None) == is_settled
    least = size if comes_whole else tensors_read(store, "gains")
    assert least <= fake.sent < 1.1 * least + 5000  # and the header, which says what is in it


def test_a_model_that_this_machine_cannot_hold_is_refused_before_its_weights_come(fake, store, monkeypatch):
    write_checkpoint(fake.repository("owner/tiny"))
    monkeypatch.setattr("generators.compute.memory.of_machine", lambda: 1 << 28)
    reason = "It needs 0.3 GiB of memory, and this machine has 0.2 GiB."
    assert computed_all(store) == {"tiny": reason}
    assert fake.sent < 10_000


def test_of_a_model_of_images_positions_come_by_ranges_and_no_run_is_prepared(fake, store, monkeypatch):
    folder = fake.repository("owner/tiny")
    build(OracleCase("vit", config={"image_size": 64, "intermediate_size": 2048})).save_pretrained(folder)
    monkeypatch.setattr(all_findings, "FINDINGS", (CHANNELS, STREAM))
    computed(store, skip=False)
    assert store.finding("tiny", "channels").status == "computed"
    assert store.finding("tiny", "stream").reason == "The model can't be run on text: it has no tokens."
    assert fake.sent < 0.2 * (folder / WEIGHTS).stat().st_size


def test_of_a_type_that_sees_and_has_no_table_nothing_comes(fake, store):
    write_checkpoint(fake.repository("owner/tiny"), config={"model_type": "swin", "vocab_size": None})
    reason = computed_all(store)["tiny"]
    assert reason.startswith("The architecture family 'swin' is unknown")
    assert fake.weights_asked() == []
