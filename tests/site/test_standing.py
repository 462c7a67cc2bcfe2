"""A site that stands is known by content: by what it was made from, and by what came out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from generators.site import standing
from generators.site.standing import Workshop

ROOT = Path(__file__).parents[2]


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """Return a site that was made, with everything that it was made from."""
    made = Workshop(*(tmp_path / name for name in ("src", "mkdocs.yml", "pages", "cache", "site")))
    for path in ("src/page.md", "mkdocs.yml", "pages/index.md", "site/index.html", "site/deep/figure.svg"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    for path in ("models.yml", "results/gpt2/helix.json", "templates/home.md.j2"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    standing.remember(made, inputs=given(made), pages=standing.pages(made))
    return made


def given(workshop: Workshop, unavailable: dict[str, str] | None = None) -> str:
    folder = workshop.site.parent
    inputs = folder / "models.yml", folder / "results"
    return standing.inputs(*inputs, workshop, folder / "templates", unavailable or {})


def test_an_unchanged_site_stands_whatever_its_dates(workshop):
    for path in workshop.site.parent.rglob("*"):
        os.utime(path, (0, 0))
    assert standing.stands("inputs", given(workshop), workshop)
    assert standing.stands("pages", standing.pages(workshop), workshop)


@pytest.mark.parametrize(
    "path",
    ["models.yml", "series.yml", "results/gpt2/helix.json", "templates/home.md.j2", "src/page.md", "mkdocs.yml"],
)
def test_whatever_it_is_made_from_counts(workshop, path):
    (workshop.site.parent / path).write_text("another")
    assert not standing.stands("inputs", given(workshop), workshop)


def test_why_weights_are_unavailable_counts(workshop):
    assert not standing.stands("inputs", given(workshop, {"gpt2": "The hub is out of reach."}), workshop)


def test_the_address_of_the_site_counts(workshop, monkeypatch):
    monkeypatch.setenv("SITE_URL", "https://example.org/")
    assert not standing.stands("inputs", given(workshop), workshop)
    assert not standing.stands("pages", standing.pages(workshop), workshop)


def test_pages_count_for_mkdocs_and_results_do_not(workshop):
    (workshop.site.parent / "results/gpt2/helix.json").write_text("another")
    assert standing.stands("pages", standing.pages(workshop), workshop)
    (workshop.pages / "index.md").write_text("another")
    assert not standing.stands("pages", standing.pages(workshop), workshop)


@pytest.mark.parametrize("what", ["changed", "lost", "more", "whole"])
def test_a_site_that_is_not_what_was_made_does_not_stand(workshop, what):
    figure = workshop.site / "deep/figure.svg"
    if what == "changed":
        figure.write_text("x" * len(figure.read_text()))
    elif what == "lost":
        figure.unlink()
    elif what == "more":
        (workshop.site / "more.html").write_text("more")
    else:
        workshop.site.rename(workshop.site.with_name("elsewhere"))
    assert not standing.stands("inputs", given(workshop), workshop)


@pytest.mark.parametrize("record", ["", "{", "[]", "null"])
def test_a_damaged_record_is_none(workshop, record):
    (workshop.cache / standing.RECORD).write_text(record)
    assert not standing.stands("inputs", given(workshop), workshop)


def test_nothing_heavy_is_imported_to_find_out(workshop):
    heavy = ("numpy", "pydantic", "matplotlib", "mkdocs", "torch", "scipy", "jinja2", "generators.findings")
    rooms = "generators.cli, generators.site.standing, generators.site.locations"
    program = f"import sys, {rooms}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
