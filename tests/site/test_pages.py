"""Results -> pages: what is written, what follows the verdicts, and what one model's trouble costs the others."""

import json
from dataclasses import replace
from pathlib import Path

import markdown
import pytest
from markupsafe import escape

from generators.site import pages
from generators.base.errors import AtlasError
from generators.findings import FINDINGS
from generators.site.pages import Site, render
from generators.compute.run import Places, compute_model
from generators.checkpoint.registry import FolderSource, Model, Registry
from generators.compute.results import Store
from tests.checkpoints import Sizes, write_checkpoint

HOSTILE = "<script>alert(1)</script> | `x` *y* [z](javascript:1) \u202eabc"


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Registry, Path]:
    """Compute two models of noise, with hostile words about them."""
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
def site(tmp_path: Path, cache: Path) -> Site:
    return Site(tmp_path / "src", cache)


def test_every_page_figure_and_data_file_is_written(computed, site):
    registry, results = computed
    assert render(registry, Store(results), site) == []
    for path in ("index.md", "about.md", "SUMMARY.md", "models/plain.md", "findings/helix.md", "data/models.json"):
        assert (site.source / path).is_file()
    assert json.loads((site.source / "data/plain/findings.json").read_text())["model"]["name"] == "plain"
    assert len(list((site.source / "figures/plain").glob("*-dark.svg"))) > 10


def test_no_page_tells_where_on_this_machine_a_folder_is(computed, site):
    registry, results = computed
    render(registry, Store(results), site)
    for path in site.source.rglob("*.md"):
        assert str(results.parent) not in path.read_text(), path


def test_a_model_without_results_is_listed_with_its_command(computed, site):
    registry, results = computed
    render(registry, Store(results), site, {"absent": "The hub is out of reach."})
    home = (site.source / "index.md").read_text()
    assert "<code>atlas compute absent</code>" in home
    assert "models/absent/" not in home
    assert not (site.source / "models/absent.md").exists()


def test_hostile_notes_and_licences_are_text(computed, site):
    registry, results = computed
    render(registry, Store(results), site)
    for path in site.source.rglob("*.md"):
        html = markdown.markdown(path.read_text(), extensions=["attr_list", "md_in_html"])
        assert "<script>alert" not in html, path
        assert 'href="javascript' not in html, path


def test_a_title_that_a_menu_could_read_as_markup_is_refused():
    for title in (HOSTILE, "a<b", "a & b", "`a`", "a\u202eb", "a\nb"):
        with pytest.raises(ValueError, match="title"):
            Model(name="x", title=title, sources=(FolderSource(folder=Path("x")),))


def test_an_unchanged_site_is_not_written_again(computed, site, monkeypatch):
    registry, results = computed
    render(registry, Store(results), site)
    before = {path: path.stat().st_mtime_ns for path in site.source.rglob("*") if path.is_file()}
    monkeypatch.setattr(pages.figures, "svg_pair", lambda figure: pytest.fail("drawn again"))
    render(registry, Store(results), Site(site.source, site.cache))
    assert {path: path.stat().st_mtime_ns for path in site.source.rglob("*") if path.is_file()} == before


def test_what_is_no_longer_made_goes(computed, site):
    registry, results = computed
    render(registry, Store(results), site)
    fewer = Registry(models=registry.models[:1])
    stale = Store(results)
    stale_names = stale.names
    stale.names = lambda: [name for name in stale_names() if name == "plain"]  # type: ignore[method-assign]
    render(fewer, stale, Site(site.source, site.cache))
    assert not (site.source / "models/hostile.md").exists()
    assert not (site.source / "figures/hostile").exists()
    assert (site.source / "models/plain.md").is_file()


