"""What a program is told of models that were computed: skipped where nothing is wrong here, failed otherwise."""

import json

import pytest

from generators.base.errors import InputError, WeightsUnavailableError
from generators.checkpoint.registry import FolderSource, HubSource, Model
from generators.compute.jobs import Failed
from generators.compute.records import ModelRecord, SourceRecord
from generators.compute.results import ResultsHeldError
from generators.compute.summary import Outcome, Summary

HUB, HERE = HubSource(hub="owner/m"), FolderSource(folder="m")
REFUSED = InputError("The family has no such thing.")
AWAY = WeightsUnavailableError("Its owner grants access.")
STORED = {
    "family": "gpt2",
    **dict.fromkeys(("n_layer", "n_head", "d_model", "n_ctx", "vocab_size"), 1),
    "causal": True,
    "post_norm": False,
    "source": SourceRecord(kind="hub", place="owner/m"),
}


@pytest.mark.parametrize(
    ("source", "is_stored", "end", "came_to"),
    [
        (HUB, False, AWAY, "skipped"),
        (HUB, True, AWAY, "skipped"),
        (HUB, False, REFUSED, "skipped"),
        (HUB, True, REFUSED, "failed"),  # it was read before
        (HERE, False, REFUSED, "failed"),
        (HUB, False, Failed("KeyError: 1", "a traceback"), "failed"),
        (HUB, False, ResultsHeldError("Another run writes them."), "failed"),
        (HUB, False, Outcome("m", (), (), {"gains": "ZeroDivisionError"}), "failed"),
        (HUB, False, Outcome("m", ("gains",), (), {}), None),
    ],
)
def test_a_bug_is_never_skipped(store, source, is_stored, end, came_to):
    model, summary = Model(name="m", title="M", sources=(source,)), Summary(store, print, named=True)
    if is_stored:
        store.save_model(ModelRecord(name="m", title="M", **STORED))
    summary.add(model, end)
    said = json.loads(summary.as_json())
    assert said["skipped"] == ({"m": str(end)} if came_to == "skipped" else {})
    assert said["failed"] == (["m"] if came_to == "failed" else [])
