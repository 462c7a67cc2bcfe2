"""A key hashes what files hold and a finding's version: other processors and other words change none of them."""

import json
import shutil
from collections.abc import Callable
from dataclasses import field, make_dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from generators.base.architecture import Architecture
from generators.checkpoint.registry import FolderSource, Model, load_registry
from generators.checkpoint.sources import Places
from generators.compute.plan import open_model, prepare
from generators.compute.reconcile import reconcile
from generators.compute.results import Store
from generators.compute.running import AS_USUAL, RunSettings
from generators.findings import FINDINGS
from generators.findings.inputs import FREQUENCIES, RUN, TOKENS
from tests.conftest import MODELS_DIRS, ROOT

STORED = Store(ROOT / "results")
SHIPPED = ("stdlib-gpt2", "stdlib-rotary", "stdlib-sinusoidal", "stdlib-alibi", "stories260k", "all-minilm-l6-v2")


def left_of(name: str) -> list[str]:
    model = load_registry(ROOT / "models.yml").find(name)
    assert model is not None
    prepared = prepare(open_model(model, Places(MODELS_DIRS)), FINDINGS)
    return [plan.finding.name for plan in reconcile(prepared, AS_USUAL, STORED).left]


@pytest.fixture(params=SHIPPED)
def shipped(request) -> str:
    if request.param == "all-minilm-l6-v2":
        request.getfixturevalue("minilm")
    return request.param


def one_bit_more(function: Callable) -> Callable:
    def other(*args, **kwargs):
        values = function(*args, **kwargs)
        return np.nextafter(values, values.dtype.type(np.inf)) if np.issubdtype(values.dtype, np.floating) else values

    return other


def test_the_last_bits_of_functions_are_in_no_key(shipped, monkeypatch):
    for name in ("log1p", "log", "exp", "sqrt", "sin", "cos", "power"):
        monkeypatch.setattr(np, name, one_bit_more(getattr(np, name)))
    assert left_of(shipped) == []


def test_words_and_fields_that_are_added_are_in_no_key(shipped, monkeypatch):
    from generators.checkpoint import reading
    from generators.tokens import frequency, vocabulary

    wider = make_dataclass(
        "Architecture", [("added", int, field(default=3))], bases=(Architecture,), frozen=True, namespace={}
    )
    monkeypatch.setattr(reading, "Architecture", wider)
    counted = frequency.TokenFrequency
    monkeypatch.setattr(
        frequency, "TokenFrequency", lambda source, label, *rest: counted(source, f"other {label}", *rest)
    )
    group = vocabulary._group
    monkeypatch.setattr(vocabulary, "_group", lambda token: {"letters": "Latin"}.get(group(token), group(token)))
    renamed = tuple(replace(f, words=replace(f.words, title=f"The {f.title}", search=())) for f in FINDINGS)
    monkeypatch.setattr("tests.test_keys.FINDINGS", renamed)
    assert left_of(shipped) == []


# What changes which keys

Change = Callable[[Path], None]


def a_bit(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors["transformer.ln_f.bias"].view(np.uint16)[60] ^= 1
    save_file(tensors, folder / "model.safetensors")


def a_setting(folder: Path) -> None:
    said = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**said, "resid_pdrop": 0.3}))


def a_count(folder: Path) -> None:
    counts = np.load(folder / "token_counts.npy")
    counts[500] += 1
    np.save(folder / "token_counts.npy", counts)


def an_entry(folder: Path) -> None:
    said = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    vocabulary = said["model"]["vocab"]
    one, other = "dict", "list"
    vocabulary[one], vocabulary[other] = vocabulary[other], vocabulary[one]
    (folder / "tokenizer.json").write_text(json.dumps(said), "utf-8")


def a_held_out_token(folder: Path) -> None:
    ids = np.load(folder / "held_out_tokens.npy")
    ids[3] = ids[4]
    np.save(folder / "held_out_tokens.npy", ids)


def a_note(folder: Path) -> None:
    (folder / "README.md").write_text("Other words.")


RUNNING = {finding.name for finding in FINDINGS if RUN in finding.needs and finding.unless is None}
OF_TOKENS = {finding.name for finding in FINDINGS if finding.can_use(TOKENS)}
OF_FREQUENCIES = {finding.name for finding in FINDINGS if finding.can_use(FREQUENCIES)}
CHANGES = [
    pytest.param(a_bit, RUNNING | {"zero_layer"}, id="a bit of the last norm"),
    pytest.param(a_count, OF_FREQUENCIES, id="a token count"),
    pytest.param(an_entry, OF_TOKENS | RUNNING, id="an entry of the tokenizer"),
    pytest.param(a_setting, RUNNING, id="a setting that no finding reads"),
    pytest.param(a_held_out_token, RUNNING, id="a token of the text"),
    pytest.param(a_note, set(), id="a note"),
]


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Callable[..., dict[str, str | None]]:
    def of(change: Change = a_note, findings=FINDINGS) -> dict[str, str | None]:
        folder = tmp_path_factory.mktemp("changed") / "stdlib-gpt2"
        shutil.copytree(ROOT / "models" / "stdlib-gpt2", folder)
        change(folder)
        model = Model(name="changed", title="Changed", sources=(FolderSource(folder=folder),))
        prepared = prepare(open_model(model, Places(), RunSettings()), findings)
        return {plan.finding.name: plan.key for plan in prepared.plans}

    return of


@pytest.mark.parametrize(("change", "computed_again"), CHANGES)
def test_exactly_what_depends_on_a_change_is_computed_again(keys, change, computed_again):
    before, after = keys(), keys(change)
    assert {name for name in before if before[name] != after[name]} == computed_again


@pytest.mark.parametrize("name", ["gains", "anchor"])
def test_a_version_changes_the_key_of_its_finding_alone(keys, name):
    raised = tuple(replace(f, version=f.version + (f.name == name)) for f in FINDINGS)
    before, after = keys(), keys(findings=raised)
    assert {each for each in before if before[each] != after[each]} == {name}
