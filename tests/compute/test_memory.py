"""What a job will need is told from shapes alone, is enough, and is not far too much."""

import os
import subprocess
import sys
from math import prod

import pytest

from generators.base import allocation
from generators.compute import memory
from generators.compute.running import RunSettings
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from tests.checkpoints import Sizes, tensors_of, write_checkpoint
from tests.compute.harness import opened_in
from tests.conftest import ROOT
from tests.runner.models import KINDS, write_tokenizer

SIZES = Sizes(n_layer=2, n_head=2, d_model=32, n_ctx=64, vocab_size=3000)
BY_NAME = {finding.name: finding for finding in FINDINGS}
LARGER = Sizes(n_layer=2, n_head=8, d_model=512, n_ctx=256, vocab_size=30_000)
TOO_MUCH = 2.5  # times what is taken


E, P = 3000 * 32, 64 * 32  # numbers in the embeddings of tokens and positions


def of_numbers(count):
    """Return the bytes that a finding takes of the two largest tensors, the stream and all tokens."""
    return int(1.5 * 4 * count + 6 * 8 * 32**2 + 2048 * 3000)


@pytest.fixture
def folder(tmp_path):
    return write_checkpoint(tmp_path / "made-up", sizes=SIZES)


def test_what_is_needed_is_told_from_the_largest_tensors_without_reading_any(folder, monkeypatch):
    assert memory.to_measure(BY_NAME["helix"], opened_in(folder)) == memory.BASE + of_numbers(E + P)
    weights = [finding for finding in FINDINGS if RUN not in finding.needs]
    assert memory.to_plan(weights, opened_in(folder)) == memory.BASE + of_numbers(E)
    model = opened_in(folder)
    monkeypatch.setattr(type(model.files), "parts", lambda *arguments: pytest.fail("a tensor was read"))
    for finding in FINDINGS:
        assert memory.to_measure(finding, model) >= memory.BASE
    assert memory.to_plan(FINDINGS, model) >= memory.BASE


def test_a_finding_that_runs_needs_the_whole_model_and_its_batches(folder):
    write_tokenizer(folder, KINDS["gpt2"])
    numbers = sum(prod(tensor.shape) for tensor in tensors_of("gpt2", SIZES).values())
    weights = memory.to_measure(BY_NAME["helix"], opened_in(folder)) - memory.BASE
    batches = memory.BATCHES * memory.BATCH_BYTES
    assert of_numbers(P) < weights
    kept = 4 * memory.KEPT_WINDOWS * SIZES.n_ctx * (SIZES.n_layer + 2) * SIZES.d_model
    expected = memory.RUN_BASE + of_numbers(P) + int(1.5 * 4 * numbers) + batches + kept
    assert memory.to_measure(BY_NAME["stream"], opened_in(folder)) == expected
    assert memory.to_measure(
        BY_NAME["stream"], opened_in(folder, RunSettings(skip=True))
    ) == memory.BASE + of_numbers(P)


def test_what_is_absent_needs_nothing_and_more_tokens_need_more(tmp_path):
    folder = write_checkpoint(tmp_path / "partial", sizes=SIZES, without=("wpe.weight", "wte.weight"))
    assert memory.to_measure(BY_NAME["helix"], opened_in(folder)) == memory.BASE + of_numbers(0)
    needs = []
    for rows in (3000, 300_000):
        sizes = Sizes(n_layer=1, n_head=1, d_model=16, n_ctx=16, vocab_size=rows)
        model = opened_in(write_checkpoint(tmp_path / str(rows), sizes=sizes))
        needs.append(memory.to_measure(BY_NAME["outliers"], model))
    assert needs[1] - needs[0] == (300_000 - 3000) * (2048 + int(1.5 * 4) * 16)


PEAK = """
import sys
from pathlib import Path
from generators.compute.jobs import measure
from generators.compute.plan import plan
from generators.findings import FINDINGS
from tests.compute.harness import opened_in
from tests.torture.processes import most_memory

folder = Path(sys.argv[1])
opened = opened_in(folder, frequency="wordfreq")
planned = plan(next(each for each in FINDINGS if each.name == sys.argv[2]), opened)
opened.checkpoint.let_go()
print(measure(planned, opened, folder, lambda done: None).record.status, most_memory())
"""


@pytest.mark.parametrize("name", ["channels", "token_svd"])
def test_it_is_enough_and_not_far_too_much(tmp_path, name):
    folder = write_checkpoint(tmp_path / "larger", sizes=LARGER)
    estimate = memory.to_measure(BY_NAME[name], opened_in(folder, frequency="wordfreq"))
    command = [sys.executable, "-c", PEAK, folder, name]
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    status, peak = said.split()[-2:]
    assert status == "computed"
    assert int(peak) < estimate < TOO_MUCH * int(peak)


# Who runs a model keeps what arrays leave, also where the environment says to give it back

FAULTS = """
import resource
import numpy as np
from generators.base import allocation
{before}
np.ones(500_000).sum()
first = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    np.ones(500_000).sum()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - first)
"""


def faults(before: str) -> int:
    """Return how often a page was asked for anew while arrays of 4 MB came and went."""
    command = [sys.executable, "-c", FAULTS.format(before=before)]
    environment = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}
    return int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="it is about glibc's malloc")
def test_pages_are_kept():
    assert faults("") > 10 * faults("allocation.keep_freed_memory(2**24)")


def test_another_c_library_is_no_trouble(monkeypatch):
    monkeypatch.setattr(allocation.ctypes, "CDLL", lambda name: object())
    allocation.keep_freed_memory(2**24)
    allocation.give_back_freed_memory()
