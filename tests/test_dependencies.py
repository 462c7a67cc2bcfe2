"""Every package that the atlas imports is declared in pyproject.toml, not merely brought along by another one."""

import re
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import ROOT
from tests.test_house import imports

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
BASE, EXTRAS = PROJECT["dependencies"], PROJECT["optional-dependencies"]
# What may import from an extra. All else must do with what is always installed.
USES = {
    "run": ("runner", "checkpoint/sources/pickled.py", "tokens/own_tokenizer.py"),
    "notebooks": ("site/notebooks.py", "site/results_table.py"),
}
DECLARED = [Requirement(one) for one in (*BASE, *(one for extra in USES for one in EXTRAS[extra]))]
FILES = [path for path in sorted(ROOT.glob("requirements*.txt")) if path.name != "requirements-torch.txt"]
PIN = re.compile(r"^([\w.-]+)==([\w.]+)", re.MULTILINE)
HASHED = re.compile(r"[\w.-]+==[\w.]+(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n")
NOT_DECLARED = {*sys.stdlib_module_names, "generators"}


def names(requirements: Iterable[str]) -> set[str]:
    return {canonicalize_name(Requirement(one).name) for one in requirements}


def test_every_import_is_declared_by_the_base_or_by_the_extra_that_it_is_for():
    known, wrong, seen = metadata.packages_distributions(), [], set()
    for path in (ROOT / "generators").rglob("*.py"):
        where = path.relative_to(ROOT / "generators").as_posix()
        extras = [extra for extra, places in USES.items() if where.startswith(places)]
        declared = names([*BASE, *(one for extra in extras for one in EXTRAS[extra])])
        for module in {name.split(".")[0] for name, _ in imports(path)} - NOT_DECLARED:
            distributions = {canonicalize_name(name) for name in known.get(module, [module])}
            wrong += [] if distributions & declared else [(where, module)]
            seen |= distributions
    assert wrong == []
    assert len(seen) > 30


def test_no_package_is_declared_twice_or_pinned_twice_differently():
    assert not names(BASE) & names(one for extra in EXTRAS.values() for one in extra)
    pinned = {pin for path in FILES for pin in PIN.findall(path.read_text("utf-8"))}
    assert len(pinned) == len({canonicalize_name(name) for name, _ in pinned})


def test_what_is_pinned_is_what_is_declared():
    texts = [(ROOT / f"requirements{which}.txt").read_text("utf-8") for which in ("", "-torch")]
    pinned = {canonicalize_name(name): version for text in texts for name, version in PIN.findall(text)}
    for one in DECLARED:
        assert one.specifier.contains(pinned[canonicalize_name(one.name)]), one


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_pin_has_hashes_and_nothing_else_is_said(path):
    head, _, pins = path.read_text("utf-8").partition("\n")
    assert head.startswith("# Made by `make pins`.")
    assert HASHED.sub("", pins) == ""
    assert not re.search(r"^torch==", pins, re.MULTILINE)