def test_a_damaged_model_costs_no_other_its_page(computed, site, tmp_path):
    registry, results = computed
    copy = tmp_path / "results"
    for path in results.rglob("*"):
        if path.is_file():
            (copy / path.relative_to(results)).parent.mkdir(parents=True, exist_ok=True)
            (copy / path.relative_to(results)).write_bytes(path.read_bytes())
    (copy / "hostile/findings.json").write_text("{")
    assert render(registry, Store(copy), site) == ["hostile"]
    assert (site.source / "models/plain.md").is_file()
    assert "models/hostile" not in (site.source / "SUMMARY.md").read_text()


def test_a_figure_that_can_not_be_drawn_costs_only_its_model(computed, site, monkeypatch):
    registry, results = computed

    def broken(result):
        if broken.calls:
            return FINDINGS[0].figures(result)
        broken.calls += 1
        raise ValueError("no such colour")

    broken.calls = 0
    monkeypatch.setattr(pages, "FINDINGS", (replace(FINDINGS[0], figures=broken), *FINDINGS[1:]))
    lines: list[str] = []
    assert render(registry, Store(results), site, report=lines.append) == ["plain"]
    assert (site.source / "models/hostile.md").is_file()
    assert any("no page can be made" in line for line in lines)


def test_results_of_another_version_are_said_to_be_so(computed, site, monkeypatch):
    registry, results = computed
    newer = replace(FINDINGS[0], version=FINDINGS[0].version + 1)
    monkeypatch.setattr(pages, "FINDINGS", (newer, *FINDINGS[1:]))
    assert render(registry, Store(results), site) == []
    assert "of another version of this finding" in (site.source / "models/plain.md").read_text()


def test_a_full_disk_is_a_sentence(computed, site, monkeypatch):
    registry, results = computed

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pages, "replace_file", full)
    with pytest.raises(AtlasError, match="No space left"):
        render(registry, Store(results), site)


def test_what_the_compare_page_needs_is_published(computed, site):
    registry, results = computed
    render(registry, Store(results), site)
    models = json.loads((site.source / "data/models.json").read_text())
    assert [model["name"] for model in models] == ["plain", "hostile"]
    claims = {claim["id"] for claim in json.loads((site.source / "data/plain/findings.json").read_text())["claims"]}
    listed = json.loads((site.source / "data/claims.json").read_text())
    assert [finding["name"] for finding in listed] == [finding.name for finding in FINDINGS]
    assert {claim["id"] for finding in listed for claim in finding["claims"]} == claims
    for model in models:
        for picture in model["pictures"].values():
            paths = [picture["light"], picture["dark"], *([picture["data"]] if picture["data"] else [])]
            assert all((site.source / path).is_file() for path in paths)
            assert picture["alt"]
    assert (site.source / "assets/plotly.min.js").stat().st_size > 1_000_000


def test_a_finding_says_in_which_models_each_claim_holds(computed, site):
    registry, results = computed
    render(registry, Store(results), site)
    store = Store(results)
    verdicts = {
        claim.id: [claim.verdict, next(c.verdict for c in store.load("hostile").claims if c.id == claim.id)]
        for claim in store.load("plain").claims
    }
    words = {"holds": "Holds in", "partly": "partly in", "fails": "fails in", "untested": "untested in"}
    seen = set()
    for finding in FINDINGS:
        page = (site.source / f"findings/{finding.name}.md").read_text()
        for claim in store.load("plain").claims:
            if claim.finding != finding.name:
                continue
            one, other = verdicts[claim.id]
            told = page[page.index(f"<strong>{escape(claim.statement)}</strong>") :].split("</li>")[0]
            expected = f"{words[one]} Plain, Hostile" if one == other else f"{words[one]} Plain"
            assert expected in told
            assert one == other or f"{words[other]} Hostile" in told
            seen.add(claim.id)
    assert seen == set(verdicts)


def test_a_link_leads_from_the_dark_picture_to_one_on_dark_ground(computed, site):
    registry, results = computed
    render(registry, Store(results), site)
    for name, ground in (("helix", "#ffffff"), ("helix-dark", "#1e2029")):
        assert f'style="background:{ground}"' in (site.source / f"figures/plain/{name}.svg").read_text()[:600]
