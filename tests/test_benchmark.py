"""`make bench` on tiny models: answers agree and what is kept has the form that the page is made from; no times."""

import json
import math

import numpy as np
import pytest

from generators.site.speed import Speed
from tests.benchmark import __main__ as bench
from tests.benchmark import growth, jobs, others
from tests.benchmark.findings import COUNTS, drawn_few, findings
from tests.benchmark.made_up import realistic_embedding
from tests.benchmark.notebook_nulls import NULLS
from tests.benchmark.notebooks import NOTEBOOKS
from tests.benchmark.timing import CannotMeasureError
from tests.benchmark.token_side import token_side
from tests.checkpoints import Sizes

SMALLEST = Sizes(n_layer=1, n_head=1, d_model=32, n_ctx=64, vocab_size=400)
TINY = Sizes(n_layer=2, n_head=2, d_model=64, n_ctx=128, vocab_size=2000)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "KEPT", tmp_path / "bench.json")
    return tmp_path / "bench.json"


def section(name, measure, kept):
    """Keep a section as the command does; return it as the page reads it."""
    bench.keep(name, bench.measured(name, measure))
    return getattr(Speed.model_validate(json.loads(kept.read_text())), name)


def test_searches_agree_with_the_plain_way(kept):
    found = section("token_side", lambda: token_side((2000, 64)), kept)
    assert [row.name for row in found.rows] == [
        "spectrum",
        "best match",
        "nearest neighbours of 1024",
        "neighbours within a radius",
    ]


def test_every_finding_about_weights_agrees_with_its_notebook(kept):
    with drawn_few():
        found = section("findings", lambda: findings(TINY), kept)
    assert {row.name for row in found.rows} == set(NOTEBOOKS) == set(NULLS)


def test_a_notebook_that_says_something_else_ends_the_run(monkeypatch):
    notebook = NOTEBOOKS["channels"]

    def off(weights):
        found = notebook.answers(weights)
        return {**found, "token_std": 1.1 * found["token_std"]}

    changed = type(notebook)(notebook.compared, off, notebook.agree)
    monkeypatch.setattr("tests.benchmark.findings.NOTEBOOKS", {"channels": changed})
    with drawn_few(), pytest.raises(AssertionError, match="Not equal to tolerance"):
        findings(TINY)


def test_few_draws_are_for_a_while_only():
    from generators.findings import nulls

    before = {name: getattr(nulls, name) for name in COUNTS if hasattr(nulls, name)}
    with drawn_few():
        assert all(getattr(nulls, name) != value for name, value in before.items())
    assert {name: getattr(nulls, name) for name in before} == before


def test_indicators_are_magikarps_where_the_unused_tokens_are_found(monkeypatch, tmp_path, kept):
    monkeypatch.setattr(others, "PYTHON", tmp_path / "not there")
    found = section("others", lambda: others.others(TINY), kept)
    assert [row.tool for row in found.rows] == ["Magikarp"]


def test_magikarps_indicators_are_small_for_unused_tokens_alone():
    E, unused = realistic_embedding(2000, 64)
    for values in others.magikarp(E, unused).values():
        assert set(np.argsort(values)[: len(unused)]) == set(unused)


def power(exponent, seconds=1.0):
    return lambda place: {"seconds": seconds * place**exponent, "memory": 3.0 * place}


def test_exponents_are_those_of_the_cost_and_a_range_is_cut_where_time_ends(kept):
    axes = [growth.Axis("layers", "layers", (1, 2, 4, 8, 16), power(2), lambda _: TINY)]
    found = section("growth", lambda: growth.growth(100.0, axes), kept)
    (axis,) = found.axes
    assert [point.at for point in axis.points] == [1, 2, 4, 8]
    assert math.isclose(axis.time.all, 2, abs_tol=1e-3)
    assert math.isclose(axis.memory.last, 1, abs_tol=1e-3)
    assert "16 layers are left out" in axis.cut
    assert "256 s" in axis.cut


def test_a_range_is_cut_where_memory_ends():
    axis = growth.along("channels", "channels", "d_model", (2**20,), TINY)
    found = growth.measured(axis, 1.0)
    assert found["points"] == []
    assert found["time"] is None
    assert "GiB" in found["cut"]


def test_one_model_is_measured_in_a_process_of_its_own():
    found = growth.of_one(growth.TINY)
    assert {"helix", "outliers"} < set(found["findings"])
    assert found["seconds"] > 0
    assert found["memory"] > 0


def test_the_command_is_measured_for_a_registry_and_for_nothing_to_do():
    found = growth.of_many(2)  # of one, smaller still, both are hardly more than the interpreter's start
    assert 0 < found["again"] < found["seconds"]
    assert found["memory"] > 0


def test_a_section_is_kept_beside_the_others(kept, monkeypatch, capsys):
    sections = {"token_side": lambda: {"ratio": 2.0}, "runs": lambda: {"ratio": 3.0}}
    monkeypatch.setattr(bench, "SECTIONS", sections)
    for name in sections:
        monkeypatch.setattr("sys.argv", ["bench", "--only", name, "--write"])
        bench.main()
    assert {name: found["ratio"] for name, found in json.loads(kept.read_text()).items()} == {
        "token_side": 2.0,
        "runs": 3.0,
    }


def test_what_can_not_be_measured_here_is_left_out_with_a_word(kept, monkeypatch, capsys):
    def missing():
        raise CannotMeasureError("the weights are not here")

    monkeypatch.setattr(bench, "SECTIONS", {"gpt2": missing})
    monkeypatch.setattr("sys.argv", ["bench", "--write"])
    bench.main()
    assert "gpt2 is left out: the weights are not here" in capsys.readouterr().err
    assert not kept.exists()


def test_jobs_a_cluster_and_commands_apart_are_timed_on_the_same_models(kept, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "OF_CLUSTER", tmp_path / "not-there")
    found = section("side_by_side", lambda: jobs.side_by_side(2, 2, SMALLEST), kept)
    assert set(found.ways) == {"one after another", "jobs"}
    assert found.apart.times_faster > 0
