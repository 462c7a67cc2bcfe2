from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Positions = Literal["learned", "formula", "rotary", "alibi", "relative", "none"]
Norm = Literal["layer", "rms"]


@dataclass(frozen=True)
class Rotary:
    """How positions turn the queries and keys of a layer: in pairs of channels, each at its own speed.

    `periods` are positions per turn, one per pair, as the config's scaling leaves them; the pairs are made of the
    first `dim` channels of a head: neighbours if `adjacent`, otherwise channel c with channel c + dim / 2.
    `strength` multiplies what is turned (YaRN and its kin); 1 elsewhere.
    """

    dim: int
    periods: tuple[float, ...]
    adjacent: bool = False
    scaling: str = "default"
    strength: float = 1.0


@dataclass(frozen=True)
class Buckets:
    """How distances map to rows of a table of relative biases (T5): one each nearby, logarithmic farther away."""

    count: int
    max_distance: int
    both_ways: bool


@dataclass(frozen=True)
class Architecture:
    """Sizes in channels, layers, heads, positions, tokens; what `config.json` says of how they are put together.

    `n_ctx` is None where positions have no table and the config no limit, `vocab_size` where there are no tokens
    (images, sound). Padding rows are not counted as positions.
    """

    family: str
    n_layer: int
    n_head: int
    d_model: int
    n_ctx: int | None
    vocab_size: int | None
    d_head: int
    norm_eps: float
    causal: bool
    post_norm: bool
    scaled_by_layer: bool = False  # attention scores of layer i are also divided by i + 1
    n_kv_head: int | None = None  # heads of keys and values, if shared by several queries
    tied: bool = True  # the output embedding is the token embedding
    positions: Positions = "learned"
    norm: Norm = "layer"
    score_scale: float | None = None  # factor of attention scores; None: 1 / sqrt(d_head)
    score_cap: float | None = None  # scores s become cap tanh(s / cap)
    rotary: tuple[Rotary | None, ...] = ()  # one per layer, None where a layer has no positions
    slopes: tuple[float, ...] = ()  # ALiBi: what a score loses per position of distance, one per head
    buckets: Buckets | None = None  # buckets of relative biases
    windows: tuple[int | None, ...] = ()  # one per layer: how many keys a query sees on a side, itself included
    shares_block: bool = False  # one block is used in all layers
    d_embedding: int | None = None  # width of the embeddings where it isn't d_model
    embedding_scale: float = 1.0  # factor of token embeddings before positions are added
    # The settings of config.json from which rotations, slopes and scales were computed, and the sizes that they use.
    stated: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def sizes(self) -> dict[str, int]:
        """Return the length of every axis name that `Slot.shape` uses and the architecture fixes."""
        heads = self.n_kv_head or self.n_head
        known = {
            "n": self.n_ctx,
            "V": self.vocab_size,
            "d": self.d_model,
            "e": self.d_embedding or self.d_model,
            "a": self.n_head * self.d_head,
            "b": heads * self.d_head,
            "h": self.n_head,
            "g": heads,
            "c": self.d_head,
        }
        return {axis: size for axis, size in known.items() if size is not None}
