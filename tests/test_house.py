"""docs/architecture.md is true: its rooms are there, no import climbs, none runs in a circle."""

import ast
import os
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from generators.findings import FINDINGS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
ROOMS = re.findall(r"^\| `generators/(\w+)(?:/|\.py)` \|", PAGE, re.MULTILINE)
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (ROOT / "generators").rglob("*.py")
}


def imports(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the modules that a file imports, wherever in it (for types alone, too), and what of each."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, [alias.name for alias in node.names]


def imported(path: Path) -> Iterator[str]:
    """Yield the modules of ours that a file imports."""
    for module, names in imports(path):
        inner = [f"{module}.{name}" for name in names if f"{module}.{name}" in MODULES]
        yield from inner
        if module in MODULES and (len(inner) < len(names) or not names):
            yield module


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_every_room_is_listed_and_every_listed_room_is_there():
    there = {path.stem for path in (ROOT / "generators").iterdir() if not path.name.startswith("__")}
    assert sorted(ROOMS) == sorted(there)


def test_no_import_climbs():
    rank = {"": -1, **{name: i for i, name in enumerate(ROOMS)}}
    pairs = [(module, other) for module, path in MODULES.items() for other in imported(path)]
    assert [pair for pair in pairs if room(pair[0]) and rank[room(pair[1])] > rank[room(pair[0])]] == []


def test_no_circle_of_imports():
    graph = {module: set(imported(path)) - {module} for module, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        pytest.fail(f"modules import one another in a circle: {' > '.join(circle.args[1])}")


def test_the_contract_of_findings_stands_on_the_ground_floor():
    names = ("inputs", "measured", "wording", "judging", "facts", "contract")
    floor = tuple(f"generators.findings.{name}" for name in names)
    asked = {name for module in floor for name in imported(MODULES[module])}
    assert {room(name) for name in asked if not name.startswith(floor)} <= {"base"}


def test_no_finding_reads_disks_or_templates_or_other_findings():
    asks_about = {finding.name: finding.asks_about for finding in FINDINGS}
    for module, path in MODULES.items():
        parts = module.split(".")
        if parts[1:2] != ["findings"] or len(parts) < 3:
            continue
        for other in imported(path):
            where = other.split(".")
            assert where[1] in ("base", "maths", "drawing", "findings"), f"{module} imports {other}"
            if where[1] == "findings" and len(where) > 2 and (ROOT / "generators/findings" / where[2]).is_dir():
                known = {parts[2], *asks_about.get(parts[2], ())}
                assert where[2] in known, f"{module} imports another finding: {other}"


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.name)
def test_measuring_imports_no_page_and_no_drawing(finding):
    seen, wanted = set(), [finding.measure.__module__]
    while wanted:
        module = wanted.pop()
        if module not in seen:
            seen.add(module)
            wanted += imported(MODULES[module])
    assert {room(module) for module in seen} <= {"base", "maths", "findings"}
    assert not {module.split(".")[-1] for module in seen} & {"facts", "figures", "claims", "judging", "wording"}


def test_tests_of_a_file_share_a_process(request):
    """What they share is made once: pytest-xdist has lost its groups before, without a word (its issue 1386)."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        assert request.node.nodeid.endswith("@tests/test_house.py")
