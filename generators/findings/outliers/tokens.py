from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.findings.inputs import Vocabulary
from generators.findings.token_cells import cells
from generators.maths.blocks import blocks


@dataclass(frozen=True)
class OutlierTokens:
    E: Float[Array, "V d"]
    norms: Float[Array, " V"]
    vocabulary: Vocabulary | None

    def row(self, token_id: int) -> dict[str, Any]:
        """Return what tables say of a token, of which each takes some columns."""
        group = None if self.vocabulary is None else self.vocabulary.groups[token_id]
        return {**cells(self.vocabulary, token_id), "group": group, "norm": float(self.norms[token_id])}

    def along(self, direction: Float[Array, " d"]) -> Float[Array, " V"]:
        """Return every embedding's product with a direction, in float64 so that near ties keep their order."""
        return np.concatenate([block @ direction for _, block in blocks(self.E)])
