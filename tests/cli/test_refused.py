"""Settings, names and folders that can't be used are refused in a sentence, before anything is touched."""

import shlex

import pytest

from generators.compute.results import LOCK
from tests.checkpoints import write_checkpoint
from tests.cli.conftest import BAD_INPUT, SOME_FAILED, refused
from tests.torture.processes import files_in


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HF_ENDPOINT", "http://127.0.0.1:99999"),
        ("HF_ENDPOINT", "http://[::1"),
        ("HF_ENDPOINT", "huggingface"),
        ("HF_HUB_ETAG_TIMEOUT", ""),
        ("HF_HUB_DOWNLOAD_TIMEOUT", "-1"),
        ("ATLAS_CACHE_GB", "nan"),
        ("ATLAS_CACHE_GB", "-1"),
        ("ATLAS_CACHE_GB", "much"),
        ("ATLAS_REGISTRY", "[" * 100_000),
    ],
)
def test_a_setting_that_can_be_none_is_named(atlas, monkeypatch, tmp_path, variable, value):
    monkeypatch.setenv("ATLAS_CACHE", str(tmp_path))
    monkeypatch.setenv(variable, value)
    said = refused(atlas("cache"))
    assert variable in said
    assert len(said) < 500


def test_infinitely_many_gigabytes_are_no_limit(atlas, monkeypatch, tmp_path):
    monkeypatch.setenv("ATLAS_CACHE", str(tmp_path))
    monkeypatch.setenv("ATLAS_CACHE_GB", "inf")
    assert atlas("cache").code == 0


# To a terminal, a page, or a path, and those that are too long or no text.
HOSTILE_NAMES = [
    *("../nowhere", "../../etc/passwd", "/etc/passwd", "<script>alert(1)</script>", "a\x1b[31mb", "a\nb\r\x07"),
    *("a\x00b", "", " ", "x" * 5000, "own--er/model", "\udcff"),
]
REFUSED = {
    f"show {'[' * 100_000}": "An argument has 100,000 characters",
    f"cache --prune {'9' * 400}": "is no size",
    "models --registry .": "it is a folder",
    "report good -o loop": "can't be written",
    "report good -o good": "is no report; name another",
    "report good -o models.yml": "is no report",
    "report nonsense": "'nonsense' is no model",
    "report ./nowhere": "no folder",
    "cache": "is no folder; set HF_HUB_CACHE",
    "adopt nowhere": "no folder of results",
    "verify --results models.yml": "no folder of results",
    "adopt --results results/local": "can't be moved into itself",
    "show away": "compute them with: atlas compute away",
    "compute ./new nonsense": "'nonsense' is no model",
    "compute goood": "'goood' is no model in models.yml (nearest: good)",
    "compute good --results .": "which is no result",
    "compute good --only horoscope": "no finding 'horoscope'; there are position_scheme, helix",
    "compute good --only gain": "no finding 'gain' (nearest: gains",
    "compute good --summary nowhere/s.json": "there is no such folder",
    "compute good --own-samples --only gains": "--only names none",
    "compute good --all": "Name models, or a --group, or --all",
    "compute good --group Far": "Name models, or a --group, or --all",
    "compute --group Near": "There is no group 'Near'",
    "compute ./good --family bert": "None as num_hidden_layers",
    "compute ./good --family gpt": "no family 'gpt' (nearest: gpt2, ",
    "compute --family gpt2": "exactly one MODEL",
    "compute ./good away --family gpt2": "exactly one MODEL",
    **{f"{command} good --budget -3": "--budget" for command in ("compute", "build", "report")},
    **{f"{command} good --device abacus": "abacus" for command in ("compute", "build", "report")},
    **{shlex.join([command, name]): "" for command in ("compute", "show") for name in HOSTILE_NAMES},
}
ALIASES = ["a0: &a0 [x,x,x,x,x,x,x,x,x]", *(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10))]
NO_VALUES = ('!!int ""', '!!timestamp "x"', "!!bool maybe", ":".join(["59"] * 3000))
REGISTRIES = (
    *(b"- [", b"\xff", b"- name: ../x\n  title: x", b"- " * 300_000, b"- [" + b"1," * 2**19 + b"]"),
    *(b"a: &a {x: 1}\nb: &b {<<: *a}", b"a: &a {x: 1}\nb: [" + b"*a, " * 201 + b"1]", "\n".join(ALIASES).encode()),
    *(f"- {{name: {value}, title: A, sources: [{{folder: a}}]}}".encode() for value in NO_VALUES),
)
OF_FILES = [  # a file that is there, its content, a command, what it says
    *(("models.yml", content, "models", "The registry models.yml ") for content in REGISTRIES),
    *(("models.yml", b"- [", command, "The registry models.yml ") for command in ("compute", "render", "show away")),
    ("models.yml", b"- {name: a, title: A, sources: [{folder: %s}]}" % (b"a" * 5000), "compute a", ""),
    ("good/config.json", b'{"model_type": "%s"}' % (b"x" * 10**6), "compute good", ""),
    *(
        (f"there/good/{name}", b"", "compute good --results there", "which is no result")
        for name in ("notes.txt", "a/1.jpg")
    ),
    *((f"{folder}/a", b"", "report good -o web", "no report") for folder in ("web", ".web.old", ".web.new")),
    ("site/photos/1.jpg", b"", "render", "site/ holds something that is no site of MkDocs"),
]


