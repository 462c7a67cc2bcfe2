"""Everything that is chosen when a model is trained, except how it knows positions."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """Everything that was chosen. Lengths in tokens, rates per step; the defaults are those of `stdlib-gpt2`."""

    seed: int = 0
    steps: int = 10_000
    threads: int = 2
    n_layer: int = 4
    n_head: int = 4
    d_model: int = 128
    n_ctx: int = 256
    batch: int = 16
    peak_rate: float = 2e-3
    warmup_steps: int = 100
    betas: tuple[float, float] = (0.9, 0.95)
    # On every parameter, as the position and token embeddings of this size would else keep their random start.
    weight_decay: float = 0.1
    clip: float = 1.0
    precision: str = "float32"  # of matrix products in a step; what is carried between steps is float32 in any case

    def rate(self, step: int) -> float:
        """The learning rate: a linear rise, then half a cosine down to zero."""
        if step < self.warmup_steps:
            return self.peak_rate * (step + 1) / self.warmup_steps
        done = (step - self.warmup_steps) / max(1, self.steps - self.warmup_steps)
        return self.peak_rate * 0.5 * (1 + math.cos(math.pi * done))
