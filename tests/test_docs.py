"""What is written for readers is true: the files, commands and versions that it names are there."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from generators.cli import app
from generators.findings import FINDINGS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md", "site_src/add-a-model.md")
MADE = {"site/", ".pages/", "report/", "results/local/"}  # when the atlas runs
ELSEWHERE = {"models/opt/modeling_opt.py", "dev/eval/export_hf.py"}  # in transformers, in llm.c
CODE = re.compile(r"```\w*\n(.*?)```|`([^`\n]+)`", re.DOTALL)
FROM = ("", "generators", "generators/checkpoint", "templates", "tests/findings")  # where a page may begin a path


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def code_in(page: str) -> list[str]:
    """Return what a page sets as code, in blocks and in sentences, without comments."""
    return [re.sub(r"#.*", "", block or inline) for block, inline in CODE.findall(text_of(page))]


def is_there(name: str) -> bool:
    return name in MADE | ELSEWHERE or any((ROOT / place / name).exists() for place in FROM)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_is_there(page):
    links = [link for link in re.findall(r"\]\(([^)\s#]+)", CODE.sub("", text_of(page))) if "://" not in link]
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []
    code = code_in(page)
    paths = [name for name in code if re.fullmatch(r"(\w[\w.-]*/)+[\w.-]*|[\w-]+\.(yml|toml|txt)", name)]
    assert [name for name in paths if not is_there(name)] == []
    for name in (name for name in code if re.fullmatch(r"[\w/.-]*<name>[\w/.-]*", name)):  # what every finding has
        findings = [finding.name for finding in FINDINGS if finding.rules or not name.endswith("claims.py")]
        assert [finding for finding in findings if not is_there(name.replace("<name>", finding))] == [], name
    targets = re.findall(r"^([\w-]+):", text_of("Makefile"), re.MULTILINE)
    assert set(re.findall(r"(?:^|\s)make ([\w-]+)", "\n".join(code))) <= set(targets)
    commands = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert set(re.findall(r"(?:^|[\s/])atlas ([a-z][\w-]*)", "\n".join(code), re.MULTILINE)) <= set(commands)


def test_changelog_and_citation_name_this_version():
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    assert PROJECT["version"] in re.findall(r"^## (\S+)", text_of("CHANGELOG.md"), re.MULTILINE)
