"""The scripts that workflows call, run as workflows run them."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from generators.base.errors import InputError
from generators.checkpoint.registry import load_registry
from tests.checkpoints import write_checkpoint

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / ".github" / "scripts"
REGISTRY = load_registry(ROOT / "models.yml")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def _beside_each_other(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)


def script(name):
    spec = importlib.util.spec_from_file_location(f"script_{name}", SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name, *arguments, cwd=ROOT, **environment):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, SCRIPTS / f"{name}.py", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True, env=environment)


# matrix.py


def test_every_model_is_in_one_job_with_all_of_its_checkpoint_and_too_many_jobs_are_refused(monkeypatch):
    matrix = script("matrix")
    found = json.loads(run("matrix").stdout.removeprefix("matrix="))["include"]
    jobs = [[REGISTRY.find(name) for name in job["models"].split()] for job in found]
    assert sorted(model.name for job in jobs for model in job) == sorted(model.name for model in REGISTRY.models)
    assert len({job["name"] for job in found if re.fullmatch(r"[a-z0-9._-]+", job["name"])}) == len(found)
    for job in jobs:
        sources = {model.sources for model in job}
        assert len(sources) <= matrix.CHECKPOINTS
        assert len({model.group for model in job}) == 1
        assert not [model for model in REGISTRY.models if model.sources in sources and model not in job]
    longest = max(map(len, jobs)) * 20 / 60  # hours: ten minutes to run a model, as long to read it
    assert longest < 6, "what one job may take"
    assert -(-len(jobs) // 20) * longest < 24, "of a free account, 20 jobs run at a time"
    monkeypatch.setattr(matrix, "MOST_JOBS", 3)
    with pytest.raises(ValueError, match="more than the 3"):
        matrix.jobs(REGISTRY)


# compute.py


def entry(name, **source):
    return {"name": name, "title": name.title(), "sources": [source]}


def write_registry(path, *entries):
    path.write_text(yaml.safe_dump(list(entries)))


ONE, TWO, AWAY = entry("one", folder="one"), entry("two", folder="two"), entry("away", hub="owner/away")


@pytest.fixture
def project(tmp_path):
    for seed, name in enumerate(("one", "two")):
        write_checkpoint(tmp_path / name, seed=seed)
    write_registry(tmp_path / "models.yml", ONE, TWO)
    return tmp_path


def test_results_are_laid_apart_and_a_failure_costs_no_other(project):
    (project / "one" / "config.json").write_text("{")
    done = run("compute", "one two", "--apart", "apart", "--skip-runs", cwd=project)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "Something failed in: one")
    assert [path.name for path in (project / "apart").iterdir()] == ["two"]
    files = {path.name for path in (project / "apart" / "two").iterdir()}
    assert {"model.json", "gains.json"} <= files
    assert {name for name in files if name.startswith(".")} == {".settled"}  # what is remembered, and no lock


def test_a_model_that_cannot_be_had_is_skipped_and_said(project):
    write_registry(project / "models.yml", ONE, AWAY)
    given = ("away one", "--apart", "apart", "--only", "gains")
    done = run("compute", *given, cwd=project, GITHUB_STEP_SUMMARY=str(project / "summary.md"))
    assert done.returncode == 0, done.stderr
    why = "The model hub can't be reached and owner/away isn't in its local cache."
    assert done.stdout.splitlines()[-1] == f"::notice title=Skipped: away::{why}"
    assert (project / "summary.md").read_text() == f"| skipped | why |\n| --- | --- |\n| away | {why} |\n\n"
    assert [path.name for path in (project / "apart").iterdir()] == ["one"]


@pytest.mark.parametrize("given", ["nonsense", "one --budget=-1"])
def test_what_is_wrong_here_is_never_skipped(project, given):
    done = run("compute", *given.split(), "--apart", "apart", cwd=project)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, f"Something failed in: {given.split()[0]}")
    assert "::notice" not in done.stdout


def test_why_a_model_was_skipped_is_text_and_nothing_else(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    script("skipping").say({"a": "100%\n::error::<b>x</b> | [y](z) `w`"})
    assert capsys.readouterr().out == "::notice title=Skipped: a::100%25 ::error::<b>x</b> | [y](z) `w`\n"
    *_, row, _ = (tmp_path / "summary.md").read_text().splitlines()
    assert row == r"| a | 100% ::error::&lt;b&gt;x&lt;/b&gt; \| \[y\](z) \`w\` |"


@pytest.mark.parametrize(("spare", "kept"), [(0.0, True), (1e9, False)])
def test_whole_files_of_the_hub_go_where_the_disk_is_short(project, monkeypatch, spare, kept):
    cache = project / "hub"
    (cache / "models--a--b").mkdir(parents=True)
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    monkeypatch.chdir(project)
    compute = script("compute")
    assert compute.compute(["one"], project / "results", project / "apart", spare, ["--only", "gains"]) == ([], {})
    assert (cache / "models--a--b").exists() == kept


# preview.py


def test_models_that_are_new_or_changed_are_previewed(project):
    preview, before = script("preview"), load_registry(project / "models.yml")
    assert preview.added(before, load_registry(project / "models.yml")) == []
    changed = {**ONE, "licence": "MIT"}, entry("two", folder="three"), entry("new", hub="a/b")
    write_registry(project / "models.yml", *changed)
    assert preview.added(before, load_registry(project / "models.yml")) == ["one", "two", "new"]


def test_a_preview_is_made_of_so_many_models_and_tells_what_failed(project, monkeypatch, capsys):
    preview, asked = script("preview"), []
    write_registry(project / "now.yml", *(entry(f"m{i}", hub="a/b") for i in range(6)))
    write_registry(project / "before.yml")

    def report(command, check):
        asked.append(command)
        return subprocess.CompletedProcess(command, int(command[-1] == "m2"))

    monkeypatch.setattr(preview.subprocess, "run", report)
    monkeypatch.setattr(preview, "why_not", lambda model: "Its owner grants access." if model.name == "m1" else None)
    monkeypatch.setattr(sys, "argv", ["preview", *(str(project / n) for n in ("before.yml", "now.yml", "out"))])
    with pytest.raises(SystemExit, match="failed in: m2"):
        preview.main()
    assert [command[-1] for command in asked] == ["m0", "m2", "m3"]
    assert capsys.readouterr().out == "::notice title=Skipped: m1::Its owner grants access.\n"
    assert all("report" in command for command in asked)


def test_a_preview_writes_a_report_of_what_can_be_had(project):
    write_registry(project / "before.yml")
    write_registry(project / "now.yml", AWAY, ONE)
    done = run("preview", "before.yml", "now.yml", "out", "--skip-runs", cwd=project)
    assert done.returncode == 0, done.stderr
    assert (project / "out" / "one" / "index.html").is_file()
    assert done.stdout.startswith("::notice title=Skipped: away::The model hub can't be reached")


# request.py

FORM = {
    "Hub id": "owner/My_Model-1.5B",
    "Revision": COMMIT,
    "Family and architecture": "GPT-2, GPT2LMHeadModel",
    "Group": "Encoders",
    "Licence": "MIT",
    "Why this model?": "To compare.",
    "Conditions": "- [X] The weights are public",
}
HOSTILE = {
    "a command in the id": {"Hub id": "owner/$(touch pwned)"},
    "a path": {"Hub id": "../../etc/passwd"},
    "nothing": {"Hub id": "_No response_"},
    "a branch": {"Revision": "main"},
    "markup in the group": {"Group": "<script>alert(1)</script>"},
    "an escape in the licence": {"Licence": "MIT\x1b[2J"},
    "direction turned": {"Licence": "MIT \u202e"},
    "a licence without end": {"Licence": "x" * 2001},
    "known already": {"Hub id": "OpenAI-community/gpt2"},
}


@pytest.fixture
def registry(tmp_path):
    path = tmp_path / "models.yml"
    path.write_text((ROOT / "models.yml").read_text("utf-8"), "utf-8")
    return path


def requested(registry, form):
    body = "\n\n".join(f"### {label}\n\n{answer}" for label, answer in form.items())
    event = registry.with_name("event.json")
    event.write_text(json.dumps({"issue": {"number": 7, "body": body}}), "utf-8")
    return run("request", "--registry", registry, cwd=registry.parent, GITHUB_EVENT_PATH=str(event))


def test_the_form_asks_what_the_script_reads():
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "model-request.yml").read_text("utf-8"))
    labels = {field["attributes"].get("label") for field in form["body"]}
    assert set(FORM) <= labels
    [groups] = [field["attributes"]["options"] for field in form["body"] if field["type"] == "dropdown"]
    assert set(groups) == {model.group for model in REGISTRY.models if not model.group.startswith("The atlas's own")}


def test_a_request_becomes_an_entry_and_nothing_else_changes(registry):
    before = registry.read_text("utf-8")
    done = requested(registry, FORM)
    assert done.returncode == 0, done.stderr
    known = load_registry(registry)
    model = known.find("my_model-1.5b")
    assert (model.title, model.group, model.licence) == ("My_Model-1.5B", "Encoders", "MIT")
    assert model.sources[0].model_dump() == {"hub": "owner/My_Model-1.5B", "revision": COMMIT}
    assert [m.name for m in known.models] == [*(m.name for m in REGISTRY.models[:-1]), model.name, "stdlib-gpt2"]
    after = registry.read_text("utf-8")
    assert set(before.splitlines()) <= set(after.splitlines())
    assert len(after.splitlines()) - len(before.splitlines()) == 9


@pytest.mark.parametrize("changed", HOSTILE.values(), ids=HOSTILE)
def test_a_request_that_cannot_be_is_refused(registry, changed):
    before = registry.read_bytes()
    done = requested(registry, FORM | changed)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert registry.read_bytes() == before
    assert sorted(path.name for path in registry.parent.iterdir()) == ["event.json", "models.yml"]


def test_yaml_in_an_answer_stays_text_and_one_given_twice_counts_as_first_given(registry):
    done = requested(registry, FORM | {"Licence": "MIT\n- name: x\n  title: y: !!python/object [z]"})
    assert done.returncode == 0, done.stderr
    assert len(load_registry(registry).models) == len(REGISTRY.models) + 1
    request = script("request")
    assert request.answers("### Licence\n\nMIT\r\n\r\n### Licence\n\nother") == {"Licence": "MIT"}
    with pytest.raises(InputError, match="nothing under"):
        request.entry({})
