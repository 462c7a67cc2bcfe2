"""Settings, names and folders that can't be used are refused in a sentence, before anything is touched."""

import pytest

from tests.checkpoints import write_checkpoint
from tests.cli.conftest import BAD_INPUT, refused


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
    "compute goood": "'goood' is no model in models.yml (nearest: good)",
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
    "compute good --scheduler tcp://127.0.0.1:1 --jobs 2": "--scheduler goes without --jobs",
    **{f"{command} good --budget -3": "--budget" for command in ("compute", "build", "report")},
    **{f"{command} good --device abacus": "abacus" for command in ("compute", "build", "report")},
}


@pytest.mark.parametrize("command", REFUSED)
def test_what_cannot_be_meant_is_a_sentence(atlas, monkeypatch, unharmed, command):
    (unharmed / "loop").symlink_to("loop")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(unharmed / "models.yml"))
    assert REFUSED[command] in refused(atlas(*command.split()))


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


def test_aliases_of_aliases_cost_render_nothing(atlas, tmp_path):
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]", *(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10))]
    (tmp_path / "models.yml").write_text("\n".join(lines))
    assert atlas("render", "--registry", tmp_path / "models.yml", "--results", tmp_path / "none").code == BAD_INPUT


def test_a_width_that_no_terminal_has_is_no_width(atlas, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1" + "0" * 18)  # characters of every line, it was
    assert atlas("show", "one", "two").code == BAD_INPUT
