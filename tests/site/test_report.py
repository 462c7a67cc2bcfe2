"""`atlas report` as its reader gets it: made by an installed wheel in an empty folder, opened from the disk."""

import json
import os
import re
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from itertools import filterfalse
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import expect

from generators.base.verdicts import SYMBOLS, WEAK
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from generators.site.questions import questions
from tests.checkpoints import Sizes, write_checkpoint
from tests.conftest import ROOT
from tests.site.links import Links, is_moved
from tests.site.test_browser import PHONE, WIDE, load_pictures

MODEL = "my-model"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("hatchling") is None:
        pytest.skip("hatchling isn't installed, and no test asks the network for it")
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check"]
    wheel = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder / "wheels", ROOT]
    subprocess.run(wheel, check=True, cwd=folder)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    (built,) = (folder / "wheels").glob("*.whl")
    python = folder / "venv" / "bin" / "python"
    subprocess.run([*pip, "--python", python, "install", "--no-deps", "--no-index", built], check=True, cwd=folder)
    (libraries,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (libraries / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    code = "import generators; print(generators.__file__)"
    where = subprocess.run([python, "-Ic", code], check=True, cwd=folder, capture_output=True, text=True).stdout
    assert Path(where.strip()).is_relative_to(libraries), "it is the wheel that is tested"
    return folder / "venv" / "bin" / "atlas"


@pytest.fixture(scope="module")
def report(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("empty")
    write_checkpoint(folder / MODEL, "gpt2", sizes=Sizes(n_layer=2, n_head=3, d_model=48, n_ctx=256, vocab_size=160))
    ours = ("ATLAS_", "PYTHONPATH", "SITE_URL", "REPO_URL")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    run = subprocess.run(
        [installed, "report", f"./{MODEL}", "--output", "report"],
        cwd=folder,
        env={**environment, "HF_HUB_OFFLINE": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "The report is in report/; open report/index.html in a browser.\n"
    assert sorted(path.name for path in folder.iterdir()) == [MODEL, "report"], "nothing is left beside it"
    return folder / "report"


def pages(report: Path) -> dict[Path, Links]:
    return {path: Links(path) for path in sorted(report.rglob("*.html"))}


def test_it_has_a_page_of_the_model_and_one_of_each_question(report):
    found = {path.relative_to(report).as_posix() for path in pages(report)}
    asked = {f"questions/{one.name}/index.html" for one in questions()}
    assert {"index.html", f"models/{MODEL}/index.html", *asked} <= found
    document = json.loads((report / "data" / MODEL / "findings.json").read_text())
    statuses = {name: record["status"] for name, record in document["findings"].items()}
    assert list(statuses) == [finding.name for finding in FINDINGS]
    for finding in FINDINGS:  # without a tokenizer no text can be run through it
        possible = {"computed", "not_applicable", *({"missing"} if RUN in finding.needs else ())}
        assert statuses[finding.name] in possible, finding.name
    assert list(statuses.values()).count("computed") >= 6
    text = (report / "models" / MODEL / "index.html").read_text()
    for claim in document["claims"]:
        assert f'id="claim-{claim["id"]}"' in text


def test_every_link_leads_to_a_file_on_the_disk(report):
    found = pages(report)
    assert len(found) > len(questions())
    followed = 0
    for path, page in found.items():
        for link in (*page.hrefs, *page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                assert parts.scheme in ("https", "mailto"), (path, link)
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), (path, link)
            assert target.is_relative_to(report), (path, link)
            if parts.fragment and target in found:
                assert unquote(parts.fragment) in found[target].ids, (path, link)
            followed += 1
    assert followed > 100


def test_nothing_is_loaded_from_elsewhere(report):
    for path, page in pages(report).items():
        assert [link for link in page.loaded if urlsplit(link).scheme or urlsplit(link).netloc] == [], path
    for path in report.rglob("*.css"):
        for link in re.findall(r"""url\(["']?([^"')]+)""", path.read_text("utf-8")):
            assert link.startswith(("data:", "#")) or (path.parent / link).is_file(), (path, link)


def test_no_file_tells_where_on_this_machine_it_was_made(report):
    for path in report.rglob("*"):
        if path.suffix in (".html", ".json", ".csv", ".svg"):
            text = path.read_text("utf-8")
            assert str(report.parent) not in text, path
            assert str(ROOT) not in text, path


# As a reader opens it


@pytest.mark.browser
def test_every_page_opens_from_the_disk_without_an_error_and_fits_on_a_phone(visit, report):
    page = visit("about:blank", viewport=WIDE)
    for path in filterfalse(is_moved, pages(report)):
        page.goto(path.as_uri())
        load_pictures(page)
        expect(page.locator("h1").first).to_be_visible()
        page.set_viewport_size(PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
        page.set_viewport_size(WIDE)


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "tone", "other"), [("light", "light", "dark"), ("dark", "dark", "light")])
def test_its_figures_are_seen(visit, report, scheme, tone, other):
    page = visit((report / "models" / MODEL / "index.html").as_uri(), viewport=WIDE, color_scheme=scheme)
    load_pictures(page)
    pictures = page.locator(f"figure .tone--{tone} img")
    own = {finding.signature for finding in FINDINGS}  # others tell stories on home
    drawn = [path for path in (report / "figures" / MODEL).glob("*.svg") if path.stem in own]
    assert pictures.count() == len(drawn) >= 10
    for picture in pictures.all():
        expect(picture).to_be_visible()
        assert picture.evaluate("i => i.naturalWidth > 100 && i.getBoundingClientRect().width > 100")
        assert picture.get_attribute("alt")
    expect(page.locator(f"figure .tone--{other}").first).to_be_hidden()


@pytest.mark.browser
def test_its_claims_are_told_and_a_reader_gets_around(visit, report):
    page = visit((report / "index.html").as_uri(), viewport=WIDE)
    load_pictures(page)  # a picture that is on its way when the page is left is a request that failed
    found = json.loads((report / "data" / MODEL / "findings.json").read_text())
    page.locator(f"a[href='models/{MODEL}/index.html']", has_text="All figures").click()
    for claim in found["claims"]:
        shown = (page.locator(f"#claim-{claim['id']}").text_content() or "").strip(
            " \n“”"
        )  # that of a folded one, too
        short = next(rule.short for finding in FINDINGS for rule in finding.rules if rule.id == claim["id"])
        said = short if claim["verdict"] == "untested" else WEAK if claim.get("weak") else SYMBOLS[claim["verdict"]]
        assert shown.startswith(said), claim
    load_pictures(page)
    page.get_by_role("link", name="How does the model know positions").first.click()
    assert page.url == (report / "questions" / "shape" / "index.html").as_uri()
    expect(page.get_by_role("heading", name="What was observed")).to_be_visible()
