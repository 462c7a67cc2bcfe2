"""The numbers of a model that findings need beside its weights."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """Sizes in channels, layers, heads, positions, tokens; what `config.json` says of how they are put together."""

    family: str
    n_layer: int
    n_head: int
    d_model: int
    n_ctx: int
    vocab_size: int
    d_head: int
    norm_eps: float
    causal: bool
    post_norm: bool
    scaled_by_layer: bool = False  # attention scores of layer i are divided by i + 1 too
    n_kv_head: int | None = None  # fewer heads of keys and values than of queries, where they are shared
    tied: bool = True  # the output embedding is the token embedding

    def sizes(self) -> dict[str, int]:
        """Return the length of every axis name that `Slot.shape` uses and the architecture fixes."""
        heads = self.n_kv_head or self.n_head
        return {
            "n": self.n_ctx,
            "V": self.vocab_size,
            "d": self.d_model,
            "a": self.n_head * self.d_head,
            "b": heads * self.d_head,
        }
