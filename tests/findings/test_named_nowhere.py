"""A finding is added by its folder, its template and its tests: nothing else names one."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from generators.findings import FINDINGS
from tests.checkpoints import Sizes, write_checkpoint
from tests.conftest import ROOT

NAMES = {finding.name for finding in FINDINGS}
CLAIMS = {rule.id for finding in FINDINGS for rule in finding.rules}

# Strings outside findings' folders that are a finding's name or a claim's id, and why they look up neither.
ARGUED = {
    "generators/drawing/head_grid.py": {"heads"},  # a field of what `heads.js` draws
    "generators/maths/curve_chance.py": {"winding", "fraying"},  # statistics of a curve, by name
    "generators/maths/curve_statistics.py": {"winding", "fraying"},  # as above
    "generators/site/results_table.py": {"channels", "heads"},  # columns and units of the table
    # The titles of eight pages, each the count of the claim that answers its question best: prose, as above.
    "templates/questions.yml": {
        "helix",
        "winding",
        "few-channels",
        "keep-apart",
        "frequency-channel",
        "first-is-mean",
        "clump",
        "previous-token-on-text",
        "head-rests-on-first",
    },
    "templates/methods.md.j2": {"channels"},  # a sentence has the word before a quotation mark
}
# Findings that one finding's own words or facts take numbers from: each pair is set side by side on pages.
SIDE_BY_SIDE = {
    ("attention", "heads"),  # where heads look by weights, and on text
    ("blurred", "position_use"),  # by position alone, and on text
    ("position_use", "helix"),  # variance, and what a running model loses without it
    ("undertrained", "outliers"),  # tokens that look untrained, and what the model says of them
}


def strings_of(module: str) -> Iterator[str]:
    """Yield the strings of a program and the modules it imports from, but no docstrings."""
    for node in ast.walk(ast.parse(module)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


def strings_in(template: str) -> Iterator[str]:
    """Yield what a template may look something up by: quoted strings, attributes, addresses of findings, claims."""
    patterns = r"""["']([\w.-]+)["']|\.(\w+)|findings/([\w-]+)|#(?:claim-|rule-|lesson-)?([\w-]+)"""
    for found in re.finditer(patterns, template):
        yield from ".".join(filter(None, found.groups())).split(".")


def names_in(path: str) -> set[str]:
    text = (ROOT / path).read_text("utf-8")
    if not path.endswith(".py"):
        return {*strings_in(text)} & (NAMES | CLAIMS)
    modules = {one for one in strings_of(text) if one.startswith(tuple(f"generators.findings.{n}." for n in NAMES))}
    return {*strings_of(text)} & (NAMES | CLAIMS) | modules


def files_outside() -> list[str]:
    paths = [path.relative_to(ROOT) for folder in ("generators", "templates") for path in (ROOT / folder).rglob("*")]
    of_findings = re.compile(r"generators/findings/\w+/|templates/findings/")
    texts = (path.as_posix() for path in paths if path.suffix in (".py", ".j2", ".yml"))
    return sorted(path for path in texts if not of_findings.match(path))


@pytest.mark.parametrize("path", files_outside())
def test_nothing_outside_its_folder_and_template_names_a_finding_or_a_claim(path):
    assert names_in(path) == ARGUED.get(path, set()), "named without need, or argued for and no longer there"


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_finding_takes_numbers_of_no_other_but_where_both_are_set_side_by_side(name):
    text = (ROOT / "templates" / "findings" / f"{name}.md.j2").read_text("utf-8")
    taken = set(re.findall(r"measured\.(?:get\(\")?(\w+)|import \"findings/(\w+)", text))
    others = {one for pair in taken for one in pair if one in NAMES} - {name}
    assert {(name, other) for other in others} <= SIDE_BY_SIDE


# One more, in a copy

MADE_UP = {
    "generators/findings/made_up/__init__.py": """
import numpy as np
from matplotlib.figure import Figure as Canvas
from typing_extensions import TypedDict

from generators.findings.contract import Figure, Finding
from generators.findings.facts import EntityNote, Facts, Story
from generators.findings.judging import Evidence, claim
from generators.findings.measured import Measurements
from generators.findings.wording import words_of


class MadeUpMetrics(TypedDict):
    size: float
    loudest: int


def measure(inputs):
    sizes = np.abs(inputs.weights["token_embedding"]).mean(axis=0).astype(float)
    return Measurements({"size": float(sizes.mean()), "loudest": int(sizes.argmax())})


def channels(found, count):
    yield EntityNote(found.metrics["loudest"], "Made up: the loudest of all.")


@claim("made-up-claim", holds=0.0)
def made_up(metrics):
    return Evidence(metrics["size"])


FINDING = Finding(
    name="made_up",
    words=words_of(__name__),
    needs=("token_embedding",),
    metrics=MadeUpMetrics,
    measure=measure,
    rules=(made_up,),
    figures=lambda found: [Figure("made-up-figure", "A made-up figure", Canvas)],
    facts=Facts(entities={"channel": channels}, stories=(Story("made-up-claim", "made-up-figure", 1),)),
    signature="made-up-figure",
)
""",
    "generators/findings/made_up/made_up.yml": """
title: A made-up finding
order: 7
question: 6
claims:
  made-up-claim:
    short: made-up claim
    statement: Something is made up.
    value: mean size
    answer: It is {{ value | two }}.
search: [made-up word]
""",
    "templates/findings/made_up.md.j2": """
{% macro question() %}Is it made up?{% endmacro %}
{% macro headline(claim, name) %}A made-up headline{% endmacro %}
{% macro story(claim, name, m) %}{{ name }} has {{ m.size | number }}.{% endmacro %}
{% macro observation() %}<p>Nobody saw it.</p><p>Nor did we.</p>{% endmacro %}
{% macro definition() %}It is made up.{% endmacro %}
{% macro change_mind() %}Nothing.{% endmacro %}
{% macro caption_made_up_figure(metrics, arrays) %}Nothing is drawn.{% endmacro %}
{% macro alt_made_up_figure(metrics, arrays) %}Nothing.{% endmacro %}
""",
}
RENDER = """
from pathlib import Path

from generators.checkpoint.registry import Registry
from generators.compute.results import Store
from generators.site.pages import render
from generators.site.search import answers
from generators.site.staging import Staging

rendered = render(Registry(models=()), Store(Path("results")), Staging(Path("pages"), Path("cache")), Path("none"))
assert not rendered.damaged, rendered.damaged
print(answers()["questions/untrained/#made_up"])
"""


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Add a finding to a copy of the atlas, measure a model of noise by it, and return the folder of the pages."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("generators", "templates"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in MADE_UP.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text.lstrip("\n"), "utf-8")
    write_checkpoint(
        folder / "noise", "gpt2", sizes=Sizes(n_layer=2, n_head=3, d_model=48, n_ctx=256, vocab_size=160)
    )
    environment = {**os.environ, "PYTHONPATH": str(folder), "HF_HUB_OFFLINE": "1"}
    for command in (["-m", "generators.cli", "compute", "./noise", "--only", "made_up"], ["-c", RENDER]):
        run = subprocess.run(
            [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stdout + run.stderr
    assert "['made-up word']" in run.stdout
    return folder / "pages"


def test_a_made_up_finding_is_on_every_page_that_findings_are_on(rendered):
    model = (rendered / "models" / "noise.md").read_text()
    home = (rendered / "index.md").read_text()
    assert "# A made-up headline" in home, "it comes first of all"
    assert ">made-up claim</a>" in (rendered / "matrix.md").read_text()
    assert "Something is made up." in model
    assert "Made up: the loudest of all." in model
    question = (rendered / "questions" / "untrained.md").read_text()
    assert "Is it made up?" in question
    assert "Something is made up." in question
