"""What a finding may measure from: capabilities, and the shape of what other rooms hand in.

Protocols, so that findings know neither `tokens/` nor `runner/`, which make these.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array

from generators.base.architecture import Architecture

Weights = Mapping[str, Array]
# Capabilities that a finding may need or use beside roles of tensors.
TOKENS = "tokens"
FREQUENCIES = "frequencies"
RUN = "run"
CAPABILITIES = (TOKENS, FREQUENCIES, RUN)


class NotApplicableError(Exception):
    """The architecture or the weights have no such thing; the message is the sentence that says so."""


@runtime_checkable
class Vocabulary(Protocol):
    """The tokens of a model by id, as far as findings look at them; `tokens/vocabulary.py` makes it."""

    @property
    def texts(self) -> tuple[bytes, ...]:
        """Return the raw bytes of every token."""

    @property
    def readable(self) -> tuple[str, ...]:
        """Return a form of every token in which each character can be seen; no two are alike."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Return what kind of text each token is."""

    @property
    def marks_space(self) -> Bool[Array, " V"]:
        """Return whether a token carries the tokenizer's space marker (WordPiece: lacks `##`)."""

    @property
    def special(self) -> Bool[Array, " V"]:
        """Return whether a token is none of the text's own."""

    def containing(self, token_id: int, limit: int) -> tuple[int, ...]:
        """Return up to `limit` longer tokens that contain this one."""

    def pair_group(self, u: int, v: int) -> str:
        """Return how two tokens differ, in one word of a short list."""


@runtime_checkable
class Frequency(Protocol):
    """How often each token occurs, as far as one source can tell; `tokens/frequency.py` makes it."""

    @property
    def source(self) -> str:
        """Return "counts", "corpus", "wordfreq" or "index"."""

    @property
    def label(self) -> str:
        """Return how a page names the source."""

    @property
    def log_frequency(self) -> Float[Array, " V"]:
        """Return log(count + 1) or the log of a relative frequency; NaN where the source can't tell."""

    @property
    def coverage(self) -> float:
        """Return the share of tokens that the source can speak about."""

    @property
    def proxy(self) -> bool:
        """Return whether it is no frequency but something that goes with it."""

    @property
    def training_counts(self) -> Int[Array, " V"] | None:
        """Return how often each token occurs in the model's own training text, None where that isn't known."""


PositionKind = Literal["table", "rotary", "alibi"]
# What is called with results as they come: with the first window of the batch, before it the stage or the layer where
# there are several.
SeePredictions = Callable[[int, Float[Array, "tokens V"], Int[Array, " tokens"]], None]
SeeStates = Callable[[int, int, Float[Array, "batch n d"]], None]
SeeAttention = Callable[[int, int, Float[Array, "batch heads n n"]], None]
SeeLogits = Callable[[int, Float[Array, "batch n V"]], None]


@runtime_checkable
class Text(Protocol):
    """A text in a model's tokens; `runner/texts/` has them."""

    @property
    def name(self) -> str:
        """Return what the text is, in words."""

    @property
    def sha256(self) -> str:
        """Return the digest of its content."""

    @property
    def ids(self) -> Int[Array, " tokens"]:
        """Return its tokens."""

    @property
    def before(self) -> tuple[int, ...]:
        """Return what the tokenizer puts before every piece of it."""


@runtime_checkable
class Windows(Protocol):
    """Pieces of text of one length."""

    @property
    def ids(self) -> Int[Array, "windows n"]:
        """Return their tokens."""

    @property
    def inner(self) -> tuple[int, int]:
        """Return the columns from and up to which there is text, and not the tokenizer's own tokens."""

    @property
    def mask_id(self) -> int | None:
        """Return the token that stands for a masked one."""


@runtime_checkable
class Loss(Protocol):
    """One number per window, measured anew each time under what is replaced or held then."""

    @property
    def unit(self) -> str:
        """Return what the number is: "nats per token", for example."""

    def per_window(self, see: SeePredictions | None = None) -> Float[Array, " windows"]:
        """Measure; `see` is shown log-probabilities and the tokens that stand there, where any are predicted."""


@runtime_checkable
class Run(Protocol):
    """The model itself, ready to be run; `runner/run.py` makes it.

    Within `replaced` and `held` it runs changed; afterwards it is what it was. Whatever it can't do is a
    `CannotRunError`, which no finding needs to catch.
    """

    @property
    def architecture(self) -> Architecture:
        """Return how the model is built."""

    @property
    def predicts(self) -> bool:
        """Return whether it has a head that predicts tokens."""

    @property
    def position_kind(self) -> PositionKind | None:
        """Return how it knows positions; None if by nothing that can be replaced."""

    @property
    def record(self) -> dict[str, str]:
        """Return with what it is run: versions, dtype, device, threads."""

    @property
    def text(self) -> Text:
        """Return the text that it is run on."""

    def windows(self, count: int, seed: int, passes: float = 1.0) -> Windows:
        """Draw windows of text; fewer than `count` where `passes` runs over all of them would take too long."""

    def affordable(self, count: int, length: int, passes: float) -> int:
        """Return how many of `count` windows of `length` tokens `passes` runs have time for."""

    def encode(self, text: str) -> tuple[int, ...]:
        """Return a piece of text as tokens, nothing put around it."""

    def loss(self, windows: Windows) -> Loss:
        """Return what is measured on windows: nats; of encoders without a head how far they move from now."""

    def logits(self, ids: Int[Array, "windows n"], see: SeeLogits) -> None:
        """Call `see` with logits."""

    def hidden_states(self, ids: Int[Array, "windows n"], see: SeeStates) -> None:
        """Call `see` with the stream before block `stage`; stage n_layer is what the model returns."""

    def attention(self, ids: Int[Array, "windows n"], see: SeeAttention) -> None:
        """Call `see` with where heads look, layer by layer."""

    def stage_means(self, ids: Int[Array, "windows n"]) -> Float[Array, "stages d"]:
        """Return every channel's mean before each block and after the last."""

    def replaced(
        self, *, rows: Float[Array, "m d"] | None = None, ids: Float[Array, " n"] | None = None
    ) -> AbstractContextManager[None]:
        """Run with other position rows (models with a table) or position ids (the others)."""

    def held(
        self, channels: Sequence[int], values: Float[Array, "stages channels"], *, last: bool = True
    ) -> AbstractContextManager[None]:
        """Run with channels of the stream held at `values[i]` before block i, and if `last` after the last block."""


@dataclass(frozen=True)
class Inputs:
    """All that a finding may measure from; of `weights` and `architecture` only what it declares is there.

    `run` is the model itself for findings that need `RUN`; None for others.
    """

    weights: Weights
    architecture: Architecture
    vocabulary: Vocabulary | None = None
    frequencies: tuple[Frequency, ...] = ()  # best first
    run: Run | None = None


def model_of(inputs: Inputs) -> Run:
    """Return the model itself.

    Raises:
        ValueError: it isn't handed in: the finding runs it without declaring that.
    """
    if inputs.run is None:
        raise ValueError("the finding runs the model without declaring it")
    return inputs.run
