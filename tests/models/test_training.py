"""How the atlas's own model is trained: the same each time, stopped or not. It loads as the family's members do.

These need PyTorch; `make test-training` runs them in `.venv-train`.
"""

import json
import signal
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.models.conftest import HELD_OUT, KILLED, MODULES, NEVER
from tests.models.conftest import trained as trained_by

pytestmark = pytest.mark.training

STEPS = 10
# Notes, measures and saves every 5 steps, so that 10 steps have a middle.
CODE = f"""{KILLED}
from models.training.stdlib_gpt2 import train
run.NOTE_EVERY = run.MEASURE_EVERY = run.SAVE_EVERY = 5
train.xz_bits_per_byte = lambda *texts: 1.0  # seconds and much memory, and tested without PyTorch
train.typer.run(train.main)
"""


@pytest.fixture(scope="module")
def train(library, tmp_path_factory):
    """Return a function that runs the training; it gives the process's outcome and where the model is."""
    pytest.importorskip("torch", reason="PyTorch isn't installed here: make test-training")

    def run(work: Path, *options: object, kill_at: int = NEVER):
        out = tmp_path_factory.mktemp("out")
        given = ("--steps", STEPS, "--threads", 1, "--library", library, "--work", work, "--out", out)
        return trained_by(CODE, kill_at, *given, *options), out

    return run


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def trained(train, work) -> Path:
    run, out = train(work)
    assert run.returncode == 0, run.stderr
    return out


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_all_files_of_the_model_are_written(trained):
    record = json.loads((trained / "training.json").read_text())
    assert {path.name for path in trained.iterdir()} == {
        *("README.md", "config.json", "generation_config.json", "held_out_tokens.npy", "loss-dark.svg"),
        *("loss.svg", "model.safetensors", "token_counts.npy", "tokenizer.json", "tokenizer_config.json"),
        "training.json",
    }
    assert [step for step, _ in record["losses"]] == [5, STEPS]
    assert record["losses"][1][1] < record["losses"][0][1]
    assert record["corpus"]["files"] == {"trained": len(MODULES), "held_out": 1, "tokenizer_only": 1}
    assert (trained / "model.safetensors").stat().st_mode & 0o044 == 0o044  # others can read it
    tensors = load_file(trained / "model.safetensors")
    assert {values.dtype for values in tensors.values()} == {np.dtype(np.float16)}
    assert all(np.isfinite(values).all() for values in tensors.values())


def test_stopped_or_not_and_with_a_trajectory_or_without_the_model_is_the_same_to_the_bit(train, trained, tmp_path):
    trajectory = tmp_path / "trajectory"
    run, out = train(tmp_path / "work", "--trajectory", trajectory, kill_at=7)
    assert (run.returncode, files(out)) == (-signal.SIGKILL, {})
    assert {path.name for path in trajectory.iterdir()} == {f"step-{step}" for step in range(8)}
    before = files(trajectory / "step-6")
    run, out = train(tmp_path / "work", "--trajectory", trajectory)
    assert run.returncode == 0, run.stderr
    assert "Going on from step 5." in run.stderr
    assert {path.name for path in trajectory.iterdir()} == {f"step-{step}" for step in range(STEPS + 1)}
    assert files(trajectory / "step-6") == before
    assert files(out) == files(trained)
    last = files(trajectory / f"step-{STEPS}")
    assert last == {name: files(trained)[name] for name in last}
    assert files(trajectory / "step-0")["model.safetensors"] != last["model.safetensors"]


def test_the_held_out_loss_is_that_of_a_plain_loop(trained):
    import torch
    from tokenizers import Tokenizer
    from transformers import GPT2LMHeadModel

    from models.training.corpus import encode
    from models.training.losses import held_out_loss, token_losses

    torch.set_num_threads(1)
    model = GPT2LMHeadModel.from_pretrained(trained, dtype=torch.float32)
    tokenizer = Tokenizer.from_file(str(trained / "tokenizer.json"))
    text = (Path(sysconfig.get_path("stdlib")) / HELD_OUT).read_text("utf-8")
    ids = encode({HELD_OUT: text}, tokenizer)[:60]
    n_ctx, half, total = 16, 8, 0.0
    with torch.no_grad():
        for i in range(1, len(ids)):
            begin = 0 if i < n_ctx else (i // half - 1) * half
            logits = model(torch.from_numpy(ids[begin:i])[None]).logits[0, -1]
            total -= torch.log_softmax(logits, -1)[ids[i]].item()
    assert held_out_loss(model, ids, n_ctx, "cpu") == pytest.approx(total / (len(ids) - 1), rel=1e-5)
    losses = token_losses(model, ids, n_ctx, "cpu")
    assert losses.shape == (len(ids) - 1,)
    assert losses.sum() == pytest.approx(total, rel=1e-5)


def test_the_checkpoint_of_another_recipe_is_refused_with_a_sentence(train, trained, work):
    run, out = train(work, "--seed", 7)
    assert run.returncode == 2
    assert "belongs to another recipe, corpus or version of the libraries: remove it, or name" in run.stderr
    assert "Traceback" not in run.stderr
    assert files(out) == {}
