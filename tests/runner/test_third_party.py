"""Small models by others, as their READMEs say: what they write, and how well they know it."""

from functools import cache

import numpy as np
import pytest
from tokenizers import Tokenizer

from generators.runner import own_samples
from generators.runner.texts import window_length
from tests.compute.harness import opened_in
from tests.conftest import ROOT
from tests.runner.models import joined

THIRD_PARTY = ROOT / "models" / "third-party"
# As the page of llama2.c shows it.
STORY = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. "
    "One day, she saw a big, red ball."
)


@cache
def run(name):
    return opened_in(THIRD_PARTY / name).run


def greedy(run, ids, count):
    for _ in range(count):
        ids = [*ids, int(joined(run.logits, np.array([ids], np.int32))[0, -1].argmax())]
    return ids


def test_stories260k_goes_on_as_llama2_c_shows():
    tokenizer = Tokenizer.from_file(str(THIRD_PARTY / "stories260k" / "tokenizer.json"))
    written = tokenizer.decode(greedy(run("stories260k"), tokenizer.encode("Once upon a time").ids, 60))
    assert written.startswith(STORY)


@pytest.mark.parametrize(
    ("name", "loss", "apart"),
    [("stories260k", 1.31, 0.03), ("gpt2-basic-486", 0.02, 0.01), ("gpt2-basic-chat", 0.46, 0.04)],
)
def test_losses_on_own_samples_are_those_that_the_readmes_say(name, loss, apart, monkeypatch):
    monkeypatch.setattr(own_samples, "MOST_SAMPLES", 64)
    model = run(name)
    assert model.text.name == "the model's own samples"
    windows = model.text.windows(999, window_length(model.architecture.n_ctx), 0)
    assert model.loss(windows).per_window().mean() == pytest.approx(loss, abs=apart)
