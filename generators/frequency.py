"""Token log-frequencies and where they come from, best source first."""

from dataclasses import dataclass

from jaxtyping import Float
from numpy import ndarray as Array


@dataclass(frozen=True)
class Frequency:
    """How often each token occurs, as far as one source can tell.

    `log_frequency` is log(count + 1) or a log of relative frequency, NaN for tokens that the source can't speak
    about; `coverage` is the share of tokens that it can. `label` is how a page names the source. A `proxy` is no
    frequency but something that goes with it (the token index).
    """

    source: str
    label: str
    log_frequency: Float[Array, " V"]
    coverage: float
    proxy: bool
    digest: str
