"""What browsers draw interactive figures from: rounded, finite, small, and the same points as in the picture."""

import json
from pathlib import Path

import numpy as np
import pytest

from generators.compute.judged import judged_finding, judged_model
from generators.compute.results import Store
from generators.drawing.interactive import MOST_POINTS, Colouring, Curve, Group, Rows, Scatter, placed
from generators.findings.helix import FINDING as HELIX
from generators.findings.judging import NotMeasuredError
from generators.findings.plantings import coil, embed
from generators.findings.token_svd import FINDING as TOKEN_SVD
from generators.tokens.tokenizer_files import load_vocabulary
from tests.synthetic import architecture, measure
from tests.tokens.test_vocabulary import MINILM_SIZE, in_package

STORE = Store(Path(__file__).parents[2] / "results")


def test_numbers_are_rounded_and_absent_ones_null():
    curve = Curve(
        (Rows("all", 1, np.array([[1.23456789, -2e-9, 0.0], [1e6 / 3, 2, 3]]), (0.5, 0.25, 0.125)),),
        (Colouring("angle", np.array([np.nan, 90.0, np.inf]), cyclic=True),),
    )
    data = json.loads(json.dumps(curve.as_json(), allow_nan=False))
    assert data["rows"][0]["points"] == [[1.235, 333300.0], [-2e-9, 2.0], [0.0, 3.0]]
    assert data["rows"][0]["shares"] == [0.5, 0.25, 0.125]
    assert data["colourings"] == [{"name": "angle", "cyclic": True, "values": [None, 90.0, None]}]


def test_points_that_differ_little_stay_apart():
    near = 1 + np.linspace(0.028, 0.035, 50)
    assert placed(near) == pytest.approx(near, abs=1e-6)
    assert len(set(placed(near))) == 50
    assert placed(np.array([2e-9, 2e-9, np.nan])) == [2e-9, 2e-9, None]


@pytest.mark.parametrize("n", [1, MOST_POINTS, MOST_POINTS + 1, 3 * MOST_POINTS])
def test_a_group_is_thinned_evenly_and_keeps_its_ends(n):
    ids = np.arange(n) * 2
    data = Group("g", 0, ids, ids / 1, ids / 2, [f"t{i}" for i in ids]).as_json()
    assert len(data["ids"]) == min(n, MOST_POINTS)
    assert data["ids"][0] == 0
    assert data["ids"][-1] == ids[-1]
    assert data["names"] == [f"t{i}" for i in data["ids"]]
    steps = np.diff(data["ids"])
    assert len(steps) == 0 or steps.max() - steps.min() <= 2, "evenly"
    assert len(set(data["ids"])) == len(data["ids"])


def test_empty_groups_are_left_out_and_nameless_tokens_are_said_to_be_so():
    none, one = np.array([], int), np.array([7])
    data = Scatter("x", "y", (Group("none", 0, none, none, none), Group("one", 1, one, one, one)), 9).as_json()
    assert [group["name"] for group in data["groups"]] == ["one"]
    assert data["groups"][0]["names"] is None


def test_a_planted_helix_is_offered_by_its_angle_and_a_line_is_not():
    n, d = 256, 48
    line = np.outer(np.arange(n), np.ones(d)) + 1e-3 * np.random.default_rng(0).standard_normal((n, d))
    for P, colours in ((embed(coil(n, turns=3), d), 3), (line, 2)):
        measured = measure(HELIX, {"position_embedding": P}, architecture(n_ctx=n, d_model=d))
        data = next(f for f in HELIX.figures(measured) if f.name == "helix").interactive().as_json()
        assert [rows["first"] for rows in data["rows"]] == [1, 100, 1]
        assert [len(rows["points"][0]) for rows in data["rows"]] == [n - 1, n - 100, 99]
        assert len(data["colourings"]) == colours
        assert all(len(colouring["values"]) == n for colouring in data["colourings"])
    angle = np.array(json.loads(json.dumps(data["colourings"][0]["values"])))
    np.testing.assert_array_equal(angle, np.arange(n))


def test_every_stored_figure_gives_finite_small_data():
    kinds = set()
    for name in STORE.names():
        model = judged_model(STORE, name)
        assert model is not None
        for judged in model.findings:
            if judged.measured is None:
                continue
            for figure in judged.finding.figures(judged.measured):
                if figure.interactive is None:
                    continue
                try:
                    data = figure.interactive().as_json()
                except NotMeasuredError:  # of older code, which lacks a number: no page has such a figure
                    assert "-step-" in name
                    continue
                kinds.add((judged.finding.name, data["kind"]))
                assert len(json.dumps(data, allow_nan=False, ensure_ascii=False)) < 400_000
                for group in data.get("groups", []):
                    names = group["names"] or group["ids"]  # of some models, tokens have no names
                    assert len(group["ids"]) == len(group["x"]) == len(group["y"]) == len(names)
    assert kinds >= {("helix", "curve"), ("token_svd", "scatter"), ("outliers", "scatter"), ("zero_layer", "scatter")}


def test_names_are_those_of_the_tokens(minilm):
    vocabulary = load_vocabulary(in_package(minilm), MINILM_SIZE)
    measured = judged_finding(STORE, "all-minilm-l6-v2", TOKEN_SVD).measured
    assert measured is not None
    figure = next(f for f in TOKEN_SVD.figures(measured) if f.name == "svd-plane")
    for group in figure.interactive().as_json()["groups"]:
        assert group["names"] == [vocabulary.readable[i] for i in group["ids"]]
