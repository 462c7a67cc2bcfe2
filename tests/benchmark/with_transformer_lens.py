"""Losses under other positions the way a notebook has them: TransformerLens, a hook, the model loaded for each table.

Run by the Python of an environment of its own, for `tests/benchmark/running.py`:
    python tests/benchmark/with_transformer_lens.py MODEL_FOLDER TABLES.npz LOSSES.npz
"""

import sys
import time
from typing import Any

import numpy as np
import torch
from transformer_lens.model_bridge import TransformerBridge

HOOK = "hook_pos_embed"


def losses(folder: str, ids: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the mean loss of every window of tokens (windows, n), positions being rows (n, d)."""
    model: Any = TransformerBridge.boot_transformers(folder, device="cpu")
    positions = torch.from_numpy(rows.astype(np.float32))[None]

    def replace(value: torch.Tensor, hook: Any) -> torch.Tensor:
        return positions[:, : value.shape[1]].expand_as(value)

    found = []
    for window in ids:
        tokens = torch.from_numpy(window.astype(np.int64))[None]
        found.append(float(model.run_with_hooks(tokens, return_type="loss", fwd_hooks=[(HOOK, replace)])))
    return np.array(found)


def main() -> None:
    folder, given, answer = sys.argv[1:]
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    with np.load(given, allow_pickle=False) as file:
        ids, tables = file["ids"], file["tables"]
    began = time.process_time()
    found = [losses(folder, ids, rows) for rows in tables]
    np.savez(answer, losses=np.array(found), seconds=time.process_time() - began)


if __name__ == "__main__":
    main()
