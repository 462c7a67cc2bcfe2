"""Losses of a series: read from records of training, with intervals whose values are known; or as measured here."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from generators.base import notices
from generators.checkpoint.registry import FolderSource, Model
from generators.findings.position_use import FINDING
from generators.site.held_out import SeriesLoss, losses, over_windows
from models.training.stdlib_family.card import interval

RECORD = {"held_out_loss": 2.0, "held_out_window_losses": [1.0, 2.0, 3.0], "corpus": {"sha256": "a"}, "more": 1}


def model(folder, record=None, name="tiny"):
    folder = folder / name
    folder.mkdir()
    if record is not None:
        (folder / "training.json").write_text(record if isinstance(record, str) else json.dumps(record))
    return Model(name=name, title=name, sources=(FolderSource(folder=folder),))


def measured(mean, text="held-out", unit="nats per token"):
    metrics = {"base": {"mean": mean, "low": mean - 1, "high": mean + 1}, "unit": unit}
    metrics["ran"] = {"text": text, "text_sha256": text}
    finding = SimpleNamespace(finding=FINDING, measured=SimpleNamespace(metrics=metrics))
    return SimpleNamespace(place=mean, judged=SimpleNamespace(findings=[finding]))


def test_an_interval_is_of_known_values():
    found = over_windows("a", np.array([1.0, 2.0, 3.0, 4.0]))
    error = 1.96 * np.sqrt(5 / 3) / 2  # variance 5/3, four windows
    assert found.mean == 2.5
    assert found.interval == pytest.approx((2.5 - error, 2.5 + error))
    assert over_windows("a", np.array([3.0])) == SeriesLoss("a", 3.0, None)
    same = over_windows("a", np.full(5, 2.0))
    assert (same.mean, same.interval) == (2.0, (2.0, 2.0))


def test_the_interval_is_that_of_the_familys_card():
    values = np.random.default_rng(0).normal(3, 0.5, 40)
    card, page = interval(values), over_windows("a", values)
    assert (page.mean, *page.interval) == (card.mean, card.low, card.high)


def test_losses_are_read_window_by_window(tmp_path):
    other = {**RECORD, "held_out_loss": 2.5, "held_out_window_losses": [1.5, 2.5, 3.5]}
    models = [
        ("a", model(tmp_path, RECORD, "a")),
        ("b", model(tmp_path, other, "b")),
        ("c", model(tmp_path, None, "c")),
    ]
    found = losses(models, [])
    assert [row.place for row in found.rows] == ["a", "b"]
    assert found.rows[0].interval[0] < 2 < found.rows[0].interval[1]


def test_a_record_without_windows_has_a_loss_without_an_interval(tmp_path):
    models = [(name, model(tmp_path, {"held_out_loss": 2.25, "corpus": {"sha256": "a"}}, name)) for name in "ab"]
    assert losses(models, []).rows[0] == SeriesLoss("a", 2.25, None)


def test_losses_on_other_texts_are_not_set_side_by_side(tmp_path):
    other = {**RECORD, "corpus": {"sha256": "b"}}
    models = [("a", model(tmp_path, RECORD, "a")), ("b", model(tmp_path, other, "b"))]
    assert losses(models, []) is None
    assert losses([], [measured(2.0), measured(3.0, text="another")]) is None
    assert losses([], [measured(2.0), measured(3.0, unit="bits")]) is None


def test_without_records_losses_are_those_measured_here(tmp_path):
    found = losses([("a", model(tmp_path))], [measured(2.0), measured(3.0)])
    assert found.rows == (SeriesLoss(2.0, 2.0, (1.0, 3.0)), SeriesLoss(3.0, 3.0, (2.0, 4.0)))
    assert (found.text, found.unit) == ("held-out", "nats per token")


def test_one_model_is_nothing_to_compare(tmp_path):
    assert losses([("a", model(tmp_path, RECORD))], [measured(2.0)]) is None
    assert losses([], []) is None


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ("{", "can't be read"),
        ("[" * 100_000, "can't be read"),
        ("[1]", "is no record of a training"),
        ({"held_out_loss": "low", "corpus": {"sha256": "a"}}, "held_out_loss"),
        ({"held_out_loss": 1.0}, "corpus"),
        ('{"held_out_loss": NaN, "corpus": {"sha256": "a"}}', "held_out_loss"),
        ('{"held_out_loss": 1e400, "corpus": {"sha256": "a"}}', "held_out_loss"),
    ],
)
def test_a_damaged_record_is_a_sentence_and_costs_its_own_loss_alone(tmp_path, record, why):
    models = [(n, model(tmp_path, RECORD if n != "b" else record, n)) for n in "abc"]
    with notices.heard_by((said := []).append):
        assert [row.place for row in losses(models, []).rows] == ["a", "c"]
    (sentence,) = said
    assert "training.json" in sentence and why in sentence and sentence.endswith("b has no loss.")
