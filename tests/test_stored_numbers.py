"""Findings measured anew give what git keeps: a number that moves under an unchanged version is named here.

Findings about weights are measured here; `make stored` measures those that run a model, which takes minutes.
"""

import math
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from generators.base.plain import plain
from generators.checkpoint.registry import load_registry
from generators.checkpoint.sources import Places
from generators.compute.judged import judged_model
from generators.compute.plan import Opened, inputs, open_model, plan
from generators.compute.records import StoredFinding, table_records
from generators.compute.results import Store
from generators.compute.verify import verify
from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.findings.inputs import RUN, NotApplicableError
from tests.conftest import MODELS_DIRS, ROOT

STORED = Store(ROOT / "results")
PUBLISHED = ("gpt2", "openai-gpt")  # real tables, too large to ship
MODELS = ("stdlib-gpt2", "stdlib-rotary", "all-minilm-l6-v2", *PUBLISHED)  # a table, rotations, an encoder
WEIGHTS = [finding for finding in FINDINGS if RUN not in finding.needs]
# Of each number's scale. Float32 products differ by 1e-7 from one instruction set to the next, and a figure's arrays
# are stored in it; half precision has three digits.
TOLERANCE, ARRAYS, HALVES = 1e-6, 1e-5, 2e-3
# The scale of these is 1, however small they are: correlations, shares, and what chance gives for them.
OF_SCALE_ONE = re.compile(r"rho|correlation|dials_down|share|error|overlap|cosine")
# Areas under a curve are shares of pairs of tokens: rounding of scores in float32 exchanges a few pairs in a million.
OF_PAIRS = re.compile(r"\.auc\.|\.(chance|intervals)\.plane\b")
PLANES = ("planes",)  # without a first axis: only lengths are compared
LONG_S = 36_000.0
ABSENT = "absent"
THREADS = int(os.environ["OPENBLAS_NUM_THREADS"])
WPE_SHA256 = "29c69587e2af826b7c159c38620a32e549a925e6d9a0dc37cb563f377f5be772"
Numbers = dict[str, Any]  # by path


@cache
def opened(name: str) -> Opened:
    model = load_registry(ROOT / "models.yml").find(name)
    assert model is not None
    return open_model(model, Places(MODELS_DIRS))


def measured(finding: Finding[Any], name: str) -> dict[str, Any] | None:
    """Measure a finding anew, in the form in which it is stored; None where the model has no such thing."""
    try:
        with threadpool_limits(THREADS):
            found = finding.measure(inputs(finding, opened(name)))
    except NotApplicableError:
        return None
    tables = {name: [list(row) for row in table.rows] for name, table in table_records(found).items()}
    return {"metrics": plain(found.metrics), "tables": tables, "arrays": found.arrays}


def measured_run(finding: Finding[Any], name: str) -> dict[str, Any] | None:
    opened(name).run.begin(LONG_S)
    return measured(finding, name)


def stored(record: StoredFinding, name: str) -> dict[str, Any]:
    tables = {key: [list(row) for row in table.rows] for key, table in record.tables.items()}
    return {"metrics": record.metrics, "tables": tables, "arrays": STORED.arrays(name, record)}


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def scales(numbers: Numbers) -> dict[str, float]:
    """Return the largest size that a number has anywhere in its list or column, by its path without places."""
    found: dict[str, float] = defaultdict(float)
    for path, value in numbers.items():
        if isinstance(value, float):
            kind = without_places(path)
            found[kind] = max(found[kind], abs(value), float(bool(OF_SCALE_ONE.search(kind))))
    return found


def without_places(path: str) -> str:
    return re.sub(r"\[\d+\]", "[]", path)


def differences(now: dict[str, Any], before: dict[str, Any]) -> Iterator[tuple[float, str]]:
    """Yield by how much numbers differ, as shares of their scales, and where; other values do by infinity."""
    for part in ("metrics", "tables"):
        ours, theirs = dict(leaves(now[part])), dict(leaves(before[part]))
        scale = scales(theirs)
        for path in ours.keys() | theirs.keys():
            one, other = ours.get(path, ABSENT), theirs.get(path, ABSENT)
            share = 0.0 if one == other and type(one) is type(other) else math.inf
            if share and isinstance(one, float) and isinstance(other, float) and scale[without_places(path)]:
                share = abs(one - other) / scale[without_places(path)]
            if share:
                yield share, f"{part}{path}: {one} was {other}"


