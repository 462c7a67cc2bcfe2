"""models.yml is what it should be, wrong entries are refused with a sentence, and names become safe paths."""

import random
from pathlib import Path
from typing import get_args

import pytest
import yaml

from generators.base.errors import InputError
from generators.checkpoint.registry import (
    LONGEST_NAME,
    SLUG,
    FolderSource,
    HubSource,
    Model,
    Registry,
    Stack,
    load_registry,
    slug,
)
from generators.checkpoint.typed import find_model, find_models
from tests.conftest import ROOT

HOSTILE_NAMES = (
    *("../gpt2", "gpt2/../../etc", "..", "/etc/passwd", "a/b", "a\\b", "-rf", ".hidden", "gpt2.", "gpt²", ""),
    *(
        "<script>alert(1)</script>",
        'a"onload="x',
        "GPT2",
        "gpt 2",
        "gpt2\n",
        "gpt2\x00",
        "\x1b[31mred",
        "a" * (LONGEST_NAME + 1),
    ),
)
OURS = load_registry(ROOT / "models.yml")
ENTRY = {"name": "tiny", "title": "Tiny", "sources": [{"hub": "owner/tiny"}]}


def written(folder: Path, content: object) -> Path:
    path = folder / "models.yml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), "utf-8")
    return path


# models.yml of this repository


def test_entries_of_the_repository_are_grouped_named_and_described():
    groups = [model.group for model in OURS.models]
    starts = [group for before, group in zip([None, *groups], groups, strict=False) if group != before]
    assert None not in groups
    assert len(starts) == len(set(starts))
    models = OURS.models
    assert all(model.name.endswith(f"--{model.stack}") for model in models if model.stack)
    assert all(model.stack for model in models if "--" in model.name)
    halves = [(source, model.stack) for model in models for source in model.sources]
    assert len(set(halves)) == len(halves)
    assert [model.name for model in models if not model.adds or not model.recipe] == []
    assert len({model.adds for model in models}) == len(models)
    assert all(len(source.revision) == 40 for source in OURS.find("gpt2").sources)


# Entries


def test_an_entry_is_read_with_its_defaults_and_its_folder_relative_to_the_registry(tmp_path, monkeypatch):
    (model,) = load_registry(written(tmp_path, [ENTRY])).models
    assert model == Model(name="tiny", title="Tiny", sources=(HubSource(hub="owner/tiny", revision="main"),))
    assert model.frequency == "index"
    assert model.family is model.licence is model.notes is None
    path = written(tmp_path, [{**ENTRY, "sources": [{"folder": "weights/tiny"}]}])
    monkeypatch.chdir("/")
    (model,) = load_registry(path).models
    assert model.sources == (FolderSource(folder=tmp_path / "weights" / "tiny"),)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"name": 2}, r"models\.0\.name .*string"),
        ({"name": "index"}, "can't be the address of a page"),
        ({"title": " "}, r"models\.0\.title \('tiny'\): .*at least 1"),
        ({"title": "x" * 2001}, r"models\.0\.title \('tiny'\): .*at most 200"),
        ({"sources": []}, r"models\.0\.sources \('tiny'\): .*at least 1"),
        ({"sources": [{"hub": "owner"}]}, r"models\.0\.sources\.0\.HubSource\.hub"),
        ({"sources": [{"hub": "../../etc"}]}, r"models\.0\.sources\.0\.HubSource\.hub"),
        ({"sources": [{"hub": "o/m", "revision": "-x"}]}, "revision"),
        ({"sources": [{"hub": "o/m", "revision": "a/../../b"}]}, "revision"),
        ({"sources": [{"package": "../x"}]}, r"models\.0\.sources\.0"),
        ({"sources": [{"url": "https://example.org/x.bin"}]}, r"models\.0\.sources\.0"),
        ({"frequency": "guess"}, r"models\.0\.frequency .*'counts', 'wordfreq' or 'index'"),
        ({"colour": "red"}, r"models\.0\.colour \('tiny'\): Extra"),
        *(({"name": name}, r"models\.0\.name") for name in HOSTILE_NAMES),
        *(({"notes": f"a{mark}b"}, "characters that can't be seen") for mark in ("\u202e", "\x1b[31m", "\u2066")),
        ({"licence": "a\x07b"}, "characters that can't be seen"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_place_and_reason(tmp_path, changed, said):
    with pytest.raises(InputError, match=said):
        load_registry(written(tmp_path, [{**ENTRY, **changed}]))


TWICE = "- name: a\n  title: A\n  sources: [{folder: a}]\n  name: b\n"  # YAML would take the last: another's results


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "models"),
        ("- tiny", r"models\.0"),
        ("- name: !!python/object/apply:os.system ['true']", "isn't valid YAML"),
        ("- name: 2024-13-45", "isn't valid YAML"),
        ("- &a [*a]", r"\*a is part of what has a name"),
        (TWICE, "'name' is there twice"),
        ([ENTRY, ENTRY], "names 'tiny' twice"),
        ([ENTRY, {**ENTRY, "name": "other", "frequency": "guess"}], r"models\.1\.frequency \('other'\)"),
    ],
)
def test_a_broken_registry_is_a_sentence(tmp_path, content, said):
    with pytest.raises(InputError, match=said):
        load_registry(written(tmp_path, content))


