"""Curves along a series: turned onto one another, small pictures of all, and pages of 3 and 30 made-up models."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from generators.checkpoint.registry import load_registry
from generators.compute.results import Store
from generators.drawing.interactive import Colouring, Curve, Rows
from generators.drawing.small_multiples import draw_small_multiples
from generators.findings import FINDINGS
from generators.site import pages as site_pages
from generators.site.series import write_series
from generators.site.series_curves import curve_of, turned_onto_one_another
from generators.site.staging import Staging
from generators.site.words import environment
from tests.conftest import ROOT
from tests.site.made_up_series import made_up, project, same, winding

OF_P, IN_STREAM = (finding.facts.curve for finding in FINDINGS if finding.facts.curve is not None)
RNG = np.random.default_rng(0)
WOUND = np.stack([np.cos(np.arange(64) / 9), np.sin(np.arange(64) / 9), np.arange(64) / 30], axis=1)


def curve(points, first=1):
    return Curve((Rows("rows", first, points),), (Colouring("position", np.arange(first + len(points))),))


def turn():
    return np.linalg.qr(RNG.standard_normal((3, 3)))[0]


# Turned onto one another


def test_a_turned_and_shifted_curve_comes_to_lie_on_the_one_before_it():
    found = [(0, curve(WOUND)), (10, curve(WOUND @ turn() + 5)), (20, curve(WOUND @ turn()))]
    made = turned_onto_one_another(found, "training step")
    assert (made.slider, [rows.name for rows in made.rows]) == ("Training step", ["0", "10", "20"])
    for rows in made.rows[1:]:
        assert np.allclose(rows.points, made.rows[0].points, atol=1e-9)


def test_curves_of_other_lengths_are_laid_on_what_both_have():
    short, late = curve(WOUND[:32] @ turn()), curve(WOUND[16:] @ turn(), first=17)
    made = turned_onto_one_another([("long", curve(WOUND)), ("short", short), ("late", late)], "what was changed")
    for rows in made.rows[1:]:
        begin = rows.first - 1
        long = made.rows[0].points[begin : begin + len(rows.points)]
        assert np.allclose(rows.points, long - long.mean(axis=0), atol=1e-9)
    assert len(made.colourings[0].values) == 65  # every position has a colour


def test_curves_without_a_position_in_common_are_left_as_they_are():
    made = turned_onto_one_another([(0, curve(WOUND[:8])), (1, curve(WOUND[:8] @ turn(), first=40))], "seed")
    assert np.isfinite(made.rows[1].points).all()
    assert list(made.as_json()["axes"]) == ["axis 1", "axis 2", "axis 3"], "no components once turned"
    assert made.rows[0].shares is None


def member_with(facts, name, drawn):
    figure = SimpleNamespace(name=name, interactive=lambda: drawn)
    finding = SimpleNamespace(facts=SimpleNamespace(curve=facts), figures=lambda _: [figure])
    return SimpleNamespace(judged=SimpleNamespace(findings=[SimpleNamespace(finding=finding, measured=True)]))


@pytest.mark.parametrize("points", [np.zeros((64, 3)), np.full((64, 3), np.nan)])
def test_a_curve_that_is_a_point_is_none(points):
    assert curve_of(member_with(OF_P, "helix", curve(points)), OF_P) is None


def test_of_layers_the_one_is_taken_that_is_shown_first():
    rows = tuple(Rows(f"{i}", 1, WOUND + i) for i in range(5))
    layers = Curve(rows, curve(WOUND).colourings, slider="Layer", start=2)
    found = curve_of(member_with(IN_STREAM, "stream-curves", layers), IN_STREAM)
    assert ([row.name for row in found.rows], found.start) == (["2"], 0)


@pytest.mark.parametrize("count", [2, 3, 30])
def test_every_curve_has_its_small_picture(count):
    drawn = draw_small_multiples([Rows(f"step {i}", 1, WOUND[: 10 + i]) for i in range(count)])
    titles = [ax.get_title() for ax in drawn.axes if ax.get_title()]
    assert titles == [f"step {i}" for i in range(count)]


# Pages


def trajectory(tmp_path, steps, changes):
    """Return the page's parts and text of a training of which steps have these results, and the registry."""
    series = f"""
- name: course
  title: A course
  along: step
  question: When?
  each: {{name: "tiny-{{at}}", title: "Tiny at {{at}}", sources: [{{folder: "{{at}}"}}]}}
  at: {list(steps)}
"""
    known = load_registry(project(tmp_path, series, []))
    store, staging = Store(tmp_path / "results"), Staging(tmp_path / "pages", tmp_path / "cache")
    for step in steps:
        if changes(step) is not None:
            made_up(store, f"tiny-{step}", changes(step))
    pages = write_series(known, store, staging, environment(), [], [])
    return pages, (tmp_path / "pages/series/course.md").read_text() if pages else "", known


