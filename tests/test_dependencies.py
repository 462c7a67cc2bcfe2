"""Every package that the atlas imports is declared in pyproject.toml, not merely brought along by another one."""

import ast
import re
import sys
import tomllib
from importlib import metadata

import pytest

from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DECLARED = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["cluster"]]
OPTIONAL = {"distributed"}  # of the extra `cluster`, which may not be installed
ASKED_FOR = {"datasets"}  # only to count a dataset of the hub; where it is missing, a sentence names it


def normal(name: str) -> str:
    """Return a distribution's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def imported() -> set[str]:
    """Return the top-level modules of others that the package imports, wherever in it."""
    found = set()
    for path in (ROOT / "generators").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"generators"} - ASKED_FOR


def test_every_import_is_declared():
    declared = {normal(re.match(r"[\w.-]+", one)[0]) for one in DECLARED}
    known = metadata.packages_distributions()
    missing = {
        module for module in imported() if not {normal(name) for name in known.get(module, [module])} & declared
    }
    assert len(imported()) > 20
    assert missing == set()


@pytest.mark.parametrize("requirement", DECLARED)
def test_what_is_pinned_is_at_least_what_is_declared(requirement):
    name, least = re.match(r"([\w.-]+)(?:>=|==)([\d.]+)", requirement).groups()
    pinned = re.search(rf"^{normal(name)}==([\d.]+)", PINS, re.MULTILINE)
    if normal(name) in OPTIONAL:
        return
    assert pinned, f"{name} is not pinned"
    assert numbers(pinned[1]) >= numbers(least)


PINS = re.sub(r"^[\w.-]+", lambda found: normal(found[0]), (ROOT / "requirements.txt").read_text("utf-8"), flags=re.M)


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.strip(".").split(".")]
