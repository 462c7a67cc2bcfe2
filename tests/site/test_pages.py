"""Results -> pages: what is written, what follows the verdicts, and what one model's trouble costs the others."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import markdown
import pytest
from markupsafe import escape
from typing_extensions import TypedDict

from generators import findings as all_findings
from generators.base.errors import AtlasError
from generators.checkpoint.registry import FolderSource, Model, Registry
from generators.checkpoint.sources import Places
from generators.compute import judged
from generators.compute.records import ModelFindings
from generators.compute.results import Store
from generators.compute.schedule import compute_model
from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.site import pages, pictures
from generators.site.data import shortened
from generators.site.navigation import read_navigation
from generators.site.pages import Rendered, render
from generators.site.questions import GROUPS, address_of_rule
from generators.site.staging import Staging
from tests.checkpoints import Sizes, write_checkpoint
from tests.torture.processes import files_in

HELIX = next(finding for finding in FINDINGS if finding.name == "helix")
HOSTILE = "<script>alert(1)</script> | `x` *y* [z](javascript:1)"


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw where what a test puts in place of something is seen."""
    monkeypatch.setattr(pages, "PROCESSES", 1)


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Registry, Path]:
    folder = tmp_path_factory.mktemp("two")
    models = []
    for name, title in (("plain", "Plain"), ("hostile", "Hostile")):
        write_checkpoint(folder / name, "gpt2", sizes=Sizes(n_ctx=256), seed=len(models))
        source = FolderSource(folder=folder / name)
        models.append(Model(name=name, title=title, sources=(source,), notes=HOSTILE, licence=HOSTILE))
        compute_model(models[-1], Places(), Store(folder / "results"))
    absent = Model(name="absent", title="Absent", sources=(FolderSource(folder=folder / "nowhere"),))
    return Registry(models=(*models, absent)), folder / "results"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def site(tmp_path: Path, cache: Path) -> Staging:
    return Staging(tmp_path / "pages", cache)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "src"


@pytest.fixture(scope="module")
def rendered(computed, cache, tmp_path_factory) -> tuple[Rendered, Path]:
    folder = tmp_path_factory.mktemp("rendered")
    registry, results = computed
    return render(registry, Store(results), Staging(folder / "pages", cache), folder / "src"), folder / "pages"


@pytest.fixture
def make(computed, site, source):
    def render_them(*, registry=None, results=None, at=site, unavailable=None, **more) -> Rendered:
        return render(registry or computed[0], Store(results or computed[1]), at, source, unavailable, **more)

    return render_them


@pytest.fixture
def findings(monkeypatch: pytest.MonkeyPatch):
    def put(other: Finding[Any]) -> None:
        for room in (all_findings, pages):
            changed = tuple(other if finding.name == other.name else finding for finding in FINDINGS)
            monkeypatch.setattr(room, "FINDINGS", changed)

    return put


def published(results: Path, name: str = "plain") -> ModelFindings:
    found = judged.judged_model(Store(results), name)
    assert found is not None
    return found.published()


def names(rendered: Rendered) -> tuple[list[str], list[str]]:
    return [page.name for page in rendered.pages], [absent.model.name for absent in rendered.absent]


def test_every_page_figure_and_data_file_is_written(computed, rendered):
    (made, folder), (_, results) = rendered, computed
    assert made.damaged == []
    assert names(made) == (["plain", "hostile"], ["absent"])
    for path in ("index.md", "about.md", "models/plain.md", "questions/shape.md", "data/models.json"):
        assert (folder / path).is_file()
    assert "models/plain.md" in json.dumps(read_navigation(folder))
    document = json.loads((folder / "data/plain/findings.json").read_text())
    stored = published(results).model_dump(mode="json")
    assert document == stored | {"findings": shortened(stored["findings"])}
    assert document["model"]["name"] == "plain"
    assert len(list((folder / "figures/plain").glob("*.svg"))) > 6
    assert not (folder.parent / "src").exists(), "nothing generated stands among what is written by hand"


def test_a_model_without_results_is_listed_with_its_command(site, make):
    make(unavailable={"absent": "The hub is out of reach."})
    listed = (site.folder / "models/index.md").read_text()
    assert '<li id="absent-absent"><strong>Absent</strong>: <code>atlas compute absent</code>' in listed
    assert "models/absent/" not in listed + (site.folder / "index.md").read_text()
    found = [entry for entry in json.loads((site.folder / "search.json").read_text()) if "absent" in entry["title"]]
    assert [(one["location"], one["title"]) for one in found] == [
        ("models/#absent-absent", "Absent (absent): not computed yet")
    ]
    assert not (site.folder / "models/absent.md").exists()


