"""What must be true of any model that is run, whatever its weights."""

import numpy as np
import pytest
import torch

from generators import options
from generators.base import runs
from generators.runner import CannotRunError, budget
from tests.runner.models import KINDS, LAYERS, D, N, V, as_windows, by_stage, last_states, random_ids

N_IDS = 24
ALL = [*KINDS, "encoder"]
TABLES = ["gpt2", "bert", "albert", "encoder"]
BY_IDS = ["llama", "gpt_neox", "bloom", "mpt", "falcon"]


def own_rows(run):
    return run._positions.table.numpy().copy()


def own_positions(run):
    """Return the arguments of `replaced` that change nothing."""
    return {"rows": own_rows(run)[:N_IDS]} if run.position_kind == "table" else {"ids": np.arange(N_IDS)}


def removed(run):
    if run.position_kind == "table":
        return {"rows": np.tile(own_rows(run)[:N_IDS].mean(axis=0), (N_IDS, 1))}
    return {"ids": np.zeros(N_IDS)}


def test_times_are_those_of_the_command_and_a_gpu_has_time_for_more():
    assert options.DEFAULT_BUDGET * budget.MINUTE == budget.DEFAULT_BUDGET_S
    of = {device: budget.affordable(10**9, 1e9, 60, budget.assumed_speed(device)) for device in ("cpu", "cuda:0")}
    assert of["cuda:0"] > 10 * of["cpu"]


def test_kinds(opened):
    kinds = {**dict.fromkeys(TABLES, "table"), **dict.fromkeys(("llama", "gpt_neox"), "rotary")}
    assert {name: opened(name).position_kind for name in ALL} == dict.fromkeys(ALL, "alibi") | kinds
    assert [name for name in ALL if not opened(name).predicts] == ["encoder"]


# Replacing positions


@pytest.mark.parametrize("name", ALL)
def test_replaced_by_themselves_nothing_changes_to_the_bit_and_removed_something(opened, name):
    run, ids = opened(name), random_ids(5, N_IDS)
    loss = run.loss(as_windows(ids))
    before, states = loss.per_window(), last_states(run, ids)
    with run.replaced(**own_positions(run)):
        np.testing.assert_array_equal(loss.per_window(), before)
        np.testing.assert_array_equal(last_states(run, ids), states)
    with run.replaced(**removed(run)):
        assert np.abs(loss.per_window() - before).max() > 1e-4
    np.testing.assert_array_equal(loss.per_window(), before)


@pytest.mark.parametrize("name", ["bert", "encoder"])
def test_an_encoder_without_positions_says_the_same_everywhere_in_a_constant_sequence(opened, name):
    run = opened(name)
    ids = np.full((2, N_IDS), 7, np.int32)
    with run.replaced(**removed(run)):
        states = last_states(run, ids)
    np.testing.assert_allclose(states, np.broadcast_to(states[:, :1], states.shape), atol=1e-5)
    assert np.ptp(last_states(run, ids), axis=1).max() > 1e-2


@pytest.mark.parametrize("name", BY_IDS)
def test_only_distances_matter_where_positions_are_relative(opened, name):
    run, ids = opened(name), random_ids(3, N_IDS)
    before = last_states(run, ids)
    with run.replaced(ids=np.arange(N_IDS) + 7.5):
        np.testing.assert_allclose(last_states(run, ids), before, atol=1e-4)
    with run.replaced(ids=np.arange(N_IDS) * 0.5):
        assert np.abs(last_states(run, ids) - before).max() > 1e-4
    with run.replaced(**removed(run)):
        without = last_states(run, ids)
    with run.replaced(ids=np.full(N_IDS, 7.5)):
        np.testing.assert_allclose(last_states(run, ids), without, atol=1e-4)


def hooks_of(run):
    return [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in run._model.modules()]


@pytest.mark.parametrize("name", ALL)
def test_after_an_exception_everything_is_unchanged(opened, name):
    run, ids = opened(name), random_ids(3, N_IDS)
    weights = {key: array.clone() for key, array in run._model.state_dict().items()}
    before, hooked = last_states(run, ids), hooks_of(run)
    with pytest.raises(RuntimeError, match="stop"), run.replaced(**removed(run)):
        last_states(run, ids)
        raise RuntimeError("stop")
    with pytest.raises(RuntimeError, match="stop"), run.held([3], np.zeros((LAYERS + 1, 1))):
        raise RuntimeError("stop")
    assert all((run._model.state_dict()[key] == array).all() for key, array in weights.items())
    np.testing.assert_array_equal(last_states(run, ids), before)
    assert hooks_of(run) == hooked


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("gpt2", {"ids": np.arange(3)}, "in a table"),
        ("llama", {"rows": np.zeros((3, D))}, "no table"),
        ("gpt2", {"rows": np.zeros((3, D + 1))}, "don't fit"),
        ("gpt2", {"rows": np.zeros((N + 1, D))}, "don't fit"),
        ("gpt2", {"rotations": runs.Rotations(pairs=[0])}, "has none with frequencies"),
        ("llama", {"rotations": runs.Rotations(exchanged=True)}, "all turn alike"),
    ],
)
def test_what_cannot_be_replaced_is_refused(opened, name, given, said):
    with pytest.raises(CannotRunError, match=said), opened(name).replaced(**given):
        pass


