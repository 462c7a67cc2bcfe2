"""The smallest matrices that a finding speaks about (below, everything holds by accident); widths that must agree."""

from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.findings.inputs import NotApplicableError, Weights
from generators.maths.blocks import spread_ids

FEWEST_POSITIONS = 16
FEWEST_CHANNELS = 16
FEWEST_TOKENS = 100
MOST_TOKENS = 300_000  # largest vocabulary compared in full: more than any known model has
ASKED_TOKENS = 8192  # tokens sampled from a larger vocabulary
NORM, PROJECTION = "embedding_norm", "embedding_projection"
ENTERING = (f"{NORM}.gain", PROJECTION)  # roles that `InStream` reads beside the embeddings


def check_positions(P: Array) -> None:
    if len(P) < FEWEST_POSITIONS:
        raise NotApplicableError(f"P has only {len(P)} positions; a curve needs at least {FEWEST_POSITIONS}.")
    check_channels(P.shape[1])


def check_tokens(E: Array) -> None:
    if len(E) < FEWEST_TOKENS:
        raise NotApplicableError(f"There are only {len(E)} tokens; at least {FEWEST_TOKENS} are needed.")
    check_channels(E.shape[1])


def asked_tokens(E: Float[Array, "V d"]) -> Int[Array, " tokens"] | None:
    """Return the tokens that are compared with all: 8,192 of a vocabulary beyond 300,000, None for all."""
    return spread_ids(len(E), ASKED_TOKENS) if len(E) > MOST_TOKENS else None


class InStream(Mapping[str, Array]):
    """Weights with embeddings as wide as the stream: narrower ones (ALBERT) are normed and then projected into it.

    What the norm divides by is left out, since it depends on token and position together; so are constants.
    """

    def __init__(self, weights: Weights) -> None:
        self._stored, self._projected = weights, PROJECTION in weights

    def __getitem__(self, role: str) -> Array:
        if role not in self:
            raise KeyError(role)
        rows = self._stored[role]
        if not self._projected or role not in ("position_embedding", "token_embedding"):
            return rows
        centred = rows - rows.mean(axis=1, keepdims=True)
        return (centred * self._stored.get(f"{NORM}.gain", 1)) @ self._stored[PROJECTION]

    def __contains__(self, role: object) -> bool:
        return role in self._stored and not (self._projected and str(role).startswith(NORM))

    def __iter__(self) -> Iterator[str]:
        return (role for role in self._stored if role in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def check_width(embedding: Array, gain_or_matrix: Array) -> None:
    """Refuse embeddings that do not live in the stream itself."""
    width, d = embedding.shape[1], gain_or_matrix.shape[0]
    if width != d:
        raise NotApplicableError(
            f"The embeddings have {width} channels and the stream has {d}: a projection stands in between, "
            "and it isn't in this checkpoint."
        )


def check_channels(d: int) -> None:
    if d < FEWEST_CHANNELS:
        raise NotApplicableError(f"The stream has only {d} channels; at least {FEWEST_CHANNELS} are needed.")


def nonconstant_positions(weights: Weights) -> Float[Array, "n d"] | None:
    """Return the position embeddings in float64; None if there are none, or if all rows after the first are equal."""
    if "position_embedding" not in weights:
        return None
    P = np.asarray(weights["position_embedding"], np.float64)
    rest = P[1:] if len(P) > 2 else P
    return P if np.ptp(rest, axis=0).any() else None
