"""Series: what is said of a claim along models that differ in one thing, and the pages that say it."""

from types import SimpleNamespace

import numpy as np
import pytest

from generators.base.errors import InputError
from generators.checkpoint.registry import FolderSource, find_models, load_registry
from generators.compute.records import ClaimRecord
from generators.compute.results import Store
from generators.findings import FINDINGS
from generators.site import series as room
from generators.site.series import Along, SeriesPage, series_pages, write_series
from generators.site.staging import Staging
from generators.site.words import environment
from tests.conftest import ROOT

HELIX = next(finding for finding in FINDINGS if finding.name == "helix")
RULE = next(rule for rule in HELIX.rules if rule.id == "winding")
MODELS = """
- {name: gpt2, title: GPT-2, sources: [{folder: a}]}
- {name: openai-gpt, title: GPT-1, sources: [{folder: b}]}
- {name: all-minilm-l6-v2, title: MiniLM, sources: [{folder: c}]}
"""
SEEDS = """
- name: three
  title: Three
  along: seed
  question: What is an accident?
  members: [{model: gpt2, at: 1}, {model: openai-gpt, at: 2}, {model: all-minilm-l6-v2, at: 3}]
"""
STEPS = """
- name: course
  title: A course
  along: step
  question: When?
  each:
    name: "tiny-step-{at}"
    title: "Tiny at step {at}"
    sources: [{folder: "models/step-{at}"}, {hub: owner/tiny, revision: "step{at}"}]
  at: [0, 10, 100]
"""


def registry(tmp_path, series, models=MODELS):
    (tmp_path / "models.yml").write_text(models)
    (tmp_path / "series.yml").write_text(series)
    return load_registry(tmp_path / "models.yml")


def claim(verdict, value, threshold=1.0):
    return ClaimRecord(
        id=RULE.id,
        finding="helix",
        statement=RULE.statement,
        verdict=verdict,
        value=value,
        threshold=threshold,
        baseline=None,
        unit="turns",
        answer="",
    )


def along(kind, *verdicts):
    """Return a claim along a series, from pairs of verdict and value; places are 0, 1, 2, or a, b, c."""
    places = range(len(verdicts)) if kind != "change" else "abcdefgh"
    members = [
        SimpleNamespace(place=place, claims={RULE.id: claim(*one)})
        for place, one in zip(places, verdicts, strict=False)
    ]
    return Along(RULE, SimpleNamespace(along=kind), tuple(members))


# In words


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (
            [("fails", 0.1), ("holds", 2.0), ("holds", 3.0)],
            "Holds from step 1 on (from 0.1 at first to 3 in the end).",
        ),
        ([("holds", 2.0), ("fails", 0.1), ("holds", 3.0)], "Holds at the last step only, 2"),
        ([("fails", 0.1), ("fails", 0.2)], "Fails from the first step looked at to the last"),
        ([("untested", None), ("partly", 0.5), ("partly", 0.6)], "Untested in 1 of 3."),
    ],
)
def test_where_a_verdict_settles(verdicts, said):
    assert said in along("step", *verdicts).sentence


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([("holds", 2.0), ("holds", 3.0), ("holds", 2.5)], "All 3 seeds agree: it holds (2 to 3)."),
        (
            [("holds", 2.0), ("fails", 0.5), ("holds", 2.5)],
            "Seeds differ: it holds in 2, fails in 1 of 3 (0.5 to 2.5).",
        ),
        ([("untested", None), ("fails", 0.5)], "The one seed tested fails (0.5). Untested in 1 of 2."),
        ([("untested", None), ("untested", None)], "No model of the series can test it."),
    ],
)
def test_whether_seeds_agree(verdicts, said):
    assert along("seed", *verdicts).sentence == said


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([("holds", 2.0), ("holds", 3.0), ("fails", 0.5)], "Holds with a, and still with b; fails with c."),
        ([("holds", 2.0), ("fails", 0.2), ("partly", 0.5)], "Holds with a; fails with b; partly holds with c."),
        ([("untested", None), ("fails", 0.2), ("fails", 0.5)], "Fails with b and c. Untested in 1 of 3."),
        ([("holds", 2.0), ("holds", 0.2), ("holds", 0.5)], "Holds with a, and still with b and c."),
    ],
)
def test_what_a_change_does(verdicts, said):
    assert along("change", *verdicts).sentence == said


