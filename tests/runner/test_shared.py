"""What runs of one model share changes no number."""

import numpy as np
import pytest

from generators.runner import modules
from generators.runner.kept import KeptStates
from tests.runner.models import HEADS, KINDS, LAYERS, D, as_windows, by_stage, joined, random_ids

IDS = random_ids(6, 24)


@pytest.fixture
def pairs(opened, anew):
    """Return a function that opens a kind of model twice: one that shares, and one that runs anew each time."""
    return lambda name: (anew(name), opened(name))


def losses_of(run, ids=IDS):
    return run.loss(as_windows(ids)).per_window()


def states_of(run):
    return np.stack([*by_stage(run.hidden_states, IDS).values()])


def attention_of(run, ids=IDS, layers=None):
    return by_stage(run.attention, ids, layers=layers)


def blocks_run(run, measure):
    """Return how many windows each block was run on while something was measured."""
    counts = [0] * LAYERS

    def counting(layer):
        def count(_, args, kwargs):
            counts[layer] += len(modules.given(args, kwargs))

        inner = next(run._blocks[layer].children())  # is called only where the block is run
        return inner.register_forward_pre_hook(count, with_kwargs=True)

    with modules.hooked(map(counting, range(LAYERS))):
        measure()
    return counts


@pytest.mark.parametrize("name", KINDS)
def test_states_are_shared_with_attention_and_means(pairs, name):
    run, other = pairs(name)
    attention_of(run)
    assert blocks_run(run, lambda: (states_of(run), run.stage_means(IDS[:3]))) == [0] * LAYERS
    np.testing.assert_array_equal(states_of(run), states_of(other))
    np.testing.assert_array_equal(run.stage_means(IDS[:3]), other.stage_means(IDS[:3]))


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.causal])
def test_a_run_with_silenced_heads_begins_at_their_layer(pairs, name):
    run, other = pairs(name)
    states_of(run)
    last = LAYERS - 1

    def silenced(of):
        with of.silenced(last, [0, HEADS - 1]):
            return attention_of(of, IDS[:4], [last])[last], joined(of.logits, IDS[:4]), losses_of(of)

    for ours, theirs in zip(silenced(run), silenced(other), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert blocks_run(run, lambda: silenced(run)) == [0] * last + [4 + 4 + 6]


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_attention_of_some_layers_runs_no_others(pairs, name):
    run, other = pairs(name)
    states_of(run)
    with run.silenced(1, [0]):  # tries whether blocks can be passed by
        pass
    assert blocks_run(run, lambda: attention_of(run, layers=[0])) == [len(IDS)] + [0] * (LAYERS - 1)
    found = attention_of(run, layers=[0])
    assert list(found) == [0]
    np.testing.assert_array_equal(found[0], attention_of(other)[0])


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert"])
def test_changed_runs_neither_use_nor_change_what_is_kept(pairs, name):
    run, other = pairs(name)
    before, losses = states_of(run), losses_of(run)
    for change in (
        lambda of: of.shifted(np.arange(D)),
        lambda of: of.held([1], np.full((LAYERS + 1, 1), 2.0)),
    ):
        with change(run), change(other):
            np.testing.assert_array_equal(states_of(run), states_of(other))
            np.testing.assert_array_equal(attention_of(run)[0], attention_of(other)[0])
            changed = losses_of(run)
            np.testing.assert_array_equal(changed, losses_of(other))
        assert np.abs(changed - losses).max() > 1e-4
    np.testing.assert_array_equal(states_of(run), before)
    np.testing.assert_array_equal(losses_of(run), losses)


def test_losses_of_the_unchanged_model_are_measured_once(pairs):
    run, other = pairs("gpt2")
    losses = losses_of(run)
    assert blocks_run(run, lambda: (losses_of(run), losses_of(run, IDS[:4]))) == [0] * LAYERS
    np.testing.assert_array_equal(losses_of(run, IDS[:4]), losses[:4])
    np.testing.assert_array_equal(losses, losses_of(other))


def test_windows_without_room_are_run(pairs):
    run, other = pairs("gpt2")
    run._shared._kept = KeptStates(1)
    np.testing.assert_array_equal(states_of(run), states_of(other))
    assert blocks_run(run, lambda: states_of(run)) == [len(IDS)] * LAYERS


def test_a_model_whose_blocks_give_each_other_more_than_the_stream_is_run_whole(pairs):
    run, _ = pairs("llama")
    states_of(run)
    run._shared._beside, ran = None, []

    def unless_the_first_ran(_, args, output):
        return output if ran.pop() else output + 1

    ran.append(False)
    next(run._blocks[0].children()).register_forward_hook(lambda *_: ran.append(True))
    run._blocks[-1].register_forward_hook(unless_the_first_ran)
    with run.silenced(1, [0]):
        assert run._shared._beside is None
        ran.append(True)
        assert blocks_run(run, lambda: joined(run.logits, IDS[:1])) == [1] * LAYERS
