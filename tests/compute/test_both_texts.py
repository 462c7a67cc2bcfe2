"""A model that was run on its own samples beside its text: stored under another name, and shown as a close call."""

from types import SimpleNamespace

import pytest

from generators.checkpoint.registry import ON_OWN_SAMPLES, Registry
from generators.compute import judged
from generators.compute.results import Store
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from generators.findings.judging import Claim
from generators.runner import own_samples
from generators.site.view import all_models
from tests.conftest import ROOT

RUNNING = next(finding for finding in FINDINGS if RUN in finding.needs and finding.rules)
SMALL = ROOT / "models" / "third-party" / "gpt2-basic-486"
LITTLE = 0.001  # minutes: the fewest windows there are


def claims(verdict):
    untested = RUNNING.untested("")
    return tuple(Claim(**{**vars(claim), "verdict": verdict}) for claim in untested)


@pytest.mark.parametrize(
    ("verdict", "other", "close", "shown"),
    [
        ("holds", "fails", True, "fails"),
        ("holds", "partly", True, "partly"),
        ("holds", "holds", False, "holds"),
        ("holds", "untested", False, None),
        ("untested", "holds", False, None),
    ],
)
def test_a_verdict_that_differs_between_the_texts_is_close(monkeypatch, verdict, other, close, shown):
    def found(store, name, finding, tied=None):
        stored = claims(other if name.endswith(ON_OWN_SAMPLES) else verdict)
        record = judged.records.FindingRecord(status="missing")
        return judged.JudgedFinding(finding, record, stored)

    monkeypatch.setattr(judged, "judged_finding", found)
    store = SimpleNamespace(model=lambda name: SimpleNamespace(tied=None), of_different_weights=lambda *_: None)
    model = judged.judged_model(store, "m", [RUNNING])
    for claim in model.findings[0].claims:
        assert (claim.verdict, claim.close, claim.on_own_samples) == (verdict, close, shown)


def test_runs_on_own_samples_are_stored_beside_the_model_and_have_no_page(atlas, tmp_path, monkeypatch):
    monkeypatch.setattr(own_samples, "MOST_SAMPLES", 8)
    monkeypatch.setattr(
        "generators.compute.jobs.time", SimpleNamespace(time=float)
    )  # opening takes longer than LITTLE
    run = atlas(
        *("compute", SMALL, "--registry", ROOT / "models.yml", "--results", tmp_path / "results"),
        *("--budget", LITTLE, "--own-samples", "--only", "stream", "--only", "helix"),
    )
    assert run.code == 0, run.err
    store = Store(tmp_path / "results")
    assert store.names() == [SMALL.name + ON_OWN_SAMPLES]
    record = store.finding(SMALL.name + ON_OWN_SAMPLES, "stream")
    assert record.run["text"] == own_samples.NAME
    assert store.finding(SMALL.name + ON_OWN_SAMPLES, "helix") is None
    assert list(all_models(Registry(models=()), store)) == []
