"""Gains: do the norms dial the position channels down, and does ln2 single out one channel?

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights": layer-0 gains dial position channels down,
and channel 138 stands out in most LN2 layers.
"""

from collections import Counter
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.drawing import style
from generators.findings.finding import NO_TOKENS, Claim, Figure, Finding, Result, Table, TokenFacts, Weights
from generators.findings.thresholds import judge, untested
from generators.maths.spectra import pearson
from generators.checkpoint.families import Architecture

NORMS = ("ln1", "ln2")
TOP = 5
SMALLEST_RATIO = 1.1


def compute(weights: Weights, architecture: Architecture, tokens: TokenFacts = NO_TOKENS) -> Result:
    """Compute how the gains of every norm relate to positions and which channels they raise.

    Args:
        weights: `blocks.*.ln1.gain` and `blocks.*.ln2.gain` (d,); `position_embedding` (n, d) when there.
        architecture: the number of layers.
    """
    gains = {
        norm: {
            layer: np.abs(np.asarray(weights[f"blocks.{layer}.{norm}.gain"], np.float64))
            for layer in range(architecture.n_layer)
            if f"blocks.{layer}.{norm}.gain" in weights
        }
        for norm in NORMS
    }
    std = _position_std(weights)
    rows = [_describe(norm, layer, gain, std) for norm in NORMS for layer, gain in gains[norm].items()]
    metrics = {
        "correlation": {
            norm: {str(row["layer"]): row["correlation"] for row in rows if row["norm"] == norm} for norm in NORMS
        },
        "consistent_channel": {norm: consistent_channel(list(gains[norm].values())) for norm in NORMS},
        "n_layers": architecture.n_layer,
    }
    columns = ("norm", "layer", "correlation", "top_channels", "ratio_to_runner_up")
    table = Table(
        "Every norm: correlation with position std and its largest gains",
        columns,
        tuple(tuple(row[column] for column in columns) for row in rows),
    )
    arrays = {
        f"{norm}_gain": np.stack(list(gains[norm].values())).astype(np.float32) for norm in NORMS if gains[norm]
    }
    arrays |= {f"{norm}_layers": np.array(list(gains[norm]), np.int32) for norm in NORMS}
    if std is not None:
        arrays["position_std"] = std.astype(np.float32)
    return Result(metrics, {"norms": table}, arrays)


def _position_std(weights: Weights) -> Float[Array, " d"] | None:
    if "position_embedding" not in weights:
        return None
    return np.asarray(weights["position_embedding"], np.float64)[1:].std(axis=0)


def _describe(norm: str, layer: int, gain: Float[Array, " d"], std: Float[Array, " d"] | None) -> dict[str, Any]:
    top = np.argsort(gain)[::-1][:TOP]
    return {
        "norm": norm,
        "layer": layer,
        "correlation": None if std is None else log_correlation(std, gain),
        "top_channels": [int(channel) for channel in top] if np.ptp(gain) else None,
        "ratio_to_runner_up": _ratio(gain),
    }


def log_correlation(std: Float[Array, " d"], gain: Float[Array, " d"]) -> float | None:
    """Return Pearson's correlation of log10 std with log10 |gain|, channels at exactly 0 left out."""
    both = (std > 0) & (gain > 0)
    return pearson(np.log10(std[both]), np.log10(gain[both])) if both.sum() > 2 else None


def _ratio(gain: Float[Array, " d"]) -> float | None:
    if len(gain) < 2:
        return None
    runner_up, largest = np.sort(gain)[-2:]
    return float(largest / runner_up) if runner_up > 0 and np.ptp(gain) else None


def consistent_channel(gains: list[Float[Array, " d"]]) -> dict[str, Any] | None:
    """Return the channel with the largest |gain| in most layers, and its ratios to the runner-up there.

    Args:
        gains: |gain| of one norm per layer, each (d,).

    Returns:
        {channel, layers_topped, n_layers, ratios}, None where every gain is constant. Of channels that top
        equally many layers, the one with the larger median ratio counts.
    """
    tops = [(int(np.argmax(gain)), _ratio(gain)) for gain in gains if np.ptp(gain)]
    if not tops:
        return None
    counts = Counter(channel for channel, _ in tops)
    ratios = {channel: [ratio for top, ratio in tops if top == channel and ratio is not None] for channel in counts}
    best = max(counts, key=lambda c: (counts[c], np.median(ratios[c]) if ratios[c] else 0, -c))
    return {
        "channel": best,
        "layers_topped": counts[best],
        "n_layers": len(gains),
        "ratios": ratios[best],
    }


def claims(result: Result) -> list[Claim]:
    """Judge whether the first norm dials positions down and whether ln2 singles out one channel."""
    return [_dials_down(result.metrics), _one_channel(result.metrics)]


def _dials_down(m: dict[str, Any]) -> Claim:
    if "0" not in m["correlation"]["ln1"]:
        return untested("ln1-dials-down", "No norm stands before the first attention, or its gain isn't here.")
    value = m["correlation"]["ln1"]["0"]
    if value is None:
        return untested(
            "ln1-dials-down", "There is no position embedding here to compare with, or the gain is constant."
        )
    how = f"The first norm's log gains correlate at {value:+.2f} with the log position std of their channels"
    return judge(
        "ln1-dials-down",
        value,
        {
            "holds": f"{how}: channels that carry position are turned down.",
            "partly": f"{how}: channels that carry position are turned down somewhat.",
            "fails": f"{how}: channels that carry position are not turned down.",
        },
        baseline=0.0,
    )


