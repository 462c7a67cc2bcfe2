"""A finding measures more than it did: what is stored stays readable, and only what needs more is untested."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from typing_extensions import TypedDict, get_type_hints

from generators import findings as all_findings
from generators.checkpoint.registry import FolderSource, Model, Registry
from generators.compute.judged import judged_finding, read_metrics
from generators.compute.records import FindingRecord
from generators.compute.results import Store
from generators.findings import FINDINGS
from generators.findings.contract import Figure
from generators.findings.gains.measure import GainsIntervals, GainsMetrics
from generators.findings.growing import Lacking, lacking, with_nulls
from generators.findings.judging import Evidence, NotMeasuredError, Rule, Untested
from generators.findings.measured import Interval, Measurements
from generators.maths.channels import ConsistentChannel
from generators.site import pages
from generators.site import words as templates
from generators.site.pages import render
from generators.site.staging import Staging
from tests.conftest import NO_FIGURE, ROOT, without_figures

GAINS = next(finding for finding in FINDINGS if finding.name == "gains")
STORE = Store(ROOT / "results")
MODELS = [name for name in STORE.names() if STORE.load(name, "gains")]
SENTENCE = "This number was not measured when the model was computed; compute it again with: atlas compute {}."


class GrownIntervals(GainsIntervals):
    layers_topped: Interval | None


class GrownChannel(ConsistentChannel):
    median_ratio: float | None


Grown = TypedDict(
    "Grown",
    {
        **get_type_hints(GainsMetrics),
        "typical_gain": float | None,
        "intervals": GrownIntervals,
        "consistent_channel": dict[str, GrownChannel | None],
    },
)


def of_the_channel(measured: Measurements[Any]) -> Evidence | Untested:
    found = measured.metrics["consistent_channel"]["ln2"]
    return Untested("no-channel") if found is None else Evidence(found.get("median_ratio"))


ASKING = {
    "top-level": lambda measured: Evidence(measured.metrics["typical_gain"]),
    "by-get": lambda measured: Evidence(measured.metrics.get("typical_gain")),
    "by-in": lambda measured: Evidence(1.0 if "typical_gain" in measured.metrics else None),
    "nested": lambda measured: Evidence(len(measured.metrics["intervals"]["layers_topped"] or ())),
    "all-of-them": lambda measured: Evidence(len([one for one in measured.metrics["intervals"].values() if one])),
    "copied": lambda measured: Evidence(len({**measured.metrics["intervals"]})),
    "column": lambda measured: Evidence(float(np.mean(measured.tables["norms"].column("mean_gain")))),
    "row": lambda measured: Evidence(next(row["mean_gain"] for row in measured.tables["norms"].named())),
    "table": lambda measured: Evidence(len(measured.tables["means"].rows)),
    "array": lambda measured: Evidence(float(measured.arrays["mean_gain"].mean())),
}
REASONS = {"no-channel": "No channel."}
NEW = tuple(
    Rule(name, "It is so.", "the number", "There is one.", id=f"new-{name}", test=test, holds=2.0, untested=REASONS)
    for name, test in {**ASKING, "channel": of_the_channel}.items()
)


def draw_new(metrics: Any) -> float:
    return float(metrics["typical_gain"])


def grown_figures(measured: Measurements[Any]) -> list[Figure]:
    return [Figure("gains-new", "The new number", partial(draw_new, measured.metrics)), *GAINS.figures(measured)]


GROWN = replace(GAINS, metrics=Grown, rules=(*GAINS.rules, *NEW), figures=grown_figures)


@pytest.mark.parametrize("model", MODELS)
def test_stored_verdicts_stay_and_new_claims_are_untested(model):
    before, now = judged_finding(STORE, model, GAINS), judged_finding(STORE, model, GROWN)
    assert now.record.status == before.record.status
    assert now.claims[: len(before.claims)] == before.claims
    asked = {claim.id.removeprefix("new-"): claim for claim in now.claims[len(before.claims) :]}
    if before.measured is None:
        return
    assert {(asked[name].verdict, asked[name].answer) for name in ASKING} == {("untested", SENTENCE.format(model))}
    there = before.measured.metrics["consistent_channel"]["ln2"] is not None
    assert asked["channel"].answer == (SENTENCE.format(model) if there else "No channel.")


def test_absent_numbers_are_published_as_null_and_named():
    assert len([name for name in MODELS if judged_finding(STORE, name, GAINS).measured]) > 5
    record = judged_finding(STORE, MODELS[0], GROWN).record
    assert record.metrics["typical_gain"] is None
    assert record.metrics["intervals"]["layers_topped"] is None
    assert {("typical_gain",), ("intervals", "layers_topped")} <= set(record.not_measured)
    assert FindingRecord.model_validate_json(record.model_dump_json()) == record
    assert "not_measured" not in judged_finding(STORE, MODELS[0], GAINS).record.model_dump()


def test_the_models_page_shows_all_but_what_needs_the_number(tmp_path, monkeypatch):
    changed = tuple(GROWN if finding is GAINS else finding for finding in FINDINGS)
    for room in (all_findings, pages, templates):
        monkeypatch.setattr(room, "FINDINGS", changed)
    without_figures(monkeypatch)
    name = MODELS[0]
    registry = Registry(models=(Model(name=name, title=name, sources=(FolderSource(folder=tmp_path),)),))
    results = tmp_path / "results"
    results.mkdir()
    (results / name).symlink_to(STORE.root / name)
    site = Staging(tmp_path / "pages", tmp_path / "cache")
    monkeypatch.setattr("generators.site.pictures._svg", only_what_can_be_drawn)
    rendered = render(registry, Store(results), site, tmp_path / "src", whole=False)
    assert rendered.damaged == []
    page = (site.folder / f"models/{name}.md").read_text("utf-8")
    assert SENTENCE.format(name) in page
    assert "gains-new" not in page
    assert f"figures/{name}/gains-ln2.svg" in page
    document = json.loads((site.folder / f"data/{name}/findings.json").read_text("utf-8"))
    assert document["findings"]["gains"]["metrics"]["typical_gain"] is None


def only_what_can_be_drawn(key: str, made: Any, staging: Staging) -> bytes:
    if getattr(made, "func", None) is draw_new:
        made()
    return NO_FIGURE


def test_absent_deep_inside():
    stored = {"layers": [{"a": 1}, {"a": 2, "b": 3}], "other": [1, 2]}
    filled = {**stored, "layers": [{"a": 1, "b": None}, stored["layers"][1]]}
    assert with_nulls(stored, [("layers", 0, "b")]) == filled
    first, second = lacking(stored, [("layers", 0, "b")], "No.")["layers"]
    assert isinstance(first, Lacking)
    assert (list(first), len(first), first["a"], second) == (["a", "b"], 2, 1, stored["layers"][1])
    with pytest.raises(NotMeasuredError, match=r"No\."):
        first.get("b")


class Row(TypedDict):
    a: float
    b: float


def test_absent_numbers_are_found_in_rows_by_their_type():
    stored = [{"a": 1.0, "b": 2.0}, {"a": 1.0}]
    assert read_metrics(list[Row], stored) == (stored, ((1, "b"),))
    for other in ({"a": "x"}, {"a": None, "b": 1.0}, {"a": 1.0, "c": 2.0}):  # a renamed one is absent and unknown
        with pytest.raises(ValidationError):
            read_metrics(list[Row], [other])


def test_results_stored_with_the_new_numbers_are_judged_by_them(tmp_path):
    stored, arrays = STORE.load(MODELS[0], "gains")
    metrics = with_nulls(stored.metrics, judged_finding(STORE, MODELS[0], GROWN).record.not_measured)
    store = Store(Path(tmp_path))
    store.save_model(STORE.model(MODELS[0]))
    store.save_finding(MODELS[0], stored.model_copy(update={"metrics": {**metrics, "typical_gain": 3.0}}), arrays)
    claims = {claim.id: claim for claim in judged_finding(store, MODELS[0], GROWN).claims}
    assert claims["new-top-level"].verdict == claims["new-by-get"].verdict == "holds"
    assert claims["new-nested"].verdict == "fails"  # it was measured: there is none
    assert claims["new-column"].answer == SENTENCE.format(MODELS[0])
