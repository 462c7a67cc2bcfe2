"""What `make lighthouse` stands on: the server, the budget, and what is kept. Lighthouse itself is not run here."""

import gzip
import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from generators.base.errors import InputError
from generators.site import quality_reports
from tests import lighthouse
from tests.lighthouse import RESULTS, Budget, complaints, medians, numbers, read_budget, served

BUDGET = Budget({"performance": 95, "seo": 95}, {"total-blocking-time": 150}, {"home": ""})


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder with a page, a picture and a page below."""
    (tmp_path / "below").mkdir()
    (tmp_path / "index.html").write_text("<p>home</p>" * 100)
    (tmp_path / "below" / "index.html").write_text("<p>below</p>")
    (tmp_path / "dot.png").write_bytes(b"\x89PNG" * 100)
    return tmp_path


def fetched(url: str, **headers: str) -> tuple[dict[str, str], bytes]:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as response:
        return dict(response.headers), response.read()


def test_text_is_compressed_for_those_who_take_it(site):
    with served(site) as address:
        headers, body = fetched(address, **{"Accept-Encoding": "gzip, br"})
        assert headers["Content-Encoding"] == "gzip"
        assert headers["Content-Type"] == "text/html"
        assert gzip.decompress(body) == (site / "index.html").read_bytes()
        assert len(body) == int(headers["Content-Length"]) < 200
        headers, body = fetched(address)
        assert "Content-Encoding" not in headers
        assert body == (site / "index.html").read_bytes()
        headers, body = fetched(f"{address}dot.png", **{"Accept-Encoding": "gzip"})
        assert "Content-Encoding" not in headers
        assert body == (site / "dot.png").read_bytes()


def test_pages_are_found_by_folder_and_query_and_nothing_outside(site):
    with served(site / "below") as address:
        assert fetched(f"{address}?a=1&b=/x")[1] == b"<p>below</p>"
        for path in ("../index.html", "%2e%2e/index.html"):
            assert fetched(address + path)[1] == b"<p>below</p>", path
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetched(f"{address}../dot.png")
    with served(site) as address:
        assert fetched(f"{address}below")[1] == b"<p>below</p>", "a folder leads to its page"


@pytest.mark.parametrize(
    ("found", "missed"),
    [
        ({"performance": 95, "seo": 100, "total-blocking-time": 150}, []),
        ({"performance": 94, "seo": 100, "total-blocking-time": 0}, ["performance 94, at least 95"]),
        ({"performance": 99, "seo": 95, "total-blocking-time": 151}, ["total-blocking-time 151 ms, at most 150"]),
        (
            {"performance": 99},
            ["seo not measured, at least 95", "total-blocking-time not measured ms, at most 150"],
        ),
    ],
)
def test_a_budget_says_what_is_missed(found, missed):
    assert BUDGET.missed(found) == missed


def report(performance: float | None, seo: float, time: float | None) -> dict:
    refs = [{"id": "name", "weight": 7}, {"id": "told", "weight": 0}]
    nodes = {"items": [{"node": {"snippet": '<div role="dialog">'}}]}
    return {
        "categories": {
            "performance": {"score": performance, "auditRefs": []},
            "seo": {"score": seo, "auditRefs": refs},
        },
        "audits": {
            "total-blocking-time": {"id": "total-blocking-time", "title": "T", "score": 0, "numericValue": time},
            "name": {"id": "name", "title": "It has no name", "score": 0, "details": nodes},
            "told": {"id": "told", "title": "It weighs nothing", "score": 0},
        },
    }


def test_numbers_are_read_from_reports_and_the_median_counts():
    looks = [numbers(report(0.97, 1, time), BUDGET) for time in (10.4, 900.0, 40.0)]
    assert looks[0] == {"performance": 97, "seo": 100, "total-blocking-time": 10}
    assert medians(looks) == {"performance": 97, "seo": 100, "total-blocking-time": 40}
    without = numbers(report(None, 1, None), BUDGET)
    assert without == {"seo": 100}
    assert medians([*looks, without]) == {"seo": 100}, "what one look lacks is not measured"


def test_complaints_name_checks_that_weigh_and_where():
    assert complaints(report(1, 0.9, 0), ["seo"]) == ['name: It has no name\n      <div role="dialog">']


def test_the_budget_asks_for_pages_of_every_kind():
    budget = read_budget()
    assert {"performance", "accessibility", "best-practices", "seo"} == {*budget.least}
    assert min(budget.least.values()) >= 95
    assert budget.most["total-blocking-time"] <= 150
    assert {"home", "model", "finding", "compare", "about", "glossary", "notebook"} <= {*budget.pages}


def test_what_is_kept_can_be_read_and_damage_is_told(tmp_path):
    if RESULTS.is_file():
        kept = quality_reports.read(RESULTS.parent, "lighthouse")
        assert kept is not None
        assert {*kept.pages} <= {*read_budget().pages}
    assert quality_reports.read(tmp_path, "lighthouse") is None
    (tmp_path / "lighthouse.json").write_text(json.dumps({"date": "1"}))
    with pytest.raises(InputError, match="make lighthouse"):
        quality_reports.read(tmp_path, "lighthouse")


@pytest.mark.parametrize("budget", [95, 101])
def test_a_missed_budget_ends_with_one(site, monkeypatch, capsys, tmp_path, budget):
    asked = Budget({"seo": budget}, {}, {"home": "", "below": "below/"})
    looked = []
    monkeypatch.setattr(lighthouse, "read_budget", lambda: asked)
    monkeypatch.setattr(lighthouse, "chromium", lambda: "a browser")
    monkeypatch.setattr(lighthouse, "look", lambda url, _: (looked.append(url), {**report(1, 1, 0), **VERSION})[1])
    monkeypatch.setattr(lighthouse, "RESULTS", tmp_path / "lighthouse.json")
    monkeypatch.setattr("sys.argv", ["lighthouse", "--site", str(site), "--looks", "2", "--write"])
    with pytest.raises(SystemExit) as ended:
        lighthouse.main()
    assert ended.value.code == int(budget > 100)
    assert len(looked) == 4
    assert ("missed: seo 100, at least 101" in capsys.readouterr().out) == (budget > 100)
    kept = quality_reports.read(tmp_path, "lighthouse")
    assert kept is not None
    assert kept.pages["below"].scores == {"seo": 100}
    assert kept.speed == 1500


VERSION = {"lighthouseVersion": "12.0.0", "environment": {"benchmarkIndex": 1500}}