def moved(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """Return a line for everything that differs by more than a share of its scale."""
    lines = [
        line for share, line in differences(now, before) if share > (ARRAYS if OF_PAIRS.search(line) else TOLERANCE)
    ]
    lines += [f"array {name} is in one only" for name in now["arrays"].keys() ^ before["arrays"].keys()]
    both = now["arrays"].keys() & before["arrays"].keys()
    lines += [f"array {name}" for name in both if not same(name, now["arrays"][name], before["arrays"][name])]
    return sorted(lines)


def same(name: str, one: np.ndarray, other: np.ndarray) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind != "f":
        return bool((one == other).all())
    a, b = (side.astype(np.float64) for side in (one, other))
    if name in PLANES:
        a, b = (np.hypot(side[:, 0::2], side[:, 1::2]) for side in (a, b))
    scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    tolerance = HALVES if one.dtype == np.float16 else ARRAYS
    return bool(np.allclose(a, b, rtol=0, atol=tolerance * scale, equal_nan=True))


@pytest.fixture(params=MODELS)
def model(request) -> str:
    name: str = request.param
    if name == "all-minilm-l6-v2":
        request.getfixturevalue("minilm")
    if name in PUBLISHED and not any((folder / name / "model.safetensors").is_file() for folder in MODELS_DIRS):
        pytest.skip(f"no real {name}: ATLAS_MODELS names no folder with it")
    return name


@pytest.mark.real_weights
@pytest.mark.parametrize("finding", WEIGHTS, ids=lambda finding: finding.name)
def test_a_number_that_moves_raises_its_version(finding, model):
    record, planned = STORED.finding(model, finding.name), plan(finding, opened(model))
    assert record is not None
    assert record.key is None or (planned.key, planned.tensors) == (record.key, record.tensors)
    if record.status == "missing" or (record.status == "not_applicable" and record.key is None):
        assert planned.reason == record.reason
        return
    assert record.version == finding.version, f"version {finding.version} is not computed: atlas compute {model}"
    now = measured(finding, model)
    assert (now is None) == (record.status == "not_applicable")
    if now is not None:
        lines = moved(now, stored(record, model))
        assert lines == [], f"{finding.name} of {model} moved under version {finding.version}"


def test_every_kind_of_difference_is_noticed():
    before = {
        "metrics": {"a": [1.0, 2e-9], "rho": 1e-3, "b": {"c": None, "d": True}},
        "tables": {"rows": [["x", 5.0], ["y", 1e-3]]},
        "arrays": {"planes": np.ones((2, 2), np.float32), "z": np.ones(3, np.float32)},
    }
    assert moved(before, before) == []
    turned = {**before["arrays"], "planes": np.array([[2**0.5, 0], [0, -(2**0.5)]], np.float32)}
    assert moved({**before, "arrays": turned}, before) == []
    for part, change, line in [
        ("metrics", {"a": [1.0 + 2e-6, 2e-9]}, "metrics.a[0]: 1.000002 was 1.0"),
        ("metrics", {"a": [1.0, 2e-6]}, "metrics.a[1]: 2e-06 was 2e-09"),
        ("metrics", {"rho": 1.002e-3}, "metrics.rho: 0.001002 was 0.001"),
        ("metrics", {"b": {"c": 0.0, "d": True}}, "metrics.b.c: 0.0 was None"),
        ("metrics", {"b": {"c": None, "d": 1}}, "metrics.b.d: 1 was True"),
        ("tables", {"rows": [["x", 5.0], ["z", 1e-3]]}, "tables.rows[1][0]: z was y"),
        ("arrays", {"z": np.ones(3)}, "array z"),
        ("arrays", {"z": np.array([1, 1, 1.1], np.float32)}, "array z"),
        ("arrays", {"planes": 2 * np.ones((2, 2), np.float32)}, "array planes"),
    ]:
        assert moved({**before, part: {**before[part], **change}}, before) == [line]


@pytest.mark.real_weights
def test_the_digest_of_gpt2s_positions_is_the_published_one(gpt2_weights):
    tensor = opened("gpt2").checkpoint.record("position_embedding")
    assert (tensor.name, tensor.shape, tensor.dtype, tensor.sha256) == ("wpe.weight", (1024, 768), "F32", WPE_SHA256)


def test_what_git_keeps_is_what_was_stored():
    assert {*MODELS} <= {*STORED.names()}
    assert list(verify(STORED)) == []
    for name in STORED.names():
        judged = judged_model(STORED, name)
        assert judged is not None
        assert judged.damaged == []