def test_padding_rows_in_front_of_a_table_stay(anew):
    run = anew("gpt2", first_row=2)
    before = own_rows(run)
    with run.replaced(rows=np.zeros((5, D))):
        inside = own_rows(run)
    np.testing.assert_array_equal(inside[2:7], 0)
    np.testing.assert_array_equal(np.delete(inside, range(2, 7), axis=0), np.delete(before, range(2, 7), axis=0))


# The same numbers


@pytest.mark.parametrize("name", ALL)
def test_batches_make_no_difference(opened, name):
    run, ids = opened(name), random_ids(7, N_IDS)
    losses, states, weights = [], [], []
    for size in (1, 3, 8):
        run.largest_batch = size
        losses.append(drifted(run, ids))
        states.append(last_states(run, ids))
        weights.append(np.stack([*by_stage(run.attention, ids).values()]))
    for several in (losses, states, weights):
        for other in several[1:]:
            np.testing.assert_allclose(other, several[0], atol=1e-5)


def drifted(run, ids):
    """Return a loss that is not 0 for encoders without a head either."""
    loss = run.loss(as_windows(ids))
    with run.replaced(**removed(run)):
        return loss.per_window()


def test_as_many_threads_are_there_as_before(opened):
    threads = torch.get_num_threads()
    last_states(opened("gpt2"), random_ids(5, N_IDS))
    assert torch.get_num_threads() == threads


# What comes out


def test_the_loss_of_a_causal_model_is_its_own(opened):
    run, ids = opened("gpt2"), random_ids(5, N_IDS)
    wanted = torch.from_numpy(ids.astype(np.int64))
    with torch.inference_mode():
        expected = [float(run._model(input_ids=row[None], labels=row[None]).loss) for row in wanted]
    np.testing.assert_allclose(run.loss(as_windows(ids)).per_window(), expected, atol=1e-5)


def test_predictions_are_shown_with_what_is_there(opened):
    for name, count in (("gpt2", N_IDS - 1), ("bert", round(0.15 * N_IDS))):
        run, ids, seen = opened(name), random_ids(3, N_IDS), []
        loss = run.loss(as_windows(ids))
        losses = loss.per_window(lambda _, p, wanted, seen=seen: seen.append((p, wanted)))
        predictions, wanted = (np.concatenate(part) for part in zip(*seen, strict=True))
        assert predictions.shape == (3 * count, V)
        np.testing.assert_allclose(np.exp(predictions).sum(axis=1), 1, atol=1e-5)
        costs = -predictions[np.arange(len(wanted)), wanted].reshape(3, -1).mean(axis=1)
        np.testing.assert_allclose(losses, costs, atol=1e-5)
        np.testing.assert_allclose(loss.per_window(), losses, atol=1e-6)


def test_an_encoder_without_a_head_has_not_moved(opened):
    run, ids = opened("encoder"), random_ids(3, N_IDS)
    loss = run.loss(as_windows(ids))
    assert loss.unit == "1 - cosine"
    np.testing.assert_array_equal(loss.per_window(), 0)
    before = last_states(run, ids)
    with run.replaced(**removed(run)):
        after = last_states(run, ids)
        measured = loss.per_window()
    cosine = (before * after).sum(-1) / np.linalg.norm(before, axis=-1) / np.linalg.norm(after, axis=-1)
    np.testing.assert_allclose(measured, (1 - cosine).mean(axis=1), atol=1e-5)
    for shown in (run.logits, run.last_logits):
        with pytest.raises(CannotRunError, match="no head"):
            shown(ids, lambda *_: None)


@pytest.mark.parametrize("name", ALL)
def test_hidden_states_and_attention_are_those_of_transformers(opened, name):
    run, ids = opened(name), random_ids(3, N_IDS)
    with torch.inference_mode():
        batch = torch.from_numpy(ids.astype(np.int64))
        whole = run._base(input_ids=batch, output_hidden_states=True, output_attentions=True)
    for shown, expected in ((run.hidden_states, whole.hidden_states), (run.attention, whole.attentions)):
        for ours, theirs in zip(by_stage(shown, ids).values(), expected, strict=True):
            np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-5)