# What the user types


@pytest.fixture
def registry() -> Registry:
    return Registry(models=(Model.model_validate(ENTRY),))


def test_what_is_typed_is_a_name_in_the_registry_or_a_folder_or_a_hub_id(registry, tmp_path, monkeypatch):
    (tmp_path / "tiny").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_model("tiny", registry) is registry.models[0]
    folder = tmp_path / "My Model (v2)"
    folder.mkdir()
    model = find_model(str(folder), registry)
    assert model.name == "my-model-v2"
    assert model.sources == (FolderSource(folder=folder),)
    (tmp_path / "weights" / "inside").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "weights" / "inside")
    assert find_model("..", registry).name == "weights"
    (tmp_path / "日本").mkdir()
    with pytest.raises(InputError, match="has no name that can name a page"):
        find_model(str(tmp_path / "日本"), registry)
    (tmp_path / "index").mkdir()
    with pytest.raises(InputError, match="rename it"):
        find_model(str(tmp_path / "index"), registry)
    model = find_model("EleutherAI/gpt-neo-125m", registry)
    assert model.name == "eleutherai--gpt-neo-125m"
    assert model.sources == (HubSource(hub="EleutherAI/gpt-neo-125m"),)


def test_a_folder_is_only_ever_itself_whatever_the_registry_says_of_its_name(tmp_path):
    known = {**ENTRY, "family": "bert", "frequency": "counts", "licence": "MIT", "notes": "Of another model."}
    (tmp_path / "tiny").mkdir()
    model = find_model(f"{tmp_path}/tiny/", Registry(models=(Model.model_validate(known),)))
    assert model == Model(name="tiny", title="tiny", sources=(FolderSource(folder=tmp_path / "tiny"),))


@pytest.mark.parametrize("stack", get_args(Stack))
def test_half_of_a_pair_is_a_model_of_its_own(registry, tmp_path, stack):
    of_hub = find_model(f"owner/pair--{stack}", registry)
    assert (of_hub.name, of_hub.stack) == (f"owner--pair--{stack}", stack)
    assert of_hub.sources == (HubSource(hub="owner/pair"),)
    of_registry = find_model(f"tiny--{stack}", registry)
    assert (of_registry.name, of_registry.title, of_registry.whole) == (f"tiny--{stack}", f"Tiny, {stack}", "tiny")
    (tmp_path / "pair").mkdir()
    of_folder = find_model(f"{tmp_path}/pair--{stack}", registry)
    assert of_folder.sources == (FolderSource(folder=tmp_path / "pair"),)


