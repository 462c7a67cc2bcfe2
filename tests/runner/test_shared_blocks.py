"""ALBERT calls one block for every layer: what is seen and changed at one layer is that at one of its uses."""

import numpy as np
import pytest
import torch
import transformers

from generators.compute import plan
from generators.findings import FINDINGS
from generators.runner import modules, open_model
from tests.compute.harness import opened_in
from tests.runner.models import HEADS, KINDS, LAYERS, D, joined, last_states, random_ids

N_IDS, AT, HEAD = 16, 1, 2
VALUES = np.where(np.arange(LAYERS + 1) == AT, 7.0, np.nan)[:, None]  # that a channel is held at


@pytest.fixture(scope="module")
def both(opened):
    """Return a model as the atlas runs it, and as transformers does."""
    first = opened("albert")
    run = open_model(first._folder, first.architecture, position_tensor=KINDS["albert"].tensor)
    return run, transformers.AutoModel.from_pretrained(first._folder, attn_implementation="eager").eval()


def uses(model, ids, use):
    """Return the last hidden states by a loop over the block, used as `use(layer, states, block)` says."""
    with torch.no_grad():
        states = model.encoder.embedding_hidden_mapping_in(model.embeddings(torch.as_tensor(ids)))
        (group,) = model.encoder.albert_layer_groups
        for layer in range(LAYERS):
            states = use(layer, states, lambda x: group(x, None))
    return states.numpy()


def test_a_channel_is_held_and_a_head_silenced_at_one_use_only(both):
    run, model = both
    ids, width = random_ids(3, N_IDS), D // HEADS
    joining = model.encoder.albert_layer_groups[0].albert_layers[0].attention.dense.weight
    whole = joining.detach().clone()

    def held(layer, states, block):
        if layer == AT:
            states[..., 3] = 7.0
        return block(states)

    def silenced(layer, states, block):
        joining[:, HEAD * width : (HEAD + 1) * width] *= layer != AT
        states = block(states)
        joining.copy_(whole)
        return states

    before = last_states(run, ids)
    for change, use, least in ((run.held([3], VALUES), held, 1e-2), (run.silenced(AT, [HEAD]), silenced, 1e-3)):
        with change:
            changed = last_states(run, ids)
        np.testing.assert_allclose(changed, uses(model, ids, use), atol=1e-5)
        np.testing.assert_array_equal(last_states(run, ids), before)
        assert np.abs(changed - before).max() > least


def test_a_change_in_the_middle_begins_there_with_what_is_kept(both):
    run, _ = both
    ids, called = random_ids(3, N_IDS, seed=1), []
    with run.held([3], VALUES):
        whole = joined(run.logits, ids)
    run.hidden_states(ids, lambda *_: None)  # keeps them
    inside = run._blocks[0].albert_layers[0].register_forward_hook(lambda *_: called.append(0))
    with modules.hooked([inside]), run.held([3], VALUES):
        called.clear()
        np.testing.assert_allclose(joined(run.logits, ids), whole, atol=1e-4)
    assert called == []


def test_all_blocks_share_their_numbers_and_count_once_per_use(both):
    run, model = both
    pairs = zip(run._blocks[0].parameters(), run._blocks[-1].parameters(), strict=True)
    assert all(a.data_ptr() == b.data_ptr() for a, b in pairs)
    block = sum(each.numel() for each in model.encoder.albert_layer_groups.parameters())
    assert run.operations(N_IDS) >= 2.0 * N_IDS * LAYERS * block


def test_findings_about_weights_measure_the_block_once(both):
    named = {finding.name: finding for finding in FINDINGS}
    opened = opened_in(both[0]._folder)
    record = plan.prepare(opened, []).record
    assert (record.n_layer, record.shares_block) == (LAYERS, True)
    measured = named["gains"].measure(plan.inputs(named["gains"], opened))
    assert [row["layer"] for row in measured.tables["norms"].named()] == [0]
    assert opened.checkpoint.architecture.n_layer == LAYERS  # of a run there are as many as before
    assert f"blocks.{LAYERS - 1}.attn.q" in opened.reading(named["heads"]).roles
