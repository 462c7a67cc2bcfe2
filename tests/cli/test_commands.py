"""The `atlas` command: what it prints, how it exits, and which models it takes."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from generators import findings
from generators.base.errors import WeightsUnavailableError
from generators.base.verdicts import SYMBOLS
from tests.checkpoints import WEIGHTS, write_checkpoint
from tests.cli.conftest import ATLAS, BAD_INPUT, SOME_FAILED, is_a_sentence, published, results_of
from tests.conftest import ROOT

HEAVY = ("numpy", "pydantic", "matplotlib", "scipy", "safetensors", "huggingface_hub", "yaml", "jinja2")


# As a process


@pytest.mark.parametrize("arguments", [["--help"], ["compute", "--help"]], ids=" ".join)
def test_help_imports_nothing_heavy(arguments):
    code = (
        f"import atexit, sys; sys.argv = ['atlas', *{arguments}];"
        f"atexit.register(lambda: print([name for name in {HEAVY} if name in sys.modules]));"
        "from generators.cli import main; main()"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert "Usage" in run.stdout and "MODEL" in run.stdout
    imported = run.stdout.splitlines()[-1]
    assert imported == "[]" or (len(arguments) > 1 and imported == "['pydantic']")  # Typer reads options with it


def test_the_installed_command_exits_as_it_should(project):
    def run(*arguments):
        return subprocess.run([ATLAS, *arguments], check=False, capture_output=True, text=True)

    assert run("show", "good").returncode == 0
    wrong = run("compute", "<script>")
    assert wrong.returncode == BAD_INPUT
    assert is_a_sentence(wrong.stderr)
    assert wrong.stdout == ""


def test_a_closed_pipe_is_no_traceback(project):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([ATLAS, "show", "good", "--json"], **pipes) as process:
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()
        assert process.wait() == SOME_FAILED


# What it prints


@pytest.mark.parametrize("arguments", [["compute", "--colour"], ["fly"], ["show"], ["models", "--results", ""]])
def test_wrong_usage_is_exit_2(atlas, arguments):
    assert atlas(*arguments).code == BAD_INPUT


def test_models_lists_names_places_and_dates(atlas, project):
    run = atlas("models")
    assert run.code == 0
    good, away = [line.split("\t") for line in run.out.splitlines()]
    assert good[:2] == ["good", "Good model"]
    assert re.fullmatch(r"computed \d{4}-\d\d-\d\d", good[3])
    assert away == ["away", "Away", "package no-such-package-here", "not computed yet", "size: none"]


def test_compute_says_what_it_computed_and_then_that_it_knows(atlas, project):
    shutil.rmtree(project / "results")
    first = atlas("compute", "good")
    assert (first.code, first.out) == (0, "")
    assert re.search(r"^good: computed position_scheme, helix, channels, gains, attention", first.err, re.MULTILINE)
    second = atlas("compute", "good")
    assert second.code == 0
    assert re.search(r"^good: already stored: position_scheme, helix, channels", second.err, re.MULTILINE)


def test_one_finding_alone_is_computed_and_the_others_are_left_alone(atlas, project):
    whole = results_of(project)
    for name in ("gains", "helix"):
        (project / "results" / "good" / f"{name}.json").unlink()
    run = atlas("compute", "good", "--only", "gains")
    assert run.code == 0
    assert run.err.splitlines()[-1] == "good: computed gains"
    assert results_of(project) == {name: content for name, content in whole.items() if "helix.json" not in name}


def test_show_tells_every_claim(atlas, project):
    run = atlas("show", "good")
    assert run.code == 0
    assert run.out.startswith("Good model: gpt2, 2 layers, 2 heads, d_model 24, 64 positions, 50 tokens; from the")
    claims = published(project).claims
    assert len(claims) > 20
    for claim in claims:
        lines = f"\n{SYMBOLS[claim.verdict]} {claim.verdict:<8}  {claim.statement}\n            {claim.answer}\n"
        assert lines.replace("\N{NO-BREAK SPACE}", " ") in run.out


def test_show_tells_what_is_missing_and_as_json_the_published_document(atlas, project):
    write_checkpoint(project / "partial", without=("wpe.weight",))
    atlas("compute", "./partial")
    shown = atlas("show", "partial").out
    assert "helix: missing: The checkpoint lacks wpe.weight (position_embedding)." in shown
    assert "rotary_use: not_applicable: This model doesn't rotate queries and keys." in shown  # whatever its weights
    run = atlas("show", "good", "--json")
    assert run.code == 0
    assert json.loads(run.out) == published(project).model_dump(mode="json")
    assert atlas("show", "./good").out == atlas("show", "good").out


def test_options_can_come_from_the_environment(atlas, project, monkeypatch):
    monkeypatch.chdir("/")
    monkeypatch.setenv("ATLAS_REGISTRY", str(project / "models.yml"))
    monkeypatch.setenv("ATLAS_RESULTS", str(project / "results"))
    assert atlas("show", "good").code == 0


def test_models_dirs_are_searched_by_name(atlas, project, monkeypatch):
    (project / "empty").mkdir()
    write_checkpoint(project / "weights" / "away", "bert")
    monkeypatch.setenv("ATLAS_MODELS", os.pathsep.join(["empty", "weights"]))
    assert atlas("compute", "away").code == 0
    monkeypatch.setenv("ATLAS_MODELS", "nowhere")
    assert "nowhere isn't there" in atlas("compute", "away").err
    assert json.loads(atlas("show", "away", "--json").out)["model"]["family"] == "bert"


# What can't be downloaded, what fails


def test_a_model_that_cannot_be_had_is_exit_1_only_where_it_is_named(atlas, project):
    named, every = atlas("compute", "away"), atlas("compute", "--all")
    assert (named.code, named.err) == (SOME_FAILED, "away: The package no-such-package-here isn't installed.\n")
    assert every.code == 0
    assert named.err in every.err


REMOTE = "- name: remote\n  title: Remote\n  group: Far\n  sources: [{hub: owner/remote}]\n"


@pytest.fixture
def remote(project, monkeypatch) -> list[str]:
    """Have a model on the hub in the registry; note what the hub is asked for."""
    asked = []

    def files(hub, source, older=False):
        asked.append(source.hub)
        raise WeightsUnavailableError("The hub is far away.")

    with (project / "models.yml").open("a") as file:
        file.write(REMOTE)
    monkeypatch.setattr("generators.checkpoint.sources.hub.Hub.files", files)
    return asked


@pytest.mark.parametrize(
    ("arguments", "is_asked"),
    [([], False), (["--all"], True), (["remote"], True), (["--group", "Far"], True), (["good"], False)],
)
def test_the_hub_is_asked_for_no_model_that_was_not_named(atlas, remote, arguments, is_asked):
    run = atlas("compute", *arguments)
    assert (remote == ["owner/remote"]) == is_asked
    assert ("remote: The hub is far away." in run.err) == is_asked
    assert run.code == (SOME_FAILED if "remote" in arguments else 0)


def test_the_site_comes_first_and_again_only_if_anything_was_computed(atlas, remote, monkeypatch):
    steps = []
    monkeypatch.setattr("generators.cli._make_site", lambda *_: steps.append("site") or [])
    run = atlas("build")
    assert (run.code, steps) == (0, ["site"])
    assert "2 models are not computed; `atlas plan` says what each takes" in run.out
    Path("results/good/gains.json").unlink()
    atlas("build")
    assert steps == ["site", "site", "site"]


def test_results_of_an_older_version_are_shown_and_named_until_they_are_computed_anew(atlas, remote, monkeypatch):
    raised = tuple(replace(one, version=one.version + (one.name == "gains")) for one in findings.FINDINGS)
    monkeypatch.setattr("generators.cli._make_site", lambda *_: [])
    before = Path("results/good/gains.json").read_bytes()
    version = json.loads(before)["version"]
    monkeypatch.setattr(findings, "FINDINGS", raised)
    for _ in range(2):
        run = atlas("build")
        assert (run.code, Path("results/good/gains.json").read_bytes()) == (0, before)
        assert "Results of 1 model are of an older version of gains" in run.out
    assert atlas("compute", "good").code == 0
    assert json.loads(Path("results/good/gains.json").read_text())["version"] == version + 1
    assert "older version" not in atlas("build").out


def test_a_plan_says_what_models_take(atlas, remote):
    run = atlas("plan")
    good, away, far, together = (line.split("\t") for line in run.out.splitlines())
    assert good[:2] == ["good", "0 bytes"]
    assert away[1:5] == ["?", "?", "?", "The package no-such-package-here isn't installed."]
    assert far[1:6] == ["?", "?", "?", "The hub is far away.", "not computed yet"]
    assert together[0].endswith("not counting 2 that can't be downloaded.")


def test_results_of_ones_own_lie_over_the_tracked_ones_until_they_are_adopted(atlas, project, monkeypatch):
    def stored():
        return {name: data for name, data in results_of(project).items() if "/." not in name}

    whole = stored()
    (project / "results" / "good" / "gains.json").unlink()
    monkeypatch.delenv("ATLAS_RESULTS")
    tracked = stored()
    assert "good: computed gains" in atlas("compute", "good").err
    assert {name: data for name, data in stored().items() if "local" not in name} == tracked
    assert (project / "results" / "local" / "good" / "gains.json").is_file()
    assert atlas("verify").code == 0
    assert "gains: missing" not in atlas("show", "good").out
    assert atlas("adopt").out == "Moved from results/local/ to results/: good/gains\n"
    assert stored() == whole


def test_stored_results_stand_in_for_weights_that_cannot_be_had(atlas, unharmed):
    registry = unharmed / "models.yml"
    registry.write_text(registry.read_text().replace("folder: good", "package: gone"))
    run = atlas("compute", "good")
    assert (run.code, run.err) == (0, "good: The package gone isn't installed. Its stored results stay.\n")


def test_a_bad_model_that_was_not_named_is_exit_1(atlas, project):
    (project / "good" / WEIGHTS).write_bytes(b"")
    run = atlas("compute")
    assert run.code == SOME_FAILED
    assert run.err.splitlines()[-1].startswith("atlas: good: ")


# A family that is named, and a hub that may not be asked


def test_a_type_without_a_table_is_read_by_the_one_that_is_named(atlas, project):
    write_checkpoint(project / "strange", config={"model_type": "gpt2_of_mine"})
    assert atlas("compute", "./strange", "--family", "gpt2", "--skip-runs").code == 0
    named = published(project, "strange")
    assert named.model.family == "gpt2"
    assert named.findings["gains"].metrics == published(project).findings["gains"].metrics


@pytest.mark.parametrize("command", ["compute", "build", "report", "count-tokens"])
def test_offline_the_hub_is_not_asked(atlas, project, monkeypatch, command):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *_, **__: pytest.fail("the hub was asked"))
    monkeypatch.setattr("generators.cli._make_site", lambda *_: [])
    (project / "text.txt").write_text("a text")
    texts = ["text.txt"] if command == "count-tokens" else []
    run = atlas(command, "owner/never-read", *texts, "--offline")
    assert run.code == SOME_FAILED
    assert "The model hub can't be reached and owner/never-read isn't in its local cache." in run.err
    assert "Traceback" not in run.err