def test_hostile_notes_and_licences_are_text_and_no_page_tells_where_a_folder_is(computed, rendered):
    (_, folder), (_, results) = rendered, computed
    for path in folder.rglob("*.md"):
        assert str(results.parent) not in path.read_text(), path
        html = markdown.markdown(path.read_text(), extensions=["attr_list", "md_in_html"])
        assert "<script>alert" not in html, path
        assert 'href="javascript' not in html, path


def test_a_title_that_a_menu_could_read_as_markup_is_refused():
    for title in (HOSTILE, "a<b", "a & b", "`a`", "a\u202eb", "a\nb"):
        with pytest.raises(ValueError, match="title"):
            Model(name="x", title=title, sources=(FolderSource(folder=Path("x")),))


def test_an_unchanged_site_is_not_written_again(site, make, monkeypatch):
    make()
    before = {path: path.stat().st_mtime_ns for path in site.folder.rglob("*") if path.is_file()}
    monkeypatch.setattr(pictures.svg, "svg", lambda figure: pytest.fail("drawn again"))
    make(at=site.again())
    assert {path: path.stat().st_mtime_ns for path in site.folder.rglob("*") if path.is_file()} == before


def test_what_is_no_longer_made_goes_and_from_the_cache_what_no_page_uses(computed, source, tmp_path):
    registry, results = computed
    site = Staging(tmp_path / "pages", tmp_path / "own-cache")
    render(registry, Store(results), site, source)
    (site.cache.folder / "0123.svg").write_text("old")
    fewer, again = Store(results), site.again()
    fewer.names = lambda: ["plain"]  # type: ignore[method-assign]
    render(Registry(models=registry.models[:1]), fewer, again, source)
    again.remove_stale()
    assert not (site.folder / "models/hostile.md").exists()
    assert not (site.folder / "figures/hostile").exists()
    assert (site.folder / "models/plain.md").is_file()
    kept = {path.name for path in site.cache.folder.iterdir()}
    assert kept == again.cache.used and sum(name.endswith(".svg") for name in kept) > 6


@pytest.mark.parametrize("only_in_series", [False, True])
def test_a_damaged_model_costs_no_other_its_page(computed, site, make, tmp_path, only_in_series):
    (plain, hostile, absent), results = computed[0].models, computed[1]
    registry = Registry(models=(plain, hostile.model_copy(update={"only_in_series": only_in_series}), absent))
    copy = shutil.copytree(results, tmp_path / "results")
    (copy / "hostile/model.json").write_text("{")
    rendered = make(registry=registry, results=copy)
    (sentence,) = rendered.damaged
    assert "hostile/model.json are damaged" in sentence
    assert names(rendered) == (["plain"], ["absent"] if only_in_series else ["hostile", "absent"])
    assert ("Hostile" in (site.folder / "models/index.md").read_text()) != only_in_series
    assert (site.folder / "models/plain.md").is_file()
    assert "models/hostile" not in json.dumps(read_navigation(site.folder))


def test_a_damaged_finding_costs_its_model_no_other(computed, site, make, tmp_path):
    _, results = computed
    copy = shutil.copytree(results, tmp_path / "results")
    helix = copy / "hostile/helix.json"
    helix.write_text(helix.read_text().replace('"status": "computed"', '"status": "failed"'))
    rendered = make(results=copy)
    (sentence,) = rendered.damaged
    assert "hostile/helix.json are damaged" in sentence
    assert names(rendered)[0] == ["plain", "hostile"]
    page = (site.folder / "models/hostile.md").read_text()
    assert f"Not measured: Helix. Not shown. {escape(sentence)}" in page
    assert "figures/hostile/helix" not in page
    assert page.count("<figure") > 5
    claims = json.loads((site.folder / "data/hostile/findings.json").read_text())["claims"]
    assert {claim["verdict"] for claim in claims if claim["finding"] == "helix"} == {"untested"}
    assert {claim["verdict"] for claim in claims if claim["finding"] == "gains"} != {"untested"}


def test_a_figure_that_can_not_be_drawn_costs_only_its_finding_figures(site, make, findings):
    calls = iter([ValueError("no such colour")])

    def broken(measured):
        for error in calls:
            raise error
        return HELIX.figures(measured)

    findings(replace(HELIX, figures=broken))
    lines: list[str] = []
    rendered = make(report=lines.append)
    assert rendered.damaged == ["plain: the figures of helix can't be drawn from the stored arrays (ValueError)."]
    assert names(rendered)[0] == ["plain", "hostile"]
    assert (site.folder / "models/plain.md").read_text().count("<figure") > 5
    assert any("no such colour" in line for line in lines)


