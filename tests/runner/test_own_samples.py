"""Which text a model is run on, and what it writes where it can't read the shipped one."""

from dataclasses import replace

import numpy as np
import pytest
import transformers

from generators.checkpoint.sources.tensor_cache import TensorCache, default_folder
from generators.runner import CannotRunError, own_samples
from tests.compute.harness import opened_in
from tests.conftest import ROOT
from tests.runner.models import N

FEW = 4


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(own_samples, "MOST_SAMPLES", FEW)
    monkeypatch.setattr(own_samples, "MOST_WINDOWS", 8)


def without_cache(run, start, drawn):
    """Return what a model writes, from its logits on everything written so far."""
    rows = np.full((len(drawn), 1), start, np.int32)
    for column in drawn.T:
        last = []
        run.logits(rows, lambda _, logits, last=last: last.append(logits[:, -1].astype(np.float64)))
        scores = np.concatenate(last)
        upto = np.cumsum(np.exp(scores - scores.max(axis=1, keepdims=True)), axis=1)
        picked = (upto <= column[:, None] * upto[:, -1:]).sum(axis=1)
        rows = np.hstack([rows, picked[:, None].astype(np.int32)])
    return rows[:, 1:]


@pytest.mark.parametrize("name", ["gpt2", "llama", "bloom"])
def test_each_token_is_drawn_from_what_the_model_predicts_after_those_before(anew, name):
    run, drawn = anew(name), np.random.default_rng(0).random((3, 12))
    np.testing.assert_array_equal(run.write(1, drawn), without_cache(run, 1, drawn))


def test_a_model_that_cannot_read_the_shipped_text_is_run_on_its_own_samples(anew):
    run = anew("gpt2")
    assert (run.text.name, run.text.before) == (own_samples.NAME, (1,))
    windows = run.windows(99, 0)
    assert windows.ids.shape == (FEW, N)
    assert set(windows.ids[:, 0]) == {1}
    assert windows.inner == (1, N)
    assert len(run.text.ids) == FEW * (N - 1)


def test_the_first_samples_do_not_depend_on_how_many_there_are(anew, monkeypatch):
    four = anew("gpt2").own_samples.ids
    monkeypatch.setattr(own_samples, "MOST_SAMPLES", 2)
    np.testing.assert_array_equal(anew("gpt2").own_samples.ids, four[: 2 * (N - 1)])


def test_what_is_known_of_a_text_is_made_once(anew):
    made = []

    def remember(make):
        made.extend([] if made else [make()])
        return made[0]

    first, second = (anew("gpt2", remember=remember) for _ in range(2))
    assert first.text.sha256 == second.text.sha256
    assert len(made) == 1
    known = {**made[0], "loss": 0.5 * made[0]["entropy"]}
    assert anew("gpt2", remember=lambda make: known).text.name == first.shipped.name


def test_an_encoder_that_cannot_read_the_shipped_text_is_not_run_on_text(anew):
    with pytest.raises(CannotRunError, match=r"predicts tokens worse \(\d\.\d\d nats\) than their frequencies do"):
        _ = anew("bert").text


def test_the_start_token():
    config = transformers.GPT2Config(bos_token_id=50256, eos_token_id=7)
    assert own_samples.start_token(config, 50257) == 50256
    assert own_samples.start_token(config, 60) == 7
    with pytest.raises(CannotRunError, match="no start token"):
        own_samples.start_token(config, 5)


def registered(name):
    return opened_in(ROOT / "models" / name)


def test_held_out_tokens_come_first():
    assert registered("stdlib-gpt2").run.text.carried


def test_samples_are_cached_by_the_weights_and_damaged_ones_are_made_again(monkeypatch):
    first = registered("third-party/gpt2-basic-486").run.text
    monkeypatch.setattr(own_samples, "written_by", lambda run: pytest.fail("it was written again"))
    assert registered("third-party/gpt2-basic-486").run.text.sha256 == first.sha256
    notes = [file.path for file in TensorCache(default_folder()).notes() if "own-samples" in str(file.path)]
    for note in notes:
        note.write_text(note.read_text().replace("1", "2"))
    monkeypatch.setattr(own_samples, "written_by", lambda run: replace(first, ids=first.ids[:-1]))
    assert len(registered("third-party/gpt2-basic-486").run.text.ids) == len(first.ids) - 1
