"""`make bench` on tiny models: every way leaves the same files, and the about page shows what is stored; no times."""

import json

import pytest

from generators.base.errors import InputError
from generators.site import quality_reports
from tests import benchmark
from tests.checkpoints import Sizes

TINY = Sizes(n_layer=1, n_head=1, d_model=32, n_ctx=64, vocab_size=400)


@pytest.fixture
def without_cluster(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, "CLUSTER_PYTHON", tmp_path / "not-there")


def test_what_is_measured_is_stored_and_read(tmp_path, monkeypatch, without_cluster, capsys):
    monkeypatch.setattr(benchmark, "RESULTS", tmp_path / "bench.json")
    monkeypatch.setattr(benchmark, "SMALL", TINY)
    monkeypatch.setattr("sys.argv", ["bench", "--models", "2", "--small", "--write"])
    benchmark.main()
    found = quality_reports.read(tmp_path, "bench")
    assert [row.way for row in found.whole.rows] == ["one after another", "--jobs"]
    assert all(row.seconds > 0 and row.memory_mib > 50 for row in found.whole.rows)
    assert {"helix", "outliers"} < {row.name for row in found.findings.rows}


def test_ways_that_leave_other_files_end_the_run(monkeypatch, without_cluster):
    monkeypatch.setattr(benchmark, "measured", lambda *_: {"seconds": 1.0})
    monkeypatch.setattr(benchmark, "files", lambda results: {"a": results.name.encode()})
    with pytest.raises(AssertionError, match="results differ"):
        benchmark.whole(1, TINY)


def test_stored_figures_are_of_every_way_and_kind_of_page():
    stored = quality_reports.read(benchmark.RESULTS.parent, "bench")
    assert {row.way for row in stored.whole.rows} >= {"one after another", "--jobs", "cluster"}
    assert {"home", "model", "compare"} <= {*quality_reports.read(benchmark.RESULTS.parent, "lighthouse").pages}


@pytest.mark.parametrize("name", quality_reports.REPORTS)
def test_every_report_can_be_read_and_damage_is_a_sentence(tmp_path, name):
    assert quality_reports.read(benchmark.RESULTS.parent, name) is not None
    assert quality_reports.read(tmp_path, name) is None
    (tmp_path / f"{name}.json").write_text(json.dumps({"date": "1"}))
    with pytest.raises(InputError, match=f"make {name}"):
        quality_reports.read(tmp_path, name)