def test_results_of_older_versions_are_said_to_be_so_and_judged_by_todays_rules(computed, site, make, findings):
    _, results = computed
    verdicts = [claim.verdict for claim in published(results).claims]
    findings(replace(HELIX, version=HELIX.version + 1))
    assert make().damaged == []
    page = (site.folder / "models/plain.md").read_text()
    assert page.count("Helix: measured by an older version of this finding") == 1
    document = json.loads((site.folder / "data/plain/findings.json").read_text())
    assert [claim["verdict"] for claim in document["claims"]] == verdicts
    assert [name for name, record in document["findings"].items() if record["older_code"]] == [HELIX.name]


def test_results_in_another_form_are_not_shown_and_not_judged(site, make, findings):
    class Other(TypedDict):
        something_else: float

    findings(replace(HELIX, metrics=Other))
    assert make().damaged == []
    page = (site.folder / "models/plain.md").read_text()
    assert "measured by an older version of this finding, in another form" in page
    document = json.loads((site.folder / "data/plain/findings.json").read_text())
    assert {claim["verdict"] for claim in document["claims"] if claim["finding"] == HELIX.name} == {"untested"}
    assert document["findings"][HELIX.name]["status"] == "missing"


def test_a_full_disk_is_a_sentence(computed, site, source, monkeypatch):
    registry, results = computed

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(AtlasError, match="No space left"):
        render(registry, Store(results), site, source)


def test_what_the_compare_page_needs_is_published(rendered):
    _, folder = rendered
    models = json.loads((folder / "data/models.json").read_text())
    assert [model["name"] for model in models] == ["plain", "hostile"]
    claims = {claim["id"] for claim in json.loads((folder / "data/plain/findings.json").read_text())["claims"]}
    listed = json.loads((folder / "data/claims.json").read_text())
    assert [finding["name"] for finding in listed] == [finding.name for finding in FINDINGS]
    assert {claim["id"] for finding in listed for claim in finding["claims"]} == claims
    for model in models:
        for picture in model["pictures"].values():
            paths = [picture["light"], picture["dark"], *([picture["data"]] if picture["data"] else [])]
            assert all((folder / path.removesuffix("#dark")).is_file() for path in paths)
            assert picture["dark"].endswith("#dark")
            assert picture["alt"]


def test_a_question_says_in_which_models_each_claim_holds(computed, rendered):
    (_, folder), (_, results) = rendered, computed
    for name in ("plain", "hostile"):
        for claim in published(results, name).claims:
            page = (folder / f"{address_of_rule(claim.id).partition('/#')[0]}.md").read_text()
            link = f'<a href="../../models/{name}/#claim-{claim.id}">'
            assert (link in page) == (claim.verdict != "untested"), (name, claim.id)


def test_figures_of_a_page_bear_numbers_from_the_first_to_the_last(rendered):
    text = (rendered[1] / "models/plain.md").read_text()
    numbered = re.findall(r'<figcaption><a class="figure-number" href="#figure-([\w-]+)">Figure (\d+)</a>', text)
    assert [int(number) for _, number in numbered] == list(range(1, len(numbered) + 1))
    assert [name for name, _ in numbered] == re.findall(r'<figure class="[^"]+" id="figure-([\w-]+)"', text)
    assert len(numbered) > 1


def test_pages_made_twice_are_the_same_bytes_by_one_process_or_several(computed, rendered, source, tmp_path):
    registry, results = computed
    one = Staging(tmp_path / "pages", tmp_path / "cache")
    render(registry, Store(results), one, source)  # `rendered` was by as many as there are cores
    first, second = files_in(rendered[1]), files_in(one.folder)
    assert [name for name in first.keys() | second.keys() if first.get(name) != second.get(name)] == []


def test_the_matrix_has_a_group_for_each_question_and_leads_to_every_claim(rendered):
    whole = (rendered[1] / "matrix.md").read_text()
    for finding in FINDINGS:
        for rule in finding.rules:
            assert f'href="../{address_of_rule(rule.id)}"' in whole
    assert [title for title in GROUPS if f"<caption>{title}</caption>" not in whole] == []
    assert whole.count("<table") == len(GROUPS)
    assert whole.count('<th scope="row" role="rowheader">') == 2 * len(GROUPS), "a row for each model"


def test_published_numbers_have_seven_digits_and_nothing_else_changes():
    value = {"a": [0.16386283118733347, 12345.678901, None, True, 7, 10**12], "b": ("x", -1.5e-9)}
    assert shortened(value) == {"a": [0.1638628, 12345.68, None, True, 7, 10**12], "b": ["x", -1.5e-9]}
