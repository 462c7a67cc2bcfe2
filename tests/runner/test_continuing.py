import numpy as np
import pytest

from generators.runner import CannotRunError, continuing
from tests.runner.models import KINDS, V, joined, random_ids


def by_row(run, ids):
    found = {}

    def see(rows, logits):
        for row, each in zip(rows.tolist(), logits, strict=True):
            assert row not in found
            found[row] = each.copy()

    run.last_logits(ids, see)
    return np.stack([found[row] for row in range(len(ids))])


def check_last_logits(run, ids):
    np.testing.assert_allclose(by_row(run, ids), joined(run.logits, ids)[:, -1], rtol=1e-4, atol=1e-4)


def alike(count, length, shared):
    ids = random_ids(count, length)
    ids[:, :shared] = ids[0, :shared]
    return ids


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.causal])
def test_last_logits_are_those_of_whole_rows(opened, name):
    run = opened(name)
    ids = alike(9, 12, 9)
    ids[[2, 5], 3] = V - 1  # these begin otherwise
    check_last_logits(run, ids)


@pytest.mark.parametrize(("count", "shared"), [(1, 0), (2, 12), (5, 0)])
def test_one_row_equal_rows_and_rows_of_their_own(opened, count, shared):
    check_last_logits(opened("llama"), alike(count, 12, shared))


def test_a_model_that_continues_wrongly_is_run_whole(opened, monkeypatch):
    wrong = continuing.Beginning.last_logits
    monkeypatch.setattr(continuing.Beginning, "last_logits", lambda self, batch: wrong(self, batch) + 1)
    check_last_logits(opened("gpt2"), alike(6, 12, 10))


def test_what_is_shared_is_run_once(opened):
    run, ids = opened("llama"), alike(9, 12, 9)
    run.begin(600)
    widths = []
    hook = run._model.base_model.layers[0].register_forward_pre_hook(lambda _, args: widths.append(args[0].shape[:2]))
    by_row(run, ids)
    hook.remove()
    assert widths == [(1, 9), (2, 3), (2, 12), (9, 3)]


def test_without_a_head_there_are_none(opened):
    with pytest.raises(CannotRunError):
        by_row(opened("encoder"), random_ids(2, 8))
