"""Series: what is said of a claim along models that differ in one thing, and the pages that say it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from generators.base.errors import InputError
from generators.checkpoint.registry import FolderSource, load_registry
from generators.checkpoint.typed import find_models
from generators.compute.results import Store
from generators.findings import FINDINGS
from generators.site.claims_along import Along, FinalVerdict, SeriesMember, change
from generators.site.held_out import Losses, SeriesLoss
from generators.site.series import SeriesPage, write_series
from generators.site.staging import Staging
from generators.site.words import environment
from tests.conftest import ROOT
from tests.site.stand_ins import claim

HELIX = next(finding for finding in FINDINGS if finding.name == "helix")
RULE = next(rule for rule in HELIX.rules if rule.id == "winding")
KINDS = ("always", "late", "before", "after", "unknown")  # of claims that hold in the end
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


def along(kind, *verdicts):
    """Return a claim along a series, from pairs of verdict and value; places are 0, 1, 2, or a, b, c."""
    places = range(len(verdicts)) if kind != "change" else "abcdefgh"
    members = [
        SimpleNamespace(place=place, units={}, claims={RULE.id: claim(RULE.id, *one)})
        for place, one in zip(places, verdicts, strict=False)
    ]
    return Along(RULE, SimpleNamespace(along=kind, reference="a"), tuple(members))


def test_costs_in_other_units_are_not_compared():
    row = along("change", ("fails", 0.1), ("holds", 3.0), ("holds", 2.0))
    for member, unit in zip(row.members, ("nats per token", "1 - cosine", "1 - cosine"), strict=True):
        member.units[RULE.id] = unit
    assert [member.place for member, _ in row.tested] == ["a"]


@pytest.mark.parametrize(
    ("verdicts", "settled"),
    [
        (["fails", "holds", "fails", "holds", "holds"], FinalVerdict("holds", 3, False, False, True)),
        (["fails", "holds", "fails"], FinalVerdict("fails", 2, False, False, True)),
        (["holds", "untested", "holds"], FinalVerdict("holds", 0, True, True, True)),
        (["untested", "partly"], FinalVerdict("partly", 1, True, False, True)),
        (["fails", "holds", "untested"], FinalVerdict("holds", 1, False, False, False)),
        (["untested"], None),
    ],
)
def test_the_step_from_which_the_last_verdict_stays(verdicts, settled):
    assert along("step", *((verdict, 1.0) for verdict in verdicts)).final_verdict == settled


def test_another_seed_alone_is_set_beside_the_changes():
    row = along("change", ("holds", 2.0), ("holds", 3.0), ("fails", 0.1))

    def judged(verdict):
        claims = [claim(RULE.id, verdict)]
        return SimpleNamespace(findings=(), published=lambda: SimpleNamespace(claims=claims))

    seeds = tuple(
        SeriesMember(i, SimpleNamespace(name=name), judged(verdict))
        for i, (name, verdict) in enumerate([("m0", "holds"), ("m1", "holds"), ("m2", "fails")])
    )
    members = tuple(
        SimpleNamespace(**vars(member), model=SimpleNamespace(name=name))
        for name, member in zip(("m0", "b", "c"), row.members, strict=True)
    )
    page = SeriesPage(row.series, ("a", "b", "c"), members, (), None, seeds)
    assert [change.place for change in page.seed_changes] == ["another seed (1)", "another seed (2)"]
    assert [len(change.retained) for change in page.seed_changes] == [1, 0]
    assert [len(change.lost) for change in page.seed_changes] == [0, 1]
    text = environment().get_template("series_macros.j2").make_module({"root": "", "symbols": {}}).changes(page, "#")
    assert text.count('<th scope="row">another seed') == 2


def test_seeds_agree_where_two_come_to_one_verdict():
    assert along("seed", ("holds", 2.0), ("untested", None), ("holds", 2.5)).agrees
    assert not along("seed", ("holds", 2.0), ("partly", 2.5)).agrees
    assert not along("seed", ("holds", 2.0), ("untested", None)).agrees
    spread = along("seed", ("holds", 2.0), ("untested", None), ("fails", 2.5))
    assert (spread.holding, spread.spread) == (1, 0.5)
    assert along("seed", ("holds", 2.0)).spread is None


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("holds", "holds", "retained"),
        ("holds", "fails", "lost"),
        ("holds", "partly", "lost"),
        ("holds", "untested", "untested"),
        ("fails", "holds", "gained"),
        ("partly", "fails", None),
        ("fails", "untested", None),
        ("untested", "holds", "new"),
        ("untested", "fails", None),
    ],
)
def test_what_becomes_of_a_claim_is_one_thing(before, after, kind):
    row = along("change", (before, 1.0), (after, 2.0))
    found = change([row], "a", "b")
    kinds = ("retained", "lost", "gained", "untested", "new")
    assert [name for name in kinds if getattr(found, name)] == ([kind] if kind else [])
    assert found.held == (before == "holds")


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
    assert model.only_in_series
    assert [one.name for one in find_models("course", known)] == ["tiny-step-0", "tiny-step-10", "tiny-step-100"]
    assert [one.name for one in find_models("gpt2", known)] == ["gpt2"]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (SEEDS.replace("openai-gpt", "gpt9"), "names 'gpt9', which"),
        (SEEDS.replace("at: 2", "at: 1"), "two members are at the same place"),
        (SEEDS.replace("along: seed", "along: width"), "along"),
        (SEEDS.replace("name: three", "name: gpt2"), "names 'gpt2' twice"),
        (SEEDS + SEEDS, "'three' twice"),
        (STEPS.replace("at: [0, 10, 100]", "at: [7]"), "one model is no series"),
        (STEPS.replace("at: [0, 10, 100]", "at: [a, b]"), "at"),
        (STEPS.replace("tiny-step-{at}", "tiny"), "names 'tiny' twice"),
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


def test_a_page_has_every_claim_that_some_model_can_test_if_two_models_have_results(tmp_path):
    known, pages = registry(tmp_path, SEEDS + STEPS), tmp_path / "pages"
    staging = Staging(pages, tmp_path / "cache")
    shown = SimpleNamespace(name="gpt2", title="GPT-2 124M", findings=SimpleNamespace(claims=[]))
    found = write_series(known, Store(ROOT / "results"), staging, environment(), [shown], [])
    assert [one.series.name for one in found] == ["three"]
    assert {path.name for path in (pages / "series").iterdir()} == {"three.md"}
    text = (pages / "series" / "three.md").read_text()
    page: SeriesPage = found[0]
    for finding in page.shown:
        assert all(f'<tr id="{row.rule.id}">' in text for row in page.claims(finding))
        if page.panels(finding):
            assert (pages / f"figures/series/three/{finding.name}.svg").is_file()
    assert "models/gpt2/#claim-winding" in text
    assert '<li id="gpt2"><strong><a href="../../models/gpt2/">GPT-2 124M</a></strong>' in text
    assert "models/openai-gpt/" not in text  # it has no page
    assert "None" not in text


def course(values, losses):
    rows = along("step", *values)
    series = SimpleNamespace(along="step", reference=None, name="course")
    found = Losses(tuple(SeriesLoss(i, one, None) for i, one in enumerate(losses)), "text", "nats")
    return SeriesPage(series, tuple(range(len(values))), rows.members, (), found if losses else None)


@pytest.mark.parametrize(
    ("verdicts", "losses", "kinds"),
    [
        ("fails, fails, holds, holds", [10, 9, 8, 2], ["before"]),  # half of the loss's fall
        ("fails, fails, holds, holds", [10, 3, 2.5, 2], ["after"]),
        ("fails, fails, holds, holds", [], ["unknown"]),
        ("fails, fails, holds, holds", [2, 3, 4, 10], ["unknown"]),  # it never falls
        ("holds, holds, holds", [10, 5, 2], ["always"]),
        ("untested, untested, holds, holds", [10, 5, 3, 2], ["late"]),  # the first step can't tell
        ("fails, holds, holds, untested", [10, 5, 3, 2], []),  # nor can the last
        ("holds, fails, holds, holds", [10, 5, 3, 2], ["after"]),  # it holds at the first, and then not
    ],
)
def test_since_when_a_claim_holds_that_holds_in_the_end(verdicts, losses, kinds):
    found = course([(verdict, 1.0) for verdict in verdicts.split(", ")], losses).emergence
    assert [name for name in KINDS if found[name]] == kinds


def test_what_holds_at_no_step_is_named():
    never = course([("fails", 0.1), ("partly", 0.2), ("fails", 0.1)], [10, 5, 2])
    assert [row.rule.id for row in never.emergence["never"]] == ["winding"]
    macros = environment().get_template("series_macros.j2").make_module({"root": ""})
    assert "This claim holds at no step at which it can be tested (1): " in macros.emergence(never, "#")
    assert "<td>never held</td>" in macros.summary(never, never.rows[0])
    assert not course([("fails", 0.1), ("holds", 2.0), ("fails", 0.1)], [10, 5, 2]).emergence["never"]
    assert not course([("untested", 0.1)] * 3, [10, 5, 2]).emergence["never"]


def test_until_the_last_step_has_results_nothing_is_said_of_when_verdicts_settle():
    whole = course([("fails", 0.1), ("holds", 2.0), ("holds", 2.0)], [10, 5, 2])
    part = replace(whole, places=(*whole.places, 9))
    assert (whole.half_fallen, part.half_fallen) == (1, None)
    said = environment().get_template("series_macros.j2").make_module({"root": ""}).emergence
    assert "At the last step, 1 of 1 claim holds." in said(whole, "#")
    assert "the first step (0) and of the last (9)" in said(part, "#")
    assert "half way" not in said(part, "#").lower()