def test_a_sentence_is_true_of_thirty_models():
    verdicts = [("fails", 0.1)] * 10 + [("holds", 2.0)] * 20
    assert along("step", *verdicts).sentence.startswith("Holds from step 10 on")


def test_what_is_untested_is_not_drawn_and_one_point_is_no_panel():
    assert along("step", ("untested", None), ("holds", 2.0)).panel is None
    panel = along("step", ("untested", None), ("holds", 2.0), ("fails", 0.5)).panel
    assert [point.place for point in panel.points] == [1, 2]
    assert panel.threshold == 1.0


# In the registry


def test_members_of_a_pattern_are_models_but_none_that_pages_list(tmp_path):
    known = registry(tmp_path, STEPS)
    model = known.find("tiny-step-10")
    assert model.title == "Tiny at step 10"
    assert model.sources[0] == FolderSource(folder=tmp_path / "models/step-10")
    assert model.sources[1].revision == "step10"
    assert model not in known.models
    assert [one.name for one in find_models("course", known)] == ["tiny-step-0", "tiny-step-10", "tiny-step-100"]
    assert [one.name for one in find_models("gpt2", known)] == ["gpt2"]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (SEEDS.replace("openai-gpt", "gpt9"), "names 'gpt9', which"),
        (SEEDS.replace("at: 2", "at: 1"), "two members are at the same place"),
        (SEEDS.replace("along: seed", "along: width"), "along"),
        (SEEDS.replace("name: three", "name: gpt2"), "names the model 'gpt2' twice"),
        (SEEDS + SEEDS, "'three' twice"),
        (STEPS.replace("at: [0, 10, 100]", "at: [7]"), "one model is no series"),
        (STEPS.replace("at: [0, 10, 100]", "at: [a, b]"), "at"),
        (STEPS.replace("tiny-step-{at}", "tiny"), "must hold {at}"),
        (STEPS.replace('{folder: "models/step-{at}"}', "{place: here}"), "sources"),
        ("- just a word", "is wrong"),
        ("a: [", "isn't valid YAML"),
    ],
)
def test_a_wrong_series_is_a_sentence(tmp_path, wrong, why):
    with pytest.raises(InputError) as caught:
        registry(tmp_path, wrong)
    assert why in str(caught.value)


# Pages


@pytest.fixture
def written(tmp_path):
    known = registry(tmp_path, SEEDS + STEPS)
    staging = Staging(tmp_path / "pages", tmp_path / "cache")
    found = write_series(known, Store(ROOT / "results"), staging, environment(), ["gpt2"])
    return found, tmp_path / "pages"


def test_a_series_without_results_of_two_models_has_no_page(written):
    found, pages = written
    assert [one.series.name for one in found] == ["three"]
    assert {path.name for path in (pages / "series").iterdir()} == {"index.md", "three.md"}


def test_a_page_has_every_claim_that_some_model_can_test(written):
    found, pages = written
    text = (pages / "series" / "three.md").read_text()
    page: SeriesPage = found[0]
    for finding in page.shown:
        for row in page.claims(finding):
            assert row.sentence in text
        if page.panels(finding):
            assert (pages / f"figures/series/three/{finding.name}.svg").is_file()
    assert "models/gpt2/#claim-winding" in text
    assert "models/openai-gpt/" not in text  # it has no page
    assert "None" not in text


def test_curves_of_one_length_are_turned_onto_one_another(written, monkeypatch):
    page = written[0][0]
    assert page.curve() is None  # of different lengths
    original = room._curve_of(page.members[0])
    turned = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    first = original.rows[0]
    other = room.replace(original, rows=(room.replace(first, points=first.points @ turned),))
    curves = iter([original, other, None])
    monkeypatch.setattr(room, "_curve_of", lambda member: next(curves))
    curve = page.curve()
    assert curve.slider == "Seed"
    assert [rows.name for rows in curve.rows] == ["1", "2"]
    assert np.allclose(curve.rows[0].points, curve.rows[1].points, atol=1e-6)


def test_there_are_no_series_without_the_file(tmp_path):
    (tmp_path / "models.yml").write_text(MODELS)
    known = load_registry(tmp_path / "models.yml")
    assert known.series == ()
    assert list(series_pages(known, Store(ROOT / "results"))) == []
