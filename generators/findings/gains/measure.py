"""How the gains of every norm relate to positions, and which channels they raise."""

from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.contract import Inputs, Measurements, Weights, table_of
from generators.maths.channels import ConsistentChannel, consistent_channel, ratio_to_runner_up
from generators.maths.ranks import pearson

Norm = Literal["ln1", "ln2"]
NORMS: tuple[Norm, ...] = ("ln1", "ln2")
TOP = 5


class Metrics(TypedDict):
    """Numbers by norm; a layer is a key as JSON writes it."""

    correlation: dict[Norm, dict[str, float | None]]
    consistent_channel: dict[Norm, ConsistentChannel | None]
    n_layers: int


class NormRow(TypedDict):
    """One norm of one layer."""

    norm: Norm
    layer: int
    correlation: float | None
    top_channels: list[int] | None
    ratio_to_runner_up: float | None


def measure(inputs: Inputs) -> Measurements[Metrics]:
    """Measure how the gains of every norm relate to positions and which channels they raise.

    Reads `blocks.*.ln1.gain` and `blocks.*.ln2.gain` (d,), and `position_embedding` (n, d) when there.
    """
    gains = {norm: _gains(inputs, norm) for norm in NORMS}
    std = _position_std(inputs.weights)
    rows = [_describe(norm, layer, gain, std) for norm in NORMS for layer, gain in gains[norm].items()]
    metrics = Metrics(
        correlation={
            norm: {str(row["layer"]): row["correlation"] for row in rows if row["norm"] == norm} for norm in NORMS
        },
        consistent_channel={norm: consistent_channel(list(gains[norm].values())) for norm in NORMS},
        n_layers=inputs.architecture.n_layer,
    )
    title = "Every norm: correlation with position std and its largest gains"
    return Measurements(metrics, {"norms": table_of(title, list(NormRow.__annotations__), rows)}, _arrays(gains, std))


def _gains(inputs: Inputs, norm: Norm) -> dict[int, Float[Array, " d"]]:
    """Return |gain| by layer, of the layers that have it."""
    roles = {layer: f"blocks.{layer}.{norm}.gain" for layer in range(inputs.architecture.n_layer)}
    return {
        layer: np.abs(np.asarray(inputs.weights[role], np.float64))
        for layer, role in roles.items()
        if role in inputs.weights
    }


def _position_std(weights: Weights) -> Float[Array, " d"] | None:
    if "position_embedding" not in weights:
        return None
    return np.asarray(weights["position_embedding"], np.float64)[1:].std(axis=0)


def _describe(norm: Norm, layer: int, gain: Float[Array, " d"], std: Float[Array, " d"] | None) -> NormRow:
    top = np.argsort(gain)[::-1][:TOP]
    return {
        "norm": norm,
        "layer": layer,
        "correlation": None if std is None else log_correlation(std, gain),
        "top_channels": [int(channel) for channel in top] if np.ptp(gain) else None,
        "ratio_to_runner_up": ratio_to_runner_up(gain),
    }


def log_correlation(std: Float[Array, " d"], gain: Float[Array, " d"]) -> float | None:
    """Return Pearson's correlation of log10 std with log10 |gain|, channels at exactly 0 left out."""
    both = (std > 0) & (gain > 0)
    return pearson(np.log10(std[both]), np.log10(gain[both])) if both.sum() > 2 else None


def _arrays(gains: dict[Norm, dict[int, Float[Array, " d"]]], std: Float[Array, " d"] | None) -> dict[str, Array]:
    arrays: dict[str, Array] = {
        f"{norm}_gain": np.stack(list(gains[norm].values())).astype(np.float32) for norm in NORMS if gains[norm]
    }
    arrays |= {f"{norm}_layers": np.array(list(gains[norm]), np.int32) for norm in NORMS}
    if std is not None:
        arrays["position_std"] = std.astype(np.float32)
    return arrays