@pytest.mark.parametrize("count", [3, 30])
def test_a_page_is_true_of_three_models_and_of_thirty(tmp_path, count):
    steps = [0, *(2**i for i in range(count - 1))]
    early = steps[count // 2]
    changes = {step: {"helix": winding(2.0 if step >= early else 0.01), "gains": same} for step in steps}
    (page,), text, _ = trajectory(tmp_path, steps, changes.get)
    assert f"<td>{early:,}</td>" in text
    assert re.search(r"since a step at which the loss is unknown \(1\): <a href=\"#winding\">winding</a>", text)
    assert text.count('<td class="cell cell--') == count * sum(len(page.claims(one)) for one in page.shown)
    for drawn in ("emergence", "curve"):
        assert (tmp_path / f"pages/figures/series/course/{drawn}.svg").is_file()
    data = json.loads((tmp_path / "pages/data/series/course/curve.json").read_text())
    assert [rows["name"] for rows in data["rows"]] == [f"{step:,}" for step in steps]
    figures = re.findall(r'<figure [^>]*id="figure-([\w-]+)"[^>]*data-cite="Figure (\d+), “([^”]+)”, A course"', text)
    assert [name for name, _, _ in figures][:2] == ["emergence", "curve"]
    assert [int(number) for _, number, _ in figures] == list(range(1, text.count("<figure ") + 1))
    for name, number, title in figures:
        assert f'href="#figure-{name}">Figure {number}</a>. <strong>{title}.</strong>' in text
    assert "None" not in text
    assert "Loss" not in text  # nothing is known of it
    assert len(text) < 5_000 * count + 60_000


def test_missing_models_are_named_and_not_drawn(tmp_path):
    known = {0: {"gains": same}, 1: {"helix": same}, 4: {"helix": same}}
    _, text, _ = trajectory(tmp_path, [0, 1, 2, 4], known.get)
    assert "1 of 4 models has no results yet: 2." in text
    assert "computed for each model separately. Models without such a curve: 0." in text


def test_without_results_the_overview_says_what_waits(tmp_path):
    made, _, known = trajectory(tmp_path, [0, 1], {}.get)
    assert made == []
    page = environment().get_template("all_series.md.j2")
    text = page.render(root="../", series=[], waiting=[(known.series[0], 2)])
    assert "<strong>A course</strong>, 2 models: When? <code>atlas compute course</code>" in text


def test_models_of_a_series_are_on_its_page_and_in_no_list(tmp_path):
    series = """
- name: changed
  title: Changed
  along: change
  question: What?
  members: [{model: one, at: as it was}, {model: two, at: another way}, {model: gone, at: not yet}]
"""
    known = load_registry(project(tmp_path, series, ["one", "two", "gone"]))
    store, staging = Store(tmp_path / "results"), Staging(tmp_path / "pages", tmp_path / "cache")
    for name, turns in (("one", 2.0), ("two", 0.01)):
        made_up(store, name, {"helix": winding(turns)})
    rendered = site_pages.render(known, store, staging, ROOT / "site_src")
    pages = tmp_path / "pages"
    assert ([page.name for page in rendered.in_series], rendered.pages, rendered.absent) == (["one", "two"], [], [])
    assert not (pages / "models/one.md").exists()
    assert {path.name for path in (pages / "figures/two").iterdir()} == {"helix.svg"}
    assert (pages / "data/two/findings.json").is_file()
    for listing in ("index.md", "models/index.md", "questions/shape.md"):
        assert not re.search(r"\"name\": \"one\"|atlas compute gone", (pages / listing).read_text())
    assert "models/one" not in (pages / "navigation.json").read_text()
    published = json.loads((pages / "data/models.json").read_text())
    assert [(model["name"], model["only_in_series"], model["claims"]) for model in published] == [
        (name, True, "series/changed/#") for name in ("one", "two")
    ]
    assert '<optgroup label="Series members"><option value="one">one (series)' in (pages / "compare.md").read_text()
    found = {entry["location"]: entry["title"] for entry in json.loads((pages / "search.json").read_text())}
    assert found["series/changed/#two"] == "two (series member)"
    text = (pages / "series/changed.md").read_text()
    assert '<li id="two">' in text
    assert '<a href="../../compare/?a=two">' in text
    assert 'href="../../data/two/findings.json"' in text
    assert '<th scope="row">another way</th>' in text
    assert '<a href="#winding">winding</a>' in text
    assert not re.search(r"models/(one|two)\b", "".join(path.read_text() for path in pages.rglob("*.md")))
