"""A site that is built is known by content: by what it was made from, and by what came out."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from generators.base.errors import AtlasError
from generators.site import build_cache
from generators.site.build_cache import Workshop
from tests.site.test_plugin import write

ROOT = Path(__file__).parents[2]
MADE_OF = ("src/page.md", "mkdocs.yml", "models.yml", "results/gpt2/helix.json", "templates/home.md.j2")


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    made = Workshop(*(tmp_path / name for name in ("src", "mkdocs.yml", "pages", "cache", "site")))
    files = (*MADE_OF, "pages/index.md", "site/index.html", "site/deep/figure.svg")
    write(tmp_path, {path: path for path in files})
    build_cache.remember(given(made), made)
    return made


def given(workshop: Workshop, unavailable: dict[str, str] | None = None) -> str:
    folder = workshop.site.parent
    inputs = folder / "models.yml", [folder / "results"]
    return build_cache.inputs(*inputs, workshop, folder / "templates", unavailable or {})


def test_an_unchanged_site_is_not_built_again_whatever_its_dates(workshop):
    for path in workshop.site.parent.rglob("*"):
        os.utime(path, (0, 0))
    assert build_cache.is_built(given(workshop), workshop)


@pytest.mark.parametrize("path", [*MADE_OF, "series.yml", "models/one/training.json"])
def test_whatever_it_is_made_from_counts(workshop, path):
    write(workshop.site.parent, {path: "another"})
    assert not build_cache.is_built(given(workshop), workshop)


def test_why_weights_are_unavailable_and_the_address_of_the_site_count(workshop, monkeypatch):
    assert not build_cache.is_built(given(workshop, {"gpt2": "The hub is out of reach."}), workshop)
    monkeypatch.setenv("SITE_URL", "https://example.org/")
    assert not build_cache.is_built(given(workshop), workshop)


@pytest.mark.parametrize("what", ["changed", "lost", "more", "whole", "cache"])
def test_a_site_that_is_not_what_was_made_does_not_stand(workshop, what):
    figure = workshop.site / "deep/figure.svg"
    if what == "changed":
        figure.write_text("x" * len(figure.read_text()))
    elif what == "lost":
        figure.unlink()
    elif what == "more":
        (workshop.site / "more.html").write_text("more")
    else:
        shutil.rmtree(workshop.cache if what == "cache" else workshop.site)
    assert not build_cache.is_built(given(workshop), workshop)


def test_nothing_heavy_is_imported_to_find_out(workshop):
    heavy = ("numpy", "pydantic", "matplotlib", "mkdocs", "torch", "scipy", "jinja2", "generators.findings")
    rooms = "generators.cli, generators.site.build_cache, generators.site.locations"
    program = f"import sys, {rooms}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_one_run_at_a_time_makes_the_site(tmp_path):
    workshop = build_cache.Workshop(cache=tmp_path / "cache", site=tmp_path / "site")
    other = pytest.raises(AtlasError, match="Another run is making the site")
    with build_cache.alone(workshop.cache, workshop.site), other, build_cache.alone(workshop.cache, workshop.site):
        pass
    with build_cache.alone(workshop.cache, workshop.site):
        pass
