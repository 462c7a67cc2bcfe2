"""Subspaces: do tokens and positions keep apart in the residual stream?

Observed by James Simon, "Insights into GPT-2's positional encodings" (capture, the overlap heatmap); Adam Scherlis,
"An exploration of GPT-2's embedding weights" (token/position rivalry).
"""

from math import ceil
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.finding import (
    NO_TOKENS,
    Claim,
    Figure,
    Finding,
    NotApplicableError,
    Result,
    Table,
    TokenFacts,
    Weights,
)
from generators.findings.thresholds import judge
from generators.maths.spectra import block_means, gram, squared_overlaps, subspace_size, svd
from generators.base.architecture import Architecture

HEATMAP_PIXELS = 128
BLUR = 1.0  # pixels of the heatmap
LARGEST_LOG_RATIO = 1.0  # of squared overlap to chance, beyond which the heatmap's colours saturate


def compute(weights: Weights, architecture: Architecture, tokens: TokenFacts = NO_TOKENS) -> Result:
    """Compute how the directions of P and of E share the stream.

    Args:
        weights: `position_embedding` (n, d) and `token_embedding` (V, d).
        architecture: not used beyond its existence.
        tokens: not used.

    Raises:
        NotApplicableError: P or E does not vary.
    """
    P = np.asarray(weights["position_embedding"], np.float64)
    E = weights["token_embedding"]
    n, d = P.shape
    k, tail = subspace_size(n, d), ceil(d / 10)
    total = gram(E)
    energy, right_E = _spectrum(total)
    mean = E.mean(axis=0, dtype=np.float64)
    centred = total - len(E) * np.outer(mean, mean)
    _, s_P, right_P = svd(P)
    positions = P[1:] - P[1:].mean(axis=0)
    if not positions.any() or np.trace(centred) <= 1e-12 * energy.sum():
        raise NotApplicableError("Positions or tokens do not vary: there is nothing to keep apart.")
    top = right_P[:k]
    capture = np.sum((top @ right_E) ** 2, axis=0)
    quiet = _spectrum(centred)[1][:, -tail:]
    overlaps = squared_overlaps(right_P.T, right_E)
    metrics = {
        "k": k,
        "chance_share": k / d,
        "singular_values_P": s_P.tolist(),
        "singular_values_E": np.sqrt(energy).tolist(),
        "capture": capture.tolist(),
        "capture_head": float(capture[:tail].mean()),
        "capture_tail": float(capture[-tail:].mean()),
        "token_energy_share": {
            "uncentred": float(np.trace(top @ total @ top.T) / energy.sum()),
            "centred": float(np.trace(top @ centred @ top.T) / np.trace(centred)),
        },
        "position_energy_in_tail": float(np.sum((positions @ quiet) ** 2) / np.sum(positions**2)),
        "chance_in_tail": tail / d,
        "rivalry": _rivalry(positions, centred),
        "n_channels": d,
    }
    table = Table(
        "How much of each tenth of E's directions P's top directions capture",
        ("from", "to", "mean_capture", "chance"),
        tuple(
            (int(part[0]) + 1, int(part[-1]) + 1, float(capture[part].mean()), k / d)
            for part in np.array_split(np.arange(d), min(10, d))
        ),
    )
    return Result(metrics, {"capture": table}, {"overlaps": _heatmap(overlaps * d)})


def _spectrum(gram_matrix: Float[Array, "d d"]) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
    """Return squared singular values, largest first, and the right singular vectors as columns."""
    values, vectors = np.linalg.eigh(gram_matrix)
    return np.clip(values[::-1], 0, None), vectors[:, ::-1]


def _rivalry(positions: Float[Array, "n d"], token_gram: Float[Array, "d d"]) -> float:
    """Return d tr(C_P C_E) / (tr C_P tr C_E): 1 for unrelated spreads, 0 for disjoint ones."""
    shared = np.einsum("ij,jk,ik->", positions, token_gram, positions, optimize=True)
    return float(positions.shape[1] * shared / (np.sum(positions**2) * np.trace(token_gram)))


def _heatmap(ratio: Float[Array, "p q"]) -> Float[Array, "a b"]:
    from scipy.ndimage import gaussian_filter

    return gaussian_filter(block_means(ratio, HEATMAP_PIXELS), BLUR).astype(np.float16)


def claims(result: Result) -> list[Claim]:
    """Judge whether tokens and positions keep apart, and whether P sits in E's tail."""
    m = result.metrics
    rivalry, share = m["rivalry"], m["position_energy_in_tail"]
    overlap = f"Tokens and positions overlap {rivalry:.2f} times as much as unrelated ones would"
    tail = (
        f"{share:.1%} of the positions' energy lies in the tenth of the directions where tokens vary least; chance "
        f"gives {m['chance_in_tail']:.1%}"
    )
    return [
        judge(
            "keep-apart",
            rivalry,
            {"holds": f"{overlap}: they keep apart.", "partly": f"{overlap}.", "fails": f"{overlap}."},
            baseline=1.0,
        ),
        judge("p-in-tail", share, {"fails": f"{tail}."}, baseline=m["chance_in_tail"]),
    ]