@pytest.fixture
def mine(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    return tmp_path / "mine"


NONSENSE = (
    *("", "nonsense", "../nowhere/at/all", "/nowhere/at/all", "owner/", "/model", "owner/model/extra", "owner/.."),
    *("<script>/alert", "owner/model\n", "owner/\x1b[31m", "o" * 60 + "/" + "m" * 60, "a\x00b", "~nobody-there/x"),
)


@pytest.mark.parametrize("typed", NONSENSE)
def test_nonsense_is_refused_with_what_would_do(registry, typed):
    with pytest.raises(InputError, match=r"is no model in models\.yml, no folder, and no hub id"):
        find_model(typed, registry)


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("GPT2", "gpt2, gpt2-xl, gpt2-large"),
        ("bert-base", "bert-base-uncased, roberta-base, camembert-base"),
        ("stdlib-seed", "stdlib-seeds, stdlib-learned, stdlib-none"),
    ],
)
def test_a_name_that_was_mistyped_gets_the_three_nearest(typed, near):
    with pytest.raises(InputError) as refusal:
        find_models(typed, OURS)
    assert f"{typed!r} is no model in models.yml (nearest: {near}), no folder" in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("model.bin", b"", "a file of a format that the atlas doesn't know"),
        ("weights.h5", b"\x89HDF\r\n", "weights of Keras or TensorFlow (HDF5)"),
        ("words.zip", b"PK\x03\x04", "a file of a format that the atlas doesn't know"),
        ("model.bin", random.Random(0).randbytes(64), "a file of a format that the atlas doesn't know"),
    ],
)
def test_a_file_that_is_not_read_is_recognised(registry, mine, name, content, kind):
    (mine / name).write_bytes(content)
    with pytest.raises(InputError) as refusal:
        find_model(f"mine/{name}", registry)  # it looks like a hub id
    assert f"'mine/{name}' is {kind}. " in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "content", "called"),
    [
        ("TinyLlama.Q8_0.gguf", b"GGUF\x03", "tinyllama.q8_0"),
        ("model.bin", b"GGUF\x03", "mine"),
        ("ckpt.pt", b"PK\x03\x04", "mine"),
        ("old.ckpt", b"\x80\x02", "old"),
    ],
)
def test_a_file_of_weights_is_a_model(registry, mine, name, content, called):
    (mine / name).write_bytes(content)
    model = find_model(f"mine/{name}", registry)
    assert (model.name, model.sources) == (called, (FolderSource(folder=mine / name),))


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "pytorch_model.bin", "tokenizer.json"])
def test_of_a_file_in_a_folder_that_can_be_read_the_folder_is_named(registry, mine, monkeypatch, name):
    for file in ("config.json", name):
        (mine / file).write_text("{}")
    for place, typed, told in (
        (mine.parent, f"mine/{name}", "./mine"),
        (mine, name, "."),
        (mine.parent, str(mine / name), str(mine)),
    ):
        monkeypatch.chdir(place)
        with pytest.raises(InputError) as refusal:
            find_model(typed, registry)
        assert str(refusal.value) == f"{typed!r} is a file: name its folder, {told!r}."
        find_model(told, registry)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt2", "gpt2"),
        ("GPT-2 Small", "gpt-2-small"),
        ("<script>alert(1)</script>", "script-alert-1-script"),
        *((nothing, "") for nothing in ("..", "---", "", "É")),
        ("x" * 500, "x" * LONGEST_NAME),
        ("x" * (LONGEST_NAME - 1) + "- y", "x" * (LONGEST_NAME - 1)),
    ],
)
def test_slug(name, expected):
    assert slug(name) == expected


def test_a_slug_can_always_name_a_folder():
    assert all(
        made == "" or (SLUG.fullmatch(made) and len(made) <= LONGEST_NAME) for made in map(slug, HOSTILE_NAMES)
    )
