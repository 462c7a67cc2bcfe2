from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array


@dataclass(frozen=True)
class TokenFrequency:
    """How often each token occurs, according to one source: "counts", "corpus", "wordfreq" or "index".

    `log_frequency` is log(count + 1) or a log of relative frequency, NaN for tokens that the source lacks;
    `coverage` is the share of tokens that it has. `label` is how a page names the source. A `proxy` is
    not a frequency but correlates with it (the token index). `made_from` is what decides the numbers, as integers and
    digests: their last digits depend on the processor.
    """

    source: str
    label: str
    log_frequency: Float[Array, " V"]
    coverage: float
    proxy: bool
    made_from: tuple[str | int, ...] = ()

    @property
    def training_counts(self) -> Int[Array, " V"] | None:
        """Return how often each token occurs in the model's own training text, None where that isn't known."""
        return np.rint(np.expm1(self.log_frequency)).astype(np.int64) if self.source == "counts" else None