# Held channels


@pytest.mark.parametrize("name", ALL)
def test_held_channels_have_their_values_everywhere(opened, name):
    run, ids = opened(name), random_ids(3, N_IDS)
    values = np.arange(2.0 * (LAYERS + 1)).reshape(-1, 2)
    before = last_states(run, ids)
    with run.held([4, 9], values):
        seen = by_stage(run.hidden_states, ids)
        means = run.stage_means(ids).mean(axis=1)
    # Hooks run in the order in which they were made: what is seen was held before.
    for stage in range(LAYERS):
        np.testing.assert_array_equal(seen[stage][..., [4, 9]], np.broadcast_to(values[stage], (3, N_IDS, 2)))
    np.testing.assert_allclose(means[:, [4, 9]], values, atol=1e-5)
    np.testing.assert_array_equal(last_states(run, ids), before)


@pytest.mark.parametrize("name", ALL)
def test_one_number_is_held_and_nothing_else(opened, name):
    run, ids, held = opened(name), random_ids(3, N_IDS), 2.5
    values = np.full((LAYERS + 1, N_IDS, 1), np.nan)
    values[1, 3] = held
    before = by_stage(run.hidden_states, ids)
    with run.held([4], values, last=False):
        seen = by_stage(run.hidden_states, ids)
    expected = before[1].copy()
    expected[:, 3, 4] = held
    np.testing.assert_array_equal(seen[0], before[0])
    np.testing.assert_array_equal(seen[1], expected)
    assert not np.array_equal(seen[2], before[2])


@pytest.mark.parametrize("name", ["encoder", "gpt2"])
def test_a_model_that_ends_with_a_block_can_be_left_alone_there(opened, name):
    run, ids = opened(name), random_ids(3, N_IDS)
    with run.held([4], np.full((LAYERS, 1), 0.5), last=False):
        assert np.ptp(last_states(run, ids)[..., 4]) > 0


# Budget


def test_fewer_windows_where_time_is_short_and_that_is_said(anew):
    run = anew("gpt2")
    for seconds, count in ((600, 16), (1e-9, 8)):
        run.begin(seconds)
        assert len(run.windows(16, 0).ids) == count
        assert run.was_cut == (count < 16)
        assert run.affordable(4, N_IDS, 10) == 4
    run.begin(600)
    assert not run.was_cut


def test_who_watches_learns_how_much_is_done(opened):
    run, reported = opened("gpt2"), []
    run.begin(600, reported.append)
    windows = run.windows(16, 0, passes=2)
    loss = run.loss(windows)
    loss.per_window()
    batches = len(reported)
    assert reported == [0.5 * (batch + 1) / batches for batch in range(batches)]
    loss.per_window()
    loss.per_window()
    assert reported[batches : 2 * batches] == [0.5 + 0.5 * (batch + 1) / batches for batch in range(batches)]
    assert set(reported[2 * batches :]) == {1}
    run.begin(600)


# Interrupted


def test_losses_that_were_measured_before_an_interruption_are_not_run_again(anew, monkeypatch, tmp_path):
    run, ids = anew("gpt2"), random_ids(9, N_IDS)
    rows = [own_rows(run)[:N_IDS] * scale for scale in (1, 0.5, 0)]
    passed = []

    def measure(unfinished=None, stop=None):
        run.begin(600, passed.append, unfinished)
        run._due = len(ids) * len(rows)
        loss, found = run.loss(as_windows(ids)), []
        for index, table in enumerate(rows):
            if index == stop:
                raise KeyboardInterrupt
            with run.replaced(rows=table):
                found.append(loss.per_window())
        return found

    whole = measure()
    with pytest.raises(KeyboardInterrupt):
        measure(tmp_path / "kept", stop=2)
    ran, forward = [], run._model.forward
    monkeypatch.setattr(run._model, "forward", lambda **given: ran.append(1) or forward(**given))
    passed.clear()
    np.testing.assert_array_equal(measure(tmp_path / "kept"), whole)
    assert len(ran) == -(-len(ids) // run.largest_batch)
    assert passed[-1] == pytest.approx(1.0)


def test_a_damaged_file_of_an_unfinished_run_is_measured_again(opened, tmp_path):
    run, ids = opened("gpt2"), random_ids(9, N_IDS)
    found = []
    for content in (None, b"", b"\x93NUMPY"):
        if content is not None:
            for file in (tmp_path / "kept").rglob("*.npy"):
                file.write_bytes(content)
        run.begin(600, unfinished=tmp_path / "kept")
        found.append(run.loss(as_windows(ids)).per_window())
    run.begin(600)
    np.testing.assert_array_equal(found[1:], [found[0]] * 2)
