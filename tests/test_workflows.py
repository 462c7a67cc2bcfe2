"""The files under .github pass their schemas and zizmor's audits, without a network."""

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

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


def test_publish_never_runs_for_pull_requests():
    assert "pull_request" not in (GITHUB / "workflows" / "publish.yml").read_text()
