"""What is known is not computed again; what can't be computed says why and costs nothing else."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from generators.compute import pipeline
from generators.base.errors import AtlasError, InputError, WeightsUnavailableError
from generators.findings.attention import ATTENTION
from generators.findings.channels import CHANNELS
from generators.findings.finding import NotApplicableError, Result
from generators.findings.gains import GAINS
from generators.findings.helix import HELIX
from generators.findings.thresholds import RULES
from generators.compute.pipeline import Outcome, Places, compute_model, stored_result
from generators.checkpoint.registry import FolderSource, Model, PackageSource
from generators.compute.results import Store
from tests.checkpoints import tensors_of, write_checkpoint
from tests.toy_findings import toy

POSITION_SIDE = (HELIX, CHANNELS, GAINS, ATTENTION)
NAMES = ("helix", "channels", "gains", "attention")
FAMILIES = ("gpt2", "openai-gpt", "bert")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


@pytest.fixture(autouse=True)
def _position_side(monkeypatch):
    """What is added to the atlas later changes nothing here."""
    monkeypatch.setattr(pipeline, "FINDINGS", POSITION_SIDE)


@pytest.fixture
def findings(monkeypatch):
    """Return a function that puts other findings in place of the real ones."""
    return lambda *replaced: monkeypatch.setattr(pipeline, "FINDINGS", replaced)


def run(folder, store, name="tiny") -> Outcome:
    return compute_model(Model(name=name, title=name, sources=(FolderSource(folder=folder),)), Places(), store)


def statuses(store, name="tiny"):
    return {name: record.status for name, record in store.load(name).findings.items()}


def snapshot(store, name="tiny"):
    return {path.name: path.read_bytes() for path in (store.root / name).iterdir() if not path.name.startswith(".")}


# The findings about positions


@pytest.mark.parametrize("family", FAMILIES)
def test_a_second_run_computes_nothing_and_writes_nothing(tmp_path, store, family):
    folder = write_checkpoint(tmp_path / "tiny", family)
    assert run(folder, store) == Outcome("tiny", NAMES, (), {})
    before = snapshot(store)
    assert run(folder, store) == Outcome("tiny", (), NAMES, {})
    assert snapshot(store) == before


@pytest.mark.parametrize("family", FAMILIES)
def test_every_finding_is_computed_and_every_claim_judged_in_order(tmp_path, store, family):
    run(write_checkpoint(tmp_path / "tiny", family), store)
    found = store.load("tiny")
    assert set(statuses(store).values()) == {"computed"}
    assert [claim.id for claim in found.claims] == [rule.id for rule in RULES if rule.finding in NAMES]
    assert found.model.family == family
    assert (found.model.causal, found.model.post_norm) == (family != "bert", family != "gpt2")
    assert all(record.version >= 1 and record.computed_on for record in found.findings.values())


def test_tensors_are_recorded_by_role(tmp_path, store):
    run(write_checkpoint(tmp_path / "tiny", "bert", prefix="bert."), store)
    tensors = store.load("tiny").tensors
    assert tensors["blocks.1.ln1.gain"].name == "bert.encoder.layer.0.output.LayerNorm.weight"
    assert tensors["position_embedding"].shape == (64, 24)
    assert tensors["position_embedding"].dtype == "F32"
    assert "blocks.0.mlp.out" not in tensors  # no finding reads it


def test_without_positions_what_needs_them_is_missing_by_name(tmp_path, store):
    outcome = run(write_checkpoint(tmp_path / "tiny", without=("wpe.weight",)), store)
    assert outcome == Outcome("tiny", ("gains",), (), {})
    found = store.load("tiny")
    for name in ("helix", "channels", "attention"):
        assert found.findings[name].status == "missing"
        assert found.findings[name].reason == "The checkpoint lacks wpe.weight (position_embedding)."
        assert found.findings[name].metrics is None
    untested = [claim for claim in found.claims if claim.finding == "helix"]
    assert len(untested) == 7
    assert {claim.verdict for claim in untested} == {"untested"}
    assert {claim.answer for claim in untested} == {"The checkpoint lacks wpe.weight (position_embedding)."}


def test_several_missing_tensors_are_counted(tmp_path, store):
    run(write_checkpoint(tmp_path / "tiny", without=("attn.c_proj.weight",)), store)
    attention = store.load("tiny").findings["attention"]
    assert attention.reason == ("The checkpoint lacks h.0.attn.c_proj.weight (blocks.0.attn.o) and 1 more like it.")
    assert statuses(store) == {
        "helix": "computed",
        "channels": "computed",
        "gains": "computed",
        "attention": "missing",
    }


def test_results_of_a_partial_checkpoint_stay_when_the_rest_arrives(tmp_path, store):
    folder = write_checkpoint(tmp_path / "tiny", without=("wte.weight", "mlp.c_fc.weight"))
    assert run(folder, store).computed == NAMES
    before = store.load("tiny")
    write_checkpoint(folder, without=("wte.weight",))
    assert run(folder, store) == Outcome("tiny", ("attention",), ("helix", "channels", "gains"), {})
    write_checkpoint(folder)
    assert run(folder, store) == Outcome("tiny", ("helix", "channels", "attention"), ("gains",), {})
    after = store.load("tiny")
    assert after.findings["gains"] == before.findings["gains"]
    assert set(after.tensors) - set(before.tensors) == {"token_embedding", "blocks.0.mlp.in", "blocks.1.mlp.in"}


def test_when_a_tensor_is_taken_away_nothing_stale_stays(tmp_path, store):
    folder = write_checkpoint(tmp_path / "tiny")
    run(folder, store)
    write_checkpoint(folder, without=("wpe.weight",))
    assert run(folder, store).computed == ("gains",)  # it used positions too
    assert statuses(store)["helix"] == "missing"
    assert "position_embedding" not in store.load("tiny").tensors
    assert {claim.verdict for claim in store.load("tiny").claims if claim.finding == "helix"} == {"untested"}


def test_two_models_of_two_families_do_not_touch_one_another(tmp_path, store):
    run(write_checkpoint(tmp_path / "one", "gpt2"), store, "one")
    before = snapshot(store, "one")
    run(write_checkpoint(tmp_path / "two", "bert"), store, "two")
    assert store.names() == ["one", "two"]
    assert snapshot(store, "one") == before
    assert store.load("two").model.family == "bert"


# Toy findings


def test_only_the_finding_that_changed_is_computed(tmp_path, store, findings):
    runs = Counter()
    folder = write_checkpoint(tmp_path / "tiny")
    findings(toy("one", runs=runs), toy("two", runs=runs))
    run(folder, store)
    findings(toy("one", runs=runs), toy("two", runs=runs, version=2))
    assert run(folder, store) == Outcome("tiny", ("two",), ("one",), {})
    assert runs == {"one": 1, "two": 2}
    assert store.load("tiny").findings["two"].version == 2


def test_only_the_finding_that_reads_a_changed_tensor_is_computed(tmp_path, store, findings):
    findings(toy("positions"), toy("tokens", needs=("token_embedding",)))
    folder = write_checkpoint(tmp_path / "tiny")
    run(folder, store)
    write_checkpoint(folder, changed={"wte.weight": 2 * tensors_of("gpt2")["wte.weight"]})
    assert run(folder, store) == Outcome("tiny", ("tokens",), ("positions",), {})


def test_only_findings_that_read_token_facts_depend_on_them(tmp_path, store, findings):
    reads_both = toy("both", reads_vocabulary=True, reads_frequencies=True)
    findings(toy("weights"), toy("vocabulary", reads_vocabulary=True), reads_both)
    folder = write_checkpoint(tmp_path / "tiny", "bert")
    tokens = [f"token{i}" for i in range(50)]
    (folder / "vocab.txt").write_text("\n".join(tokens))
    run(folder, store)
    assert run(folder, store).computed == ()
    (folder / "vocab.txt").write_text("\n".join(reversed(tokens)))
    assert run(folder, store).computed == ("vocabulary", "both")
    np.save(folder / "token_counts.npy", np.arange(50))
    assert run(folder, store).computed == ("both",)


def test_arrays_of_what_was_replaced_are_pruned(tmp_path, store, findings, monkeypatch):
    folder = write_checkpoint(tmp_path / "tiny")
    findings(toy("one"))
    run(folder, store)
    old = store.load("tiny").findings["one"].key
    findings(toy("one", version=2))
    with monkeypatch.context() as killed_before_pruning:
        killed_before_pruning.setattr(Store, "prune", lambda *_: None)
        run(folder, store)
    assert store.arrays("tiny", old)
    assert run(folder, store).computed == ()
    with pytest.raises(InputError, match="lack those of the key"):
        store.arrays("tiny", old)
    assert stored_result(store, "tiny", store.load("tiny").findings["one"]).arrays


def breaking(weights, architecture):
    raise ZeroDivisionError("a bug in a finding")


def test_a_finding_that_breaks_costs_no_other(tmp_path, store, findings):
    findings(toy("one"), toy("broken", compute=breaking), toy("two"))
    lines = []
    model = Model(name="tiny", title="t", sources=(FolderSource(folder=write_checkpoint(tmp_path / "tiny")),))
    outcome = compute_model(model, Places(), store, lines.append)
    reason = "ZeroDivisionError: a bug in a finding"
    assert outcome == Outcome("tiny", ("one", "two"), (), {"broken": reason})
    assert statuses(store) == {"one": "computed", "broken": "failed", "two": "computed"}
    assert store.load("tiny").findings["broken"].reason == reason
    assert any("Traceback" in line for line in lines)


def test_a_finding_that_broke_is_tried_again(tmp_path, store, findings):
    folder = write_checkpoint(tmp_path / "tiny")
    findings(toy("one", compute=breaking))
    run(folder, store)
    findings(toy("one"))
    assert run(folder, store).computed == ("one",)
    assert statuses(store) == {"one": "computed"}


def test_claims_that_break_are_a_failed_finding(tmp_path, store, monkeypatch):
    def no_claims(result):
        raise KeyError("circle")

    monkeypatch.setattr(pipeline, "FINDINGS", (replace(HELIX, claims=no_claims), GAINS))
    outcome = run(write_checkpoint(tmp_path / "tiny"), store)
    assert set(outcome.failed) == {"helix"}
    claims = [claim for claim in store.load("tiny").claims if claim.finding == "helix"]
    assert {claim.verdict for claim in claims} == {"untested"}
    assert {claim.answer for claim in claims} == {"The finding failed: KeyError: 'circle'"}


def test_what_does_not_apply_says_so_and_is_not_tried_again(tmp_path, store, findings):
    runs = Counter()

    def none_here(weights, architecture):
        raise NotApplicableError("This model has no such thing.")

    findings(toy("one", compute=none_here, runs=runs))
    folder = write_checkpoint(tmp_path / "tiny")
    for _ in range(2):
        assert run(folder, store) == Outcome("tiny", (), (), {})
    assert runs == {"one": 1}
    record = store.load("tiny").findings["one"]
    assert (record.status, record.reason) == ("not_applicable", "This model has no such thing.")


def test_what_a_family_has_not_at_all_is_not_applicable(tmp_path, store, findings):
    findings(toy("final", needs=("final_norm.gain",)))
    run(write_checkpoint(tmp_path / "tiny", "bert"), store)
    record = store.load("tiny").findings["final"]
    assert record.status == "not_applicable"
    assert record.reason.startswith("The bert architecture has no final")


def test_a_finding_is_saved_before_the_next_begins(tmp_path, store, findings):
    def look(weights, architecture):
        assert stored_result(store, "tiny", store.load("tiny").findings["one"]).metrics["sum"]
        return Result({"seen": True}, {}, {"a": np.ones(1)})

    findings(toy("one"), toy("two", compute=look))
    assert run(write_checkpoint(tmp_path / "tiny"), store).failed == {}


def test_while_new_results_come_in_the_others_stay_as_they_were(tmp_path, store, findings):
    folder = write_checkpoint(tmp_path / "tiny")
    findings(toy("one"), toy("two"))
    run(folder, store)
    old = store.load("tiny")
    write_checkpoint(folder, seed=1)

    def killed(weights, architecture):
        raise KeyboardInterrupt

    findings(toy("one"), toy("two", compute=killed))
    with pytest.raises(KeyboardInterrupt):
        run(folder, store)
    now = store.load("tiny")
    assert now.findings["one"].key != old.findings["one"].key
    assert now.findings["two"] == old.findings["two"]
    for record in now.findings.values():
        assert stored_result(store, "tiny", record).arrays


@pytest.mark.parametrize("role", ["token_embedding", "position_embedding"])
def test_a_bad_tensor_is_found_before_anything_is_computed(tmp_path, store, findings, role):
    runs = Counter()
    findings(toy("one", runs=runs), toy("two", needs=("token_embedding",), runs=runs))
    name = {"token_embedding": "wte.weight", "position_embedding": "wpe.weight"}[role]
    bad = tensors_of("gpt2")[name].copy()
    bad[3, 5] = np.inf
    folder = write_checkpoint(tmp_path / "tiny", changed={name: bad})
    with pytest.raises(InputError, match=f"{name} in the checkpoint tiny holds NaN or infinity"):
        run(folder, store)
    assert runs == {}
    assert not (store.root / "tiny").exists()


def test_weights_that_cannot_be_had_leave_no_trace(store):
    model = Model(name="tiny", title="t", sources=(PackageSource(package="no-such-package-here"),))
    with pytest.raises(WeightsUnavailableError, match="isn't installed"):
        compute_model(model, Places(), store)
    assert not store.root.exists()


def test_errors_of_the_atlas_are_no_failed_findings(tmp_path, store, findings):
    def full(weights, architecture):
        raise AtlasError("The disk is full.")

    findings(toy("one", compute=full))
    with pytest.raises(AtlasError, match="disk is full"):
        run(write_checkpoint(tmp_path / "tiny"), store)


def test_a_model_folder_is_searched_before_the_sources(tmp_path, store, findings):
    findings(toy("one"))
    write_checkpoint(tmp_path / "models" / "tiny")
    model = Model(name="tiny", title="t", sources=(PackageSource(package="no-such-package-here"),))
    assert compute_model(model, Places([tmp_path / "models"]), store).computed == ("one",)
    assert store.load("tiny").model.source.kind == "folder"
