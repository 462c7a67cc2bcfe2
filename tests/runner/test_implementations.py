"""The runner has attention computed step by step, to see where heads look: it must be what transformers computes."""

import numpy as np
import pytest
import torch
import transformers

from tests.runner.models import KINDS, N, last_states, random_ids


@pytest.mark.parametrize("name", KINDS)
def test_what_is_run_is_what_transformers_computes_by_itself(name, opened):
    run, ids = opened(name), random_ids(3, N)
    model = transformers.AutoModel.from_pretrained(run._folder, dtype=torch.float32).eval()
    assert model.config._attn_implementation != "eager" or name in ("mpt", "bloom")  # which have no other
    with torch.no_grad():
        expected = model(input_ids=torch.from_numpy(ids.astype(np.int64))).last_hidden_state.numpy()
    np.testing.assert_allclose(last_states(run, ids), expected, atol=2e-4, rtol=2e-4)