def _one_channel(m: dict[str, Any]) -> Claim:
    found = m["consistent_channel"]["ln2"]
    if found is None:
        return untested("ln2-one-channel", "The gains of ln2 are constant or not in this checkpoint.")
    layers, topped = found["n_layers"], found["layers_topped"]
    median = float(np.median(found["ratios"])) if found["ratios"] else None
    ratio = "" if median is None else f", by a median factor of {median:.2f} over the runner-up"
    answer = f"Channel {found['channel']} has the largest |gain| of ln2 in {topped} of {layers} layers{ratio}."
    return judge(
        "ln2-one-channel",
        topped,
        {"fails": answer},
        baseline=1.0,
        holds_at=max(3, layers / 2),
        partly_at=max(2, layers / 4),
        also=median is not None and median >= SMALLEST_RATIO,
    )


def figures_of(result: Result) -> list[Figure]:
    """Return gain against position std for every layer, ln1 and ln2, and the correlations by layer."""
    m, arrays = result.metrics, result.arrays
    shown = []
    for norm in NORMS:
        if f"{norm}_gain" not in arrays:
            continue
        found = m["consistent_channel"][norm]
        marked = (
            f"Channel {found['channel']}, ringed, has the largest gain in {found['layers_topped']} of "
            f"{found['n_layers']} layers."
            if found
            else "The gains are constant."
        )
        scale = "(logarithmic)" if norm == "ln1" else "(linear, so that a channel far above the rest is seen)"
        before = "attention" if norm == "ln1" else "the MLP"
        beside = (
            "the channel's position std (logarithmic)" if "position_std" in arrays else "channel number (no P here)"
        )
        shown.append(
            Figure(
                f"gains-{norm}",
                f"Gains of {norm}, the norm before {before}",
                f"One panel per layer, one dot per channel: |gain| {scale} against {beside}. Dots that fall to the "
                "right mean that channels with position are turned down. The ring marks the channel that has the "
                "largest gain in the most layers.",
                f"|gain| of {norm} in {len(arrays[f'{norm}_gain'])} layers. {marked}",
                lambda norm=norm, found=found: draw_gains(arrays, norm, found),  # type: ignore[misc]
            )
        )
    if "position_std" in arrays:
        values = [v for norm in NORMS for v in m["correlation"][norm].values() if v is not None]
        spread = f"from {min(values):+.2f} to {max(values):+.2f}" if values else "undefined: constant gains"
        shown.append(
            Figure(
                "gain-correlation",
                "Which norms turn positions down",
                "Correlation of log gain with log position std in every layer. Below 0, channels that carry "
                "position are turned down; chance is 0.",
                f"Correlations by layer, {spread}.",
                lambda: draw_correlations(m["correlation"]),
            )
        )
    return shown


def draw_gains(arrays: dict[str, Array], norm: str, found: dict[str, Any] | None) -> Any:
    """Draw one scatter panel per layer with the consistent channel ringed."""
    from matplotlib.ticker import NullFormatter

    gains, layers = arrays[f"{norm}_gain"], arrays[f"{norm}_layers"]
    columns = min(4, len(gains))
    rows = -(-len(gains) // columns)
    figure = style.canvas(width=2.05 * columns + 0.6, height=1.8 * rows + 0.5)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    std = arrays.get("position_std")
    x = np.arange(gains.shape[1]) if std is None else np.where(std > 0, std, np.nan)
    for panel, ax in enumerate(axes.flat):
        if panel >= len(gains):
            ax.set_visible(False)
            continue
        ax.plot(x, gains[panel], ".", ms=2.5, alpha=0.6, color=style.COLOURS[0], rasterized=True)
        if found:
            channel = found["channel"]
            ax.plot(x[channel], gains[panel][channel], "o", ms=8, mfc="none", color=style.COLOURS[1])
        if std is not None:
            ax.set_xscale("log")
        if norm == "ln1":
            ax.set_yscale("log")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.tick_params(labelbottom=panel + columns >= len(gains))
        ax.set_title(f"layer {layers[panel]}")
    figure.supxlabel("position std of the channel" if std is not None else "channel")
    figure.supylabel("|gain|")
    return figure


def draw_correlations(correlation: dict[str, dict[str, float | None]]) -> Any:
    """Draw the correlation of each norm by layer."""
    figure = style.canvas(width=6.4, height=3.2)
    ax = figure.add_subplot()
    for index, norm in enumerate(NORMS):
        layers = [int(layer) for layer, value in correlation[norm].items() if value is not None]
        values = [value for value in correlation[norm].values() if value is not None]
        ax.plot(layers, values, "os"[index] + "-", ms=5, lw=1.2, color=style.COLOURS[index], label=norm)
    ax.axhline(0, color=style.INK, lw=0.8, alpha=0.6)
    ax.set_ylim(-1, 1)
    ax.set_xlabel("layer")
    ax.set_ylabel("correlation, log gain with log position std")
    ax.legend()
    return figure


GAINS = Finding(
    name="gains",
    title="Gains",
    version=1,
    needs=("blocks.*.ln2.gain",),
    uses=("blocks.*.ln1.gain", "position_embedding"),
    parameters={},
    compute=compute,
    claims=claims,
    figures=figures_of,
    signature="gains-ln2",
)
