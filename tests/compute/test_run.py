"""What is known is not computed again; what can't be computed says why and costs nothing else."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from generators import findings as all_findings
from generators.base.display import Display
from generators.base.errors import AtlasError, InputError
from generators.checkpoint.checkpoint import Checkpoint
from generators.checkpoint.sources import Places
from generators.compute.judged import judged_model
from generators.compute.records import StoredFinding
from generators.compute.results import Store
from generators.compute.schedule import compute_model
from generators.compute.summary import Outcome
from generators.findings.attention import FINDING as ATTENTION
from generators.findings.channels import FINDING as CHANNELS
from generators.findings.gains import FINDING as GAINS
from generators.findings.helix import FINDING as HELIX
from generators.findings.inputs import FREQUENCIES, TOKENS, NotApplicableError
from generators.findings.measured import Measurements
from tests.checkpoints import tensors_of, write_checkpoint
from tests.compute.harness import contents, model_in, raising
from tests.toy_findings import positive, toy

POSITION_SIDE = (HELIX, CHANNELS, GAINS, ATTENTION)
NAMES = ("helix", "channels", "gains", "attention")
FAMILIES = ("gpt2", "openai-gpt", "bert")
PANIC = type("PanicException", (BaseException,), {})  # as those of libraries in Rust
OVERFLOWN = Measurements({"sum": np.inf}, {}, {})


@pytest.fixture(autouse=True)
def _position_side(monkeypatch):
    """What is added to the atlas later changes nothing here."""
    monkeypatch.setattr(all_findings, "FINDINGS", POSITION_SIDE)


@pytest.fixture
def findings(monkeypatch):
    return lambda *replaced: monkeypatch.setattr(all_findings, "FINDINGS", replaced)


def run(folder, store) -> Outcome:
    return compute_model(model_in(folder), Places(), store)


def published(store):
    return judged_model(store, "tiny", all_findings.FINDINGS).published()


def record(store, finding) -> StoredFinding:
    return store.finding("tiny", finding)


def statuses(store):
    return {finding: record(store, finding).status for finding in store.finding_names("tiny")}


# The findings about positions


@pytest.mark.parametrize("family", FAMILIES)
def test_every_finding_is_computed_and_a_second_run_writes_nothing(tmp_path, store, monkeypatch, family):
    folder = write_checkpoint(tmp_path / "tiny", family)
    assert run(folder, store) == Outcome("tiny", NAMES, (), {})
    before = contents(store.root / "tiny")
    monkeypatch.setattr(Store, "locked", None)  # not needed
    assert run(folder, store) == Outcome("tiny", (), NAMES, {})
    assert contents(store.root / "tiny") == before
    (store.root / "tiny" / ".gains.json.123.tmp").write_text("half")
    with pytest.raises(TypeError):  # a lock was taken, to sweep
        run(folder, store)
    found = published(store)
    assert set(statuses(store).values()) == {"computed"}
    assert [claim.id for claim in found.claims] == [rule.id for f in POSITION_SIDE for rule in f.rules]
    assert found.model.family == family
    assert (found.model.causal, found.model.post_norm) == (family != "bert", family != "gpt2")
    assert all(record.key and record.computed_on and not record.older_code for record in found.findings.values())


def test_tensors_are_recorded_by_role(tmp_path, store):
    run(write_checkpoint(tmp_path / "tiny", "bert", prefix="bert."), store)
    tensors = published(store).tensors
    assert tensors["blocks.1.ln1.gain"].name == "bert.encoder.layer.0.output.LayerNorm.weight"
    assert tensors["position_embedding"].shape == (64, 24)
    assert tensors["position_embedding"].dtype == "F32"
    assert "blocks.0.mlp.out" not in tensors  # no finding reads it


def test_what_lacks_tensors_is_missing_by_their_names(tmp_path, store):
    outcome = run(write_checkpoint(tmp_path / "tiny", without=("wpe.weight",)), store)
    assert outcome == Outcome("tiny", ("gains", "attention"), (), {})
    found = published(store)
    for name in ("helix", "channels"):
        assert found.findings[name].status == "missing"
        assert found.findings[name].reason == "The checkpoint lacks wpe.weight (position_embedding)."
        assert found.findings[name].metrics is None
    untested = [claim for claim in found.claims if claim.finding == "helix"]
    assert len(untested) == 9
    assert {claim.verdict for claim in untested} == {"untested"}
    assert {claim.answer for claim in untested} == {"The checkpoint lacks wpe.weight (position_embedding)."}
    run(write_checkpoint(tmp_path / "tiny", without=("attn.c_proj.weight",)), store)
    assert "lacks h.0.attn.c_proj.weight (blocks.0.attn.o) and 1 more" in record(store, "attention").reason
    assert statuses(store) == dict.fromkeys(NAMES, "computed") | {"attention": "missing"}


def test_results_of_a_partial_checkpoint_stay_when_the_rest_arrives_and_go_when_it_is_taken_away(tmp_path, store):
    folder = write_checkpoint(tmp_path / "tiny", without=("wte.weight", "mlp.c_fc.weight"))
    assert run(folder, store).computed == NAMES
    before = published(store)
    write_checkpoint(folder, without=("wte.weight",))
    assert run(folder, store) == Outcome("tiny", ("attention",), ("helix", "channels", "gains"), {})
    write_checkpoint(folder)
    assert run(folder, store) == Outcome("tiny", NAMES, (), {})  # all four use tokens where there are any
    after = published(store)
    assert after.findings["gains"].metrics["correlation"] == before.findings["gains"].metrics["correlation"]
    assert set(after.tensors) - set(before.tensors) == {"token_embedding", "blocks.0.mlp.in", "blocks.1.mlp.in"}
    write_checkpoint(folder, without=("wpe.weight",))
    assert run(folder, store).computed == ("gains", "attention")  # they used positions too
    assert statuses(store)["helix"] == "missing"
    assert "position_embedding" not in published(store).tensors


# Toy findings


def test_only_findings_that_read_token_facts_depend_on_them(tmp_path, store, findings):
    reads_both = toy("both", uses=(TOKENS, FREQUENCIES))
    findings(toy("weights"), toy("vocabulary", uses=(TOKENS,)), reads_both)
    folder = write_checkpoint(tmp_path / "tiny", "bert")
    tokens = ["[UNK]", *(f"token{i}" for i in range(1, 50))]
    (folder / "vocab.txt").write_text("\n".join(tokens))
    run(folder, store)
    assert run(folder, store).computed == ()
    (folder / "vocab.txt").write_text("\n".join(reversed(tokens)))
    assert run(folder, store).computed == ("vocabulary", "both")
    # A vocabulary depends on files that only some readers look at: its content counts, not their list.
    (folder / "special_tokens_map.json").write_text('{"unk_token": "token7"}')
    assert run(folder, store).computed == ("vocabulary", "both")
    np.save(folder / "token_counts.npy", np.arange(50))
    assert run(folder, store).computed == ("both",)


@pytest.mark.parametrize(
    ("one", "status", "reason", "times"),
    [
        ({"measure": raising(ZeroDivisionError("a bug"))}, "failed", "ZeroDivisionError: a bug", 2),
        ({"measure": raising(PANIC("of Rust"))}, "failed", "PanicException: of Rust", 2),
        ({"measure": lambda _: OVERFLOWN}, "not_applicable", "What is measured of these weights is infinity", 1),
        ({"measure": raising(NotApplicableError("There is none."))}, "not_applicable", "There is none.", 1),
        ({"needs": ("final_norm.gain",)}, "not_applicable", "The bert architecture has no final", 0),
    ],
)
def test_why_nothing_was_measured_is_stored_and_costs_no_other(tmp_path, store, findings, one, status, reason, times):
    lines, runs, model = [], Counter(), model_in(write_checkpoint(tmp_path / "tiny", "bert"))
    findings(toy("one", **one, runs=runs), toy("two"))
    for computed, already in ((("two",), ()), ((), ("two",))):
        outcome = compute_model(model, Places(), store, Display(lines.append))
        assert outcome == Outcome("tiny", computed, already, {"one": reason} if status == "failed" else {})
        assert statuses(store) == {"one": status, "two": "computed"}
        assert record(store, "one").reason.startswith(reason)
    assert runs["one"] == times
    assert any("Traceback" in line for line in lines) == (status == "failed")


def test_claims_that_break_are_a_failed_finding_and_cost_no_other(tmp_path, store, findings):
    no_test = raising(KeyError("circle"))
    findings(toy("one", rules=(positive(test=no_test),)), replace(toy("two"), rules=(replace(positive(), id="two"),)))
    run(write_checkpoint(tmp_path / "tiny"), store)
    judged = judged_model(store, "tiny", all_findings.FINDINGS)
    one, two = judged.findings
    assert one.record.status == "failed"
    assert [(claim.verdict, claim.answer) for claim in one.claims] == [
        ("untested", "Its claims can't be judged: KeyError: 'circle'")
    ]
    assert len(judged.damaged) == 1
    assert two.record.status == "computed"
    assert {claim.verdict for claim in two.claims} <= {"holds", "fails"}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), AtlasError("The disk is full.")])
def test_while_new_results_come_in_the_others_stay_as_they_were(tmp_path, store, findings, error):
    folder = write_checkpoint(tmp_path / "tiny")
    findings(toy("one"), toy("two"))
    run(folder, store)
    old = {name: record(store, name) for name in ("one", "two")}
    write_checkpoint(folder, seed=1)
    findings(toy("one"), toy("two", measure=raising(error)))
    with pytest.raises((KeyboardInterrupt, AtlasError)):
        run(folder, store)
    assert record(store, "one").key != old["one"].key
    assert record(store, "two") == old["two"]
    for name in old:
        assert store.arrays("tiny", record(store, name))


@pytest.mark.parametrize("number", [np.inf, np.nan, 1e30, -1e19])
@pytest.mark.parametrize("role", ["token_embedding", "position_embedding"])
def test_a_bad_tensor_is_found_before_anything_is_computed(tmp_path, store, findings, role, number):
    runs = Counter()
    findings(toy("one", runs=runs), toy("two", needs=("token_embedding",), runs=runs))
    name = {"token_embedding": "wte.weight", "position_embedding": "wpe.weight"}[role]
    bad = tensors_of("gpt2")[name] * np.float32(1e15)  # large, and weights all the same
    bad[3, 5] = number
    folder = write_checkpoint(tmp_path / "tiny", changed={name: bad})
    with pytest.raises(InputError, match=rf"{name} in the checkpoint tiny holds .* at \[3, 5\]"):
        run(folder, store)
    assert runs == {}
    assert not (store.root / "tiny").exists()


# Keys say everything that a result depends on


def key_of(tmp_path, store, finding=None, model=None, **checkpoint) -> str:
    folder = write_checkpoint(tmp_path / f"checkpoint-{len(list(tmp_path.iterdir()))}", **checkpoint)
    compute_model(model_in(folder, **(model or {})), Places(), store, findings=[finding or READER])
    return record(store, "reader").key


READER = toy("reader", uses=("blocks.*.ln1.gain",), config=("n_layer", "norm_eps", "n_head"))
GAIN = tensors_of("gpt2")["h.1.ln_1.weight"]
ONE_BIT_MORE = np.concatenate([np.nextafter(GAIN[:1], 2), GAIN[1:]]).astype(np.float32)


@pytest.mark.parametrize(
    "change",
    [
        {"changed": {"h.1.ln_1.weight": ONE_BIT_MORE}},
        {"dtype": "float64"},
        {"without": ("h.1.ln_1.weight",)},
        {"config": {"layer_norm_epsilon": 1e-6}},
        {"finding": toy("reader", uses=("blocks.*.ln1.gain",), config=("n_layer",))},
        {"finding": toy("reader", uses=("blocks.*.ln1.bias",), config=READER.config)},
    ],
    ids=["bit", "dtype", "without", "config", "uses less", "uses another"],
)
def test_the_key_changes_with_what_a_finding_is_computed_from(tmp_path, store, change):
    assert key_of(tmp_path, store) != key_of(tmp_path, store, **change)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"prefix": "transformer."},
        {"shards": 3},
        {"without": ("wte.weight", "h.0.mlp.c_fc.weight")},
        {"changed": {"wte.weight": np.zeros((50, 24), np.float32)}},
        {"config": {"resid_pdrop": 0.1, "architectures": ["GPT2LMHeadModel"]}},
        {"config": {"vocab_size": 51}, "without": ("wte.weight",)},
        {"model": {"licence": "MIT", "notes": "Other words."}},
    ],
    ids=["nothing", "prefix", "shards", "absent", "unread", "config", "unread-size", "words"],
)
def test_the_key_stays_with_what_it_is_not_computed_from(tmp_path, store, change):
    assert key_of(tmp_path, store) == key_of(tmp_path, store, **change)


def test_the_key_changes_with_the_table_that_says_how_a_tensor_is_read(tmp_path, store, monkeypatch):
    before = key_of(tmp_path, store)
    layout = Checkpoint.layout
    monkeypatch.setattr(Checkpoint, "layout", lambda self, role: {**layout(self, role), "transposed": True})
    assert key_of(tmp_path, store) != before


def test_a_finding_gets_only_what_it_declares(tmp_path, store, findings):
    seen = {}

    def look(inputs):
        seen["roles"] = sorted(inputs.weights)
        seen["layers"] = inputs.architecture.n_layer
        seen["vocabulary"] = inputs.vocabulary
        with pytest.raises(KeyError):
            inputs.weights["token_embedding"]
        with pytest.raises(AttributeError, match="reads 'n_head' of the config without declaring it"):
            _ = inputs.architecture.n_head
        return Measurements({"sum": 0.0})

    findings(toy("one", config=("n_layer",), measure=look))
    assert run(write_checkpoint(tmp_path / "tiny"), store).failed == {}
    assert seen == {"roles": ["position_embedding"], "layers": 2, "vocabulary": None}


# Measurements are stored, verdicts are not


def test_a_changed_threshold_changes_the_verdict_of_stored_results(tmp_path, store, findings):
    findings(toy("one", rules=(positive(-1e9),)))
    run(write_checkpoint(tmp_path / "tiny"), store)
    before = contents(store.root / "tiny")
    assert [(c.verdict, c.threshold) for c in published(store).claims] == [("holds", -1e9)]
    findings(toy("one", rules=(positive(1e9),)))
    assert [(c.verdict, c.threshold) for c in published(store).claims] == [("fails", 1e9)]
    assert contents(store.root / "tiny") == before
    assert b"holds" not in before["one.json"]


def test_findings_that_are_new_are_not_computed_yet_and_those_that_are_no_more_go(tmp_path, store, findings):
    findings(toy("one"))
    run(write_checkpoint(tmp_path / "tiny"), store)
    findings(toy("one"), toy("two", rules=(positive(),)))
    found = published(store)
    assert found.findings["two"].reason == "It has not been computed for this model yet."
    assert [claim.verdict for claim in found.claims] == ["untested"]
    folder = write_checkpoint(tmp_path / "tiny")
    findings(toy("one"), toy("two"))
    run(folder, store)
    findings(toy("one"))
    assert run(folder, store) == Outcome("tiny", (), ("one",), {})
    arrays = f"one.{record(store, 'one').key[:16]}.npz"
    assert set(contents(store.root / "tiny")) == {"model.json", "one.json", arrays}
