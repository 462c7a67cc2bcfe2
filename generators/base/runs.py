"""A model that can be run, and the text it is run on, as protocols.

`runner/` implements them and findings use them; neither imports the other.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.base.architecture import Architecture

PositionKind = Literal["table", "rotary", "alibi"]
# Callbacks for results, batch by batch. The integer before the array is the first window of the batch; a stage or a
# layer comes before it where there are several.
SeePredictions = Callable[[int, Float[Array, "tokens V"], Int[Array, " tokens"]], None]
SeeStates = Callable[[int, int, Float[Array, "batch n d"]], None]
SeeAttention = Callable[[int, int, Float[Array, "batch heads n n"]], None]
# A layer's queries, keys and values, (batch, heads, n, width); fewer heads of keys and values where they are shared.
SeeCompared = Callable[[int, int, Float[Array, "..."], Float[Array, "..."], Float[Array, "..."]], None]
SeeLogits = Callable[[int, Float[Array, "batch n V"]], None]
SeeRows = Callable[[int, Float[Array, "batch V"]], None]


@dataclass(frozen=True)
class Rotations:
    """How a model is to rotate, where not as its config says.

    `pairs` are those that turn; the others stay at angle 0. Frequency i of n is divided by `theta` ** (i / n).
    `channels` is the order in which a head's channels are given to the rotation, so that others make a pair.
    `exchanged`: sliding layers turn as full ones, and the reverse.
    """

    pairs: Sequence[int] | None = None
    theta: float = 1.0
    channels: Sequence[int] | None = None
    exchanged: bool = False


@runtime_checkable
class Text(Protocol):
    """A text in a model's tokens; `runner/texts/` has them."""

    @property
    def name(self) -> str: ...

    @property
    def sha256(self) -> str: ...

    @property
    def ids(self) -> Int[Array, " tokens"]: ...

    @property
    def before(self) -> tuple[int, ...]:
        """Return the tokens that the tokenizer puts before every piece of text."""


@dataclass(frozen=True)
class Windows:
    """Pieces of text of one length; columns outside the range `inner` hold the tokenizer's own tokens.

    `files` says in which file of the text each lies: windows of one file are alike, so intervals resample files.
    `mask_id` is the token that replaces a masked one.
    """

    ids: Int[Array, "windows n"]
    inner: tuple[int, int]
    files: Int[Array, " windows"]
    mask_id: int | None = None


@runtime_checkable
class WindowLoss(Protocol):
    """One number per window, measured under the replacements active at the time."""

    @property
    def unit(self) -> str:
        """Return what the number is: "nats per token", for example."""

    def per_window(self, see: SeePredictions | None = None) -> Float[Array, " windows"]:
        """Measure; `see` is called with log-probabilities and the actual tokens, if the model predicts any."""


@runtime_checkable
class Run(Protocol):
    """The model itself, ready to be run; `runner/run.py` makes it.

    Within `replaced` and `held` it runs changed; afterwards it is what it was. Whatever it can't do is a
    `CannotRunError`, which no finding needs to catch.
    """

    @property
    def architecture(self) -> Architecture: ...

    @property
    def predicts(self) -> bool: ...

    @property
    def position_kind(self) -> PositionKind | None:
        """Return how it encodes positions; None if they can't be replaced."""

    @property
    def record(self) -> dict[str, str]:
        """Return the conditions of the run: versions, dtype, device, threads."""

    @property
    def bos(self) -> int | None:
        """Return the token that begins texts, if its config names one of the vocabulary."""

    @property
    def text(self) -> Text: ...

    @property
    def shipped(self) -> Text:
        """Return the text that it is run on if it can read it; otherwise `text` is its own samples."""

    def windows(
        self, count: int, seed: int, passes: float = 1.0, fixed: float = 0.0, *, shipped: bool = False
    ) -> Windows:
        """Draw windows of min(n_ctx, 256) tokens; fewer than `count` where `passes` over all would cost too much.

        The first windows of a larger draw with the same seed are those of a smaller one. `fixed` of the runs that
        `passes` over all windows are do not shrink with the draw: progress counts them whole.
        """

    def affordable(self, count: int, length: int, passes: float) -> int:
        """Return how many of `count` windows of `length` tokens `passes` runs have time for."""

    def encode(self, text: str) -> tuple[int, ...]:
        """Return a piece of text as tokens, nothing put around it."""

    def loss(self, windows: Windows) -> WindowLoss:
        """Return the loss on windows, of next or masked tokens in nats; without a head, the last states' drift."""

    def logits(self, ids: Int[Array, "windows n"], see: SeeLogits) -> None: ...

    def last_logits(self, ids: Int[Array, "rows n"], see: SeeRows) -> None:
        """Call `see` with rows and the logits after the last token of each."""

    def hidden_states(self, ids: Int[Array, "windows n"], see: SeeStates) -> None:
        """Call `see` with the stream before block `stage`; stage n_layer is what the model returns."""

    def mlp_outputs(self, ids: Int[Array, "windows n"], see: SeeStates) -> bool:
        """Call `see` with the MLP output of each layer; return whether it is accessible."""

    def attention(
        self,
        ids: Int[Array, "windows n"],
        see: SeeAttention,
        *,
        scores: bool = False,
        layers: Sequence[int] | None = None,
    ) -> None:
        """Call `see` with attention of some layers or all, one layer of one batch at a time.

        With `scores`, with what the softmax is taken of, up to a constant per query, else the logarithm of attention.
        """

    def queries_keys_values(self, ids: Int[Array, "windows n"], see: SeeCompared) -> bool:
        """Call `see` with what heads compare and mix, batch by batch; return whether it is accessible."""

    def stage_means(self, ids: Int[Array, "windows n"]) -> Float[Array, "stages n d"]:
        """Return every channel's mean over windows, at each position, before each block and after the last."""

    def replaced(
        self,
        *,
        rows: Float[Array, "m d"] | None = None,
        ids: Float[Array, " n"] | None = None,
        rotations: Rotations | None = None,
    ) -> AbstractContextManager[None]:
        """Run with other position rows (models with a table), other ids (the others), or other rotations."""

    def held(
        self, channels: Sequence[int], values: Float[Array, "stages ... channels"], *, last: bool = True
    ) -> AbstractContextManager[None]:
        """Run with channels of the stream held at `values[i]` before block i, and if `last` before the final norm.

        Where a value is NaN, the channel is left as it is.
        """

    def shifted(self, by: Float[Array, " d"]) -> AbstractContextManager[None]:
        """Run with a vector added to what the first block is given."""

    def silenced(self, layer: int, heads: Sequence[int]) -> AbstractContextManager[None]:
        """Run with the outputs of these heads of a layer set to 0."""
