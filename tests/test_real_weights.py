"""What the command computes of real weights is what git keeps; `tests/real_weights` looks at the numbers."""

import math
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.compute.judged import judged_model
from generators.compute.records import ModelFindings
from generators.compute.results import Store
from generators.compute.verify import verify
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from tests.conftest import ROOT
from tests.real_weights.measured import COMPARED

pytestmark = pytest.mark.real_weights

# Correlations are taken in float32: near zero, another kind of processor moves them by some 1e-6.
RTOL, ATOL = 1e-4, 2e-6
NEAR_TIES = 4  # heads whose flat kernels may peak elsewhere on another machine
WPE_SHA256 = "29c69587e2af826b7c159c38620a32e549a925e6d9a0dc37cb563f377f5be772"


def computed(folder: Path, model: str, *options: str | Path) -> Store:
    """Run `atlas compute` in a folder of its own with the registry of this repository."""
    shutil.copy(ROOT / "models.yml", folder)
    code = "from generators.cli import main; main()"
    subprocess.run([sys.executable, "-c", code, "compute", model, *options], cwd=folder, check=True)
    return Store(folder / "results")


@pytest.fixture(scope="module")
def gpt2(gpt2_weights, tmp_path_factory) -> Store:
    return computed(tmp_path_factory.mktemp("gpt2"), "gpt2", "--models-dir", gpt2_weights.parent)


ANEW = "anchor"  # of the findings that run the model; the others take minutes
LONG = [finding.name for finding in FINDINGS if RUN in finding.needs and finding.name != ANEW]


@pytest.fixture(scope="module")
def minilm_results(minilm, tmp_path_factory) -> Store:
    """Compute all but what takes minutes and is kept under the very key that today's code would give it.

    With another key it is computed anew.
    """
    folder, name = tmp_path_factory.mktemp("minilm"), "all-minilm-l6-v2"
    (folder / "results" / name).mkdir(parents=True)
    for finding in LONG:
        for stored in (ROOT / "results" / name).glob(f"{finding}.*"):
            shutil.copy(stored, folder / "results" / name)
    return computed(folder, name, "--budget", "60")  # as what git keeps


@cache
def published(root: Path, model: str) -> ModelFindings:
    judged = judged_model(Store(root), model)
    assert judged is not None, f"{root / model} isn't there; make it with: atlas compute {model}"
    assert judged.damaged == []
    return judged.published()


def test_the_digest_of_gpt2s_positions_is_the_published_one(gpt2):
    tensor = published(gpt2.root, "gpt2").tensors["position_embedding"]
    assert (tensor.name, tensor.shape, tensor.dtype, tensor.sha256) == ("wpe.weight", (1024, 768), "F32", WPE_SHA256)


# Against what git keeps

STORED = Store(ROOT / "results")


def differences(now: Any, stored: Any, place: str = "") -> Iterator[str]:
    """Yield where two documents differ by more than rounding."""
    if isinstance(now, dict) and isinstance(stored, dict):
        for key in sorted(now.keys() | stored.keys()):
            if key in now and key in stored:
                yield from differences(now[key], stored[key], f"{place}.{key}")
            else:
                yield f"{place}.{key} is in one only"
    elif isinstance(now, list | tuple) and isinstance(stored, list | tuple) and len(now) == len(stored):
        for index, pair in enumerate(zip(now, stored, strict=True)):
            yield from differences(*pair, f"{place}[{index}]")
    elif isinstance(now, float) and isinstance(stored, float):
        if not math.isclose(now, stored, rel_tol=RTOL, abs_tol=ATOL):
            yield f"{place}: {now} was {stored}"
    elif now != stored or type(now) is not type(stored):
        yield f"{place}: {now} was {stored}"


def split_ties(found: list[str]) -> tuple[list[str], list[str]]:
    """Return differences other than in where a kernel peaks, and those."""
    peaks = [line for line in found if ".peak_offset" in line]
    return [line for line in found if line not in peaks], peaks


@pytest.fixture(params=COMPARED)
def now_and_stored(request) -> tuple[ModelFindings, ModelFindings]:
    store = request.getfixturevalue("gpt2" if request.param == "gpt2" else "minilm_results")
    return published(store.root, request.param), published(STORED.root, request.param)


def test_metrics_are_those_kept_in_git(now_and_stored):
    now, stored = (
        {name: (record.status, record.metrics) for name, record in found.findings.items()} for found in now_and_stored
    )
    others, peaks = split_ties(list(differences(now, stored)))
    assert others == []
    assert len(peaks) <= NEAR_TIES


def test_verdicts_are_those_kept_in_git(now_and_stored):
    now, stored = ({claim.id: claim.verdict for claim in found.claims} for found in now_and_stored)
    assert now == stored


def test_tensors_are_those_kept_in_git(now_and_stored):
    now, stored = (found.tensors for found in now_and_stored)
    assert now == stored


def test_what_git_keeps_would_not_be_computed_again(now_and_stored):
    now, stored = ({name: record.key for name, record in found.findings.items()} for found in now_and_stored)
    assert now == stored
    assert not any(record.older_code for found in now_and_stored for record in found.findings.values())


def test_arrays_are_kept_of_findings_that_have_some(now_and_stored):
    _, stored = now_and_stored
    model = stored.model.name
    with_arrays = [name for name in stored.findings if (one := STORED.finding(model, name)) and one.arrays_sha256]
    assert len(with_arrays) >= 3
    for name in with_arrays:
        arrays = STORED.arrays(model, STORED.finding(model, name))
        assert arrays
        assert all(values.size for values in arrays.values())
        numbers = [values for values in arrays.values() if values.dtype.kind != "U"]  # the others are tokens' names
        assert not any(np.isinf(values).any() for values in numbers)


def test_what_git_keeps_is_what_was_stored():
    assert {*COMPARED} <= {*STORED.names()}
    assert list(verify(STORED)) == []


def test_differences_are_noticed():
    """The comparison above can fail."""
    stored = {"a": [1.0, 2], "b": {"c": None, "d": True}}
    assert list(differences(stored, stored)) == []
    assert list(differences({**stored, "a": [1.00001, 2]}, stored)) == []
    assert list(differences({**stored, "a": [1.001, 2]}, stored)) == [".a[0]: 1.001 was 1.0"]
    assert list(differences({**stored, "a": [1.0]}, stored)) == [".a: [1.0] was [1.0, 2]"]
    assert list(differences({**stored, "b": {"c": 0.0, "d": True}}, stored)) == [".b.c: 0.0 was None"]
    assert list(differences({"a": stored["a"]}, stored)) == [".b is in one only"]