ROWS = [*((".cache", b"", command, said) for command, said in REFUSED.items()), *OF_FILES]


@pytest.mark.parametrize(("name", "content", "command", "said"), ROWS, ids=range(len(ROWS)))
def test_what_cannot_be_meant_is_a_sentence_and_every_file_stays(
    atlas, monkeypatch, unharmed, name, content, command, said
):
    (unharmed / "loop").symlink_to("loop")
    write_checkpoint(unharmed / "new")
    (unharmed / name).parent.mkdir(parents=True, exist_ok=True)
    (unharmed / name).write_bytes(content)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(unharmed / "models.yml"))
    before = files_in(unharmed, LOCK)
    run = atlas(*shlex.split(command))
    assert said in refused(run, SOME_FAILED if run.code == SOME_FAILED and content else BAD_INPUT)
    assert (run.out, len(run.err) < 10_000) == ("", True)
    assert files_in(unharmed, LOCK) == before


def test_pruning_removes_no_file_that_the_cache_did_not_name(atlas, monkeypatch, tmp_path):
    monkeypatch.setenv("ATLAS_CACHE", str(tmp_path))
    names = ("notes/2024/diary.json", "notes/todo.txt", "tensors/thesis.tex", f"tensors/a/{'b' * 32}/c")
    ours = (f"tensors/a/{'b' * 32}/{'c' * 64}", "notes/headers/owner/x.json")
    for name in (*names, *ours):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("precious")
    assert atlas("cache", "--prune", "0").code == 0
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == sorted(names)


@pytest.mark.parametrize(("one", "other"), [("a/same", "b/same"), ("x y", "x-y")])
def test_two_models_of_one_name_are_never_one_folder(atlas, tmp_path, one, other):
    folders = [write_checkpoint(tmp_path / name) for name in (one, other)]
    run = atlas("compute", *folders, "--results", tmp_path / "results", "--skip-runs", "--only", "gains")
    assert (run.code, "rename one of them" in run.err) == (BAD_INPUT, True)
    assert not (tmp_path / "results").exists()
    assert atlas("compute", folders[0], folders[0], "--results", tmp_path / "results", "--only", "gains").code == 0


def test_results_of_other_weights_of_one_name_are_said(atlas, tmp_path):
    results, only = ("--results", tmp_path / "results"), ("--only", "gains")
    one, other = (write_checkpoint(tmp_path / str(seed) / "same", seed=seed) for seed in (1, 2))
    twice = atlas("compute", one, one, *results, *only, "--only", "channels")
    assert (twice.code, "2 models" in twice.err, atlas("verify", *results).code) == (0, False, 0)
    assert "gains, channels was measured from other weights" in atlas("compute", other, *results, *only).err
    for command in (("verify",), ("show", "same")):
        run = atlas(*command, *results)
        assert (run.code, "of different weights: channels and gains" in run.err) == (1, True)


def test_a_width_that_no_terminal_has_is_no_width(atlas, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1" + "0" * 18)  # characters of every line, it was
    assert atlas("show", "one", "two").code == BAD_INPUT
