"""A complete checkpoint of GPT-2's shape goes the way of any model of the hub, those that run it included."""

import shutil

import pytest
import torch
import transformers

from generators.compute.results import Store
from generators.compute.running import CUT_TO
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from tests.conftest import ROOT

RUNNING = [finding.name for finding in FINDINGS if RUN in finding.needs]
LITTLE = 0.001  # minutes: the fewest windows there are


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory, gpt2_weights):
    """Write a complete checkpoint with random weights and GPT-2's tokenizer."""
    folder = tmp_path_factory.mktemp("hub") / "made-up"
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_positions=64, n_embd=64, n_layer=2, n_head=1))
    with torch.no_grad():
        model.transformer.wpe.weight.mul_(10)  # as large beside the tokens as trained ones are
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt"):
        shutil.copy(gpt2_weights / name, folder)
    return folder


def test_all_that_runs_is_computed_from_its_folder(atlas, tmp_path, checkpoint):
    only = [part for name in RUNNING for part in ("--only", name)]
    run = atlas(
        *("compute", checkpoint, "--registry", ROOT / "models.yml", "--results", tmp_path / "results"),
        *("--budget", LITTLE, *only),
    )
    assert run.code == 0, run.err
    store = Store(tmp_path / "results")
    records = {name: store.finding("made-up", name) for name in RUNNING}
    not_computed = {name: record.reason for name, record in records.items() if record.status != "computed"}
    assert not_computed == {
        "rotary_use": "This model doesn't rotate queries and keys.",
        "rotation_check": "This model doesn't rotate queries and keys.",
        "undertrained": "No tokens lie in one spot, so nothing in the embedding says which were never trained.",
    }
    computed = {name: record for name, record in records.items() if name not in not_computed}
    sequences = computed["induction"].metrics["ran"]["sequences"]
    windows = {name: record.metrics["ran"]["windows"] for name, record in computed.items() if name != "induction"}
    assert (sequences, set(windows.values())) == (8, {8})
    assert all(CUT_TO in record.run for record in computed.values())
    base = records["position_use"].metrics["base"]["mean"]
    assert 10 < base < 12  # log 50257 is 10.8: it has learned nothing
