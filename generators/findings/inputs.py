"""What a finding may measure from: weights, the architecture, facts about tokens, and the model itself.

A vocabulary and the model come as protocols, so that findings import neither `tokens/` nor `runner/`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Bool
from numpy import ndarray as Array

from generators.base.architecture import Architecture
from generators.base.frequencies import TokenFrequency
from generators.base.runs import Run

Weights = Mapping[str, Array]
# Capabilities that a finding may need or use, in addition to roles of tensors.
TOKENS = "tokens"
FREQUENCIES = "frequencies"
RUN = "run"
CAPABILITIES = (TOKENS, FREQUENCIES, RUN)


class NotApplicableError(Exception):
    """The finding doesn't apply to this architecture or these weights; the message is a sentence saying why."""


@runtime_checkable
class Vocabulary(Protocol):
    """What findings may ask of a `ModelVocabulary`; `tokens/vocabulary.py` says what it is."""

    @property
    def raw_bytes(self) -> tuple[bytes, ...]: ...

    @property
    def readable(self) -> tuple[str, ...]: ...

    @property
    def groups(self) -> tuple[str, ...]: ...

    @property
    def marks_space(self) -> Bool[Array, " V"]: ...

    @property
    def special(self) -> Bool[Array, " V"]: ...

    def containing(self, token_id: int, limit: int) -> tuple[int, ...]:
        """Return up to `limit` longer tokens that contain this one."""

    def pair_group(self, u: int, v: int) -> str:
        """Return how two tokens differ: one of a short list of words."""


@dataclass(frozen=True)
class Inputs:
    """All that a finding may measure from; of `weights` and `architecture` only what it declares is there.

    `run` is the model itself for findings that need `RUN`; None for others.
    """

    weights: Weights
    architecture: Architecture
    vocabulary: Vocabulary | None = None
    frequencies: tuple[TokenFrequency, ...] = ()  # best first
    run: Run | None = None


def model_of(inputs: Inputs) -> Run:
    if inputs.run is None:
        raise ValueError("the finding runs the model without declaring it")
    return inputs.run
