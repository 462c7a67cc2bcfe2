"""How the directions of P and of E share the stream."""

from math import ceil

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.contract import Inputs, Measurements, NotApplicableError, Table, table_of
from generators.maths.spectra import block_means, gram, squared_overlaps, subspace_size, svd

PARTS = 10  # of E's directions: the head and the tail are one each
HEATMAP_PIXELS = 128
BLUR = 1.0  # pixels of the heatmap
NOTHING = 1e-12  # of the tokens' energy, below which their variance is rounding


class EnergyShare(TypedDict):
    """The tokens' energy in P's top directions, with their mean and without."""

    uncentred: float
    centred: float


class Metrics(TypedDict):
    """Spectra of P and E and how their directions overlap; lists are by index, strongest first."""

    k: int
    chance_share: float
    singular_values_P: list[float]
    singular_values_E: list[float]
    capture: list[float]
    capture_head: float
    capture_tail: float
    token_energy_share: EnergyShare
    position_energy_in_tail: float
    chance_in_tail: float
    rivalry: float
    n_channels: int


CaptureRow = TypedDict("CaptureRow", {"from": int, "to": int, "mean_capture": float, "chance": float})


def measure(inputs: Inputs) -> Measurements[Metrics]:
    """Measure how the directions of P and of E share the stream.

    Reads `position_embedding` (n, d) and `token_embedding` (V, d).

    Raises:
        NotApplicableError: P or E does not vary.
    """
    P = np.asarray(inputs.weights["position_embedding"], np.float64)
    n, d = P.shape
    k, tail = subspace_size(n, d), ceil(d / PARTS)
    total, centred = _grams(inputs.weights["token_embedding"])
    positions = P[1:] - P[1:].mean(axis=0)
    energy, right_E = _spectrum(total)
    if not positions.any() or np.trace(centred) <= NOTHING * energy.sum():
        raise NotApplicableError("Positions or tokens do not vary: there is nothing to keep apart.")
    _, s_P, right_P = svd(P)
    top = right_P[:k]
    capture = np.sum((top @ right_E) ** 2, axis=0)
    quiet = _spectrum(centred)[1][:, -tail:]
    metrics = Metrics(
        k=k,
        chance_share=k / d,
        singular_values_P=s_P.tolist(),
        singular_values_E=np.sqrt(energy).tolist(),
        capture=capture.tolist(),
        capture_head=float(capture[:tail].mean()),
        capture_tail=float(capture[-tail:].mean()),
        token_energy_share={
            "uncentred": float(np.trace(top @ total @ top.T) / energy.sum()),
            "centred": float(np.trace(top @ centred @ top.T) / np.trace(centred)),
        },
        position_energy_in_tail=float(np.sum((positions @ quiet) ** 2) / np.sum(positions**2)),
        chance_in_tail=tail / d,
        rivalry=_rivalry(positions, centred),
        n_channels=d,
    )
    overlaps = squared_overlaps(right_P.T, right_E)
    return Measurements(metrics, {"capture": _table(capture, k / d)}, {"overlaps": _heatmap(overlaps * d)})


def _grams(E: Float[Array, "V d"]) -> tuple[Float[Array, "d d"], Float[Array, "d d"]]:
    """Return E^T E and the same of centred rows."""
    total = gram(E)
    mean = E.mean(axis=0, dtype=np.float64)
    return total, total - len(E) * np.outer(mean, mean)


def _spectrum(gram_matrix: Float[Array, "d d"]) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
    """Return squared singular values, largest first, and the right singular vectors as columns."""
    values, vectors = np.linalg.eigh(gram_matrix)
    return np.clip(values[::-1], 0, None), vectors[:, ::-1]


def _rivalry(positions: Float[Array, "n d"], token_gram: Float[Array, "d d"]) -> float:
    """Return d tr(C_P C_E) / (tr C_P tr C_E): 1 for unrelated spreads, 0 for disjoint ones."""
    shared = np.einsum("ij,jk,ik->", positions, token_gram, positions, optimize=True)
    return float(positions.shape[1] * shared / (np.sum(positions**2) * np.trace(token_gram)))


def _table(capture: Float[Array, " d"], chance: float) -> Table:
    parts = np.array_split(np.arange(len(capture)), min(PARTS, len(capture)))
    rows: list[CaptureRow] = [
        {
            "from": int(part[0]) + 1,
            "to": int(part[-1]) + 1,
            "mean_capture": float(capture[part].mean()),
            "chance": chance,
        }
        for part in parts
    ]
    title = "How much of each tenth of E's directions P's top directions capture"
    return table_of(title, list(CaptureRow.__annotations__), rows)


def _heatmap(ratio: Float[Array, "p q"]) -> Float[Array, "a b"]:
    from scipy.ndimage import gaussian_filter

    return gaussian_filter(block_means(ratio, HEATMAP_PIXELS), BLUR).astype(np.float16)