def figures_of(result: Result) -> list[Figure]:
    """Return the spectra, the capture by index and the overlap heatmap."""
    m = result.metrics
    d, k = m["n_channels"], m["k"]
    return [
        Figure(
            "capture",
            "Which of the tokens' directions the positions take",
            f"Every right singular vector of E, strongest first, and how much of it lies in P's top {k} directions. "
            "The dashed line is chance. High on the right means that positions sit where tokens are quiet.",
            f"Capture of E's {d} directions by P's top {k}: {m['capture_head']:.3f} on average over the first tenth, "
            f"{m['capture_tail']:.3f} over the last; chance is {m['chance_share']:.3f}.",
            lambda: draw_capture(m),
        ),
        Figure(
            "spectra",
            "Singular values of positions and tokens",
            "Both on a logarithmic scale, each as a share of its largest. A line that falls steeply means few "
            "directions; a flat one means many.",
            f"Singular values of P and E. The {k}th of P is {_relative(m['singular_values_P'], k):.3f} of the first, "
            f"that of E {_relative(m['singular_values_E'], k):.3f}.",
            lambda: draw_spectra(m),
        ),
        Figure(
            "direction-overlap",
            "Directions of positions against directions of tokens",
            "Squared overlap of every right singular vector of P (down, strongest first) with every one of E "
            "(across), against chance, lightly blurred: red above, blue below. Red in the upper right corner means "
            "that strong position directions are weak token directions.",
            f"Squared overlaps of P's and E's directions, relative to chance: {_corner(result, 'left'):.2f} in the "
            f"upper left corner, {_corner(result, 'right'):.2f} in the upper right.",
            lambda: draw_overlap(result.arrays["overlaps"]),
        ),
    ]


def _relative(values: list[float], index: int) -> float:
    return values[min(index, len(values)) - 1] / values[0] if values[0] else 0.0


def _corner(result: Result, side: str) -> float:
    """Return the mean of a tenth of the heatmap, in an upper corner."""
    image = result.arrays["overlaps"].astype(np.float64)
    rows, columns = (ceil(size / 10) for size in image.shape)
    return float((image[:rows, :columns] if side == "left" else image[:rows, -columns:]).mean())


def draw_capture(m: dict[str, Any]) -> Any:
    """Draw the capture of every direction of E against its index."""
    figure = style.canvas(width=7.6, height=3.4)
    ax = figure.add_subplot()
    index = np.arange(1, m["n_channels"] + 1)
    ax.plot(index, m["capture"], ".", ms=3.5, color=style.COLOURS[0], rasterized=True)
    ax.axhline(m["chance_share"], ls="--", lw=1, color=style.INK, label=f"chance, {m['chance_share']:.3f}")
    ax.set_xlabel("right singular vector of E (1 is the strongest)")
    ax.set_ylabel(f"share in P's top {m['k']} directions")
    ax.set_ylim(0, None)
    ax.legend()
    return figure


def draw_spectra(m: dict[str, Any]) -> Any:
    """Draw both spectra relative to their largest singular value."""
    figure = style.canvas(width=7.6, height=3.4)
    ax = figure.add_subplot()
    for index, (name, label) in enumerate((("P", "positions"), ("E", "tokens"))):
        values = np.array(m[f"singular_values_{name}"])
        shown = values[values > 1e-7 * values[0]]
        ax.plot(
            np.arange(1, len(shown) + 1), shown / shown[0], color=style.COLOURS[index], label=f"{name}, {label}"
        )
    ax.set_yscale("log")
    ax.set_xlabel("index of the singular value")
    ax.set_ylabel("singular value / largest")
    ax.legend()
    return figure


def draw_overlap(ratio: Float[Array, "a b"]) -> Any:
    """Draw the blurred squared overlaps on a logarithmic colour scale around chance."""
    figure = style.canvas(width=5.6, height=4.4)
    ax = figure.add_subplot()
    image = ax.imshow(
        np.log10(np.maximum(ratio.astype(np.float32), 1e-3)),
        cmap=style.diverging_colours(),
        vmin=-LARGEST_LOG_RATIO,
        vmax=LARGEST_LOG_RATIO,
        aspect="auto",
        extent=(0, 1, 1, 0),
        interpolation="none",
    )
    ax.set_xticks([0, 1], ["strongest", "weakest"])
    ax.set_yticks([0, 1], ["strongest", "weakest"])
    ax.set_xlabel("directions of tokens (E)")
    ax.set_ylabel("directions of positions (P)")
    ax.grid(False)
    bar = figure.colorbar(image, ax=ax, label="squared overlap / chance")
    bar.set_ticks(np.log10([0.1, 0.3, 1, 3, 10]), labels=["1/10", "1/3", "1", "3", "10"])
    return figure


SUBSPACES = Finding(
    name="subspaces",
    title="Subspaces",
    version=1,
    needs=("position_embedding", "token_embedding"),
    uses=(),
    parameters={},
    compute=compute,
    claims=claims,
    figures=figures_of,
    signature="capture",
)
