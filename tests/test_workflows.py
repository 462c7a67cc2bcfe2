"""The files under .github, and how to cite, pass their schemas and zizmor's audits, without a network."""

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml
from huggingface_hub.utils import build_hf_headers

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))
SCRIPTS = Path(sysconfig.get_path("scripts"))
SCHEMA = (sys.executable, "-m", "check_jsonschema", "--builtin-schema")
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


@pytest.mark.parametrize(
    "command",
    [
        (SCRIPTS / "zizmor", "--offline", "--persona=auditor", "--strict-collection", "--collect=all", GITHUB),
        (*SCHEMA, "vendor.github-workflows", *WORKFLOWS),
        (*SCHEMA, "custom.github-workflows-require-timeout", *WORKFLOWS),
        (*SCHEMA, "vendor.citation-file-format", ROOT / "CITATION.cff"),
        (*SCHEMA, "vendor.dependabot", GITHUB / "dependabot.yml"),
        (*SCHEMA, "vendor.github-issue-forms", *GITHUB.glob("ISSUE_TEMPLATE/*.yml")),
    ],
)
def test_linters_and_schemas_find_nothing(command):
    run = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_by_commit_and_no_expression_reaches_a_shell(workflow):
    uses = re.findall(r"uses:\s*(.*)", workflow.read_text("utf-8"))
    assert uses
    assert [use for use in uses if not PINNED.fullmatch(use)] == []
    jobs = yaml.safe_load(workflow.read_text("utf-8"))["jobs"].values()
    assert not [step for job in jobs for step in job.get("steps", ()) if "${{" in step.get("run", "")]


def test_only_the_step_that_downloads_models_has_their_token_and_never_for_pull_requests():
    assert [path.name for path in WORKFLOWS if "secrets." in path.read_text("utf-8")] == ["publish.yml"]
    publish = (GITHUB / "workflows" / "publish.yml").read_text("utf-8")
    assert "pull_request" not in publish
    jobs = yaml.safe_load(publish)["jobs"]
    steps = [(name, step) for name, job in jobs.items() for step in job["steps"]]
    with_token = [(name, step["name"]) for name, step in steps if "HF_TOKEN" in step.get("env", {})]
    assert with_token == [("compute", "Compute what is not known yet")]
    assert "HF_TOKEN" not in str([job.get("env") for job in jobs.values()])


def test_without_a_secret_the_hub_is_asked_without_a_token(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_TOKEN", "")  # as a secret that isn't there reaches a step
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    assert "authorization" not in build_hf_headers()


def test_a_job_that_may_write_to_the_repository_installs_nothing():
    """What it installed could push: the entry of a requested model is made by a job without that token."""
    for path in WORKFLOWS:
        for name, job in yaml.safe_load(path.read_text("utf-8"))["jobs"].items():
            if (job.get("permissions") or {}).get("contents") != "write":
                continue
            steps = [step.get("run") or step["uses"] for step in job["steps"]]
            assert not re.search(r"make |pip |python|npm|actions/setup-", " ".join(steps)), (path.name, name)
