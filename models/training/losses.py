"""What a model reads in a step, and how well it predicts text: cross-entropies in nats a token."""

from collections.abc import Iterator

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from models.training.recipe import Recipe


def windows(ids: np.ndarray, recipe: Recipe, step: int) -> torch.Tensor:
    """The windows of one step, int64 (batch, n_ctx).

    The seed and the step alone choose them, so a resumed run meets the same.
    """
    starts = np.random.default_rng([recipe.seed, step]).integers(len(ids) - recipe.n_ctx + 1, size=recipe.batch)
    return torch.from_numpy(np.stack([ids[start : start + recipe.n_ctx] for start in starts]))


def next_token_loss(model: PreTrainedModel, ids: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
    """Cross-entropy in nats of every token of `ids` (batch, n) but the first, given those before it."""
    logits = model(ids, use_cache=False).logits[:, :-1]
    return cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten(), reduction=reduction)


@torch.no_grad()
def held_out_pieces(model: PreTrainedModel, ids: np.ndarray, n_ctx: int, device: str) -> Iterator[torch.Tensor]:
    """Yield the cross-entropies of all tokens of `ids` but the first, in order, in pieces of half a context.

    Each token is given at least half a context, where there is one before it; the first piece is a whole context.
    """
    half = n_ctx // 2
    for start in range(0, len(ids) - 1, half):
        window = torch.from_numpy(ids[start : start + n_ctx])[None].to(device)
        losses = next_token_loss(model, window, reduction="none")
        # The first half of a window was the second half of the one before.
        yield losses[0 if start == 0 else half - 1 :]
        if start + n_ctx >= len(ids):
            break


def held_out_loss(model: PreTrainedModel, ids: np.ndarray, n_ctx: int, device: str) -> float:
    """Mean cross-entropy in nats a token over all of `ids`, as `held_out_pieces` reads it."""
    total = 0.0
    for losses in held_out_pieces(model, ids, n_ctx, device):
        total += losses.sum().item()
    return total / (len(ids) - 1)


def token_losses(model: PreTrainedModel, ids: np.ndarray, n_ctx: int, device: str) -> np.ndarray:
    """Cross-entropy in nats of every token of `ids` but the first, float32 (n_tokens - 1,)."""
    return torch.cat(list(held_out_pieces(model, ids, n_ctx, device))).cpu().numpy()
