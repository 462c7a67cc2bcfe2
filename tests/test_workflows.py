"""The files under .github pass their schemas and zizmor's audits, without a network."""

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
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def check(*command):
    run = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_zizmor_finds_nothing():
    zizmor = Path(sysconfig.get_path("scripts")) / "zizmor"
    check(zizmor, "--offline", "--persona=auditor", "--strict-collection", "--collect=all", GITHUB)


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("vendor.github-workflows", "workflows/*.yml"),
        ("custom.github-workflows-require-timeout", "workflows/*.yml"),
        ("vendor.dependabot", "dependabot.yml"),
        ("vendor.github-issue-forms", "ISSUE_TEMPLATE/*.yml"),
    ],
)
def test_schema(schema, pattern):
    check(sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *GITHUB.glob(pattern))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_by_commit(workflow):
    uses = re.findall(r"uses:\s*(.*)", workflow.read_text())
    assert uses
    assert [use for use in uses if not PINNED.fullmatch(use)] == []


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
