from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array

from generators.findings.inputs import Vocabulary
from generators.maths.blocks import spread_ids

COMPARED = 5000  # tokens, spread over the ids, used for nulls and the probe


@dataclass(frozen=True)
class FrequencyTokens:
    """What is known of every token in addition to its embedding; an unknown frequency is NaN."""

    vocabulary: Vocabulary | None
    log_frequency: Float[Array, " V"]
    norms: Float[Array, " V"]

    @property
    def known(self) -> Bool[Array, " V"]:
        return np.isfinite(self.log_frequency)

    @property
    def compared(self) -> Int[Array, " m"]:
        """Return at most 5,000 tokens of known frequency, spread over the ids."""
        known = np.flatnonzero(self.known)
        return known[spread_ids(len(known), COMPARED)]
