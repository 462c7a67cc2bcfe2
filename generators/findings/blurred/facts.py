from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.base.plain import plain
from generators.findings.blurred.measure import BlurredMetrics
from generators.findings.facts import Facts
from generators.findings.measured import Measurements


def trial(found: Measurements[BlurredMetrics]) -> dict[str, Any]:
    if "reduced_heads" not in found.arrays:
        return {}
    each, matrices = found.metrics["heads"], found.arrays["reduced_heads"]
    layers = 1 + max(row["layer"] for row in each)
    files: dict[str, Any] = {"trial": _positions(found.arrays, found.metrics, layers)}
    for layer, of_layer in enumerate(np.split(matrices, layers)):
        errors = [[row["error"], row["error_in_groups"]] for row in each if row["layer"] == layer]
        files[f"trial-{layer}"] = {"matrices": _packed(of_layer), "errors": errors}
    return files


def _positions(arrays: Mapping[str, Array], metrics: BlurredMetrics, layers: int) -> dict[str, Any]:
    mean_norm, width, eps = plain(arrays["reduced_norm"])
    best = max(metrics["heads"], key=lambda row: row["as_they_are"])
    return {
        "n": len(arrays["reduced_scores"]),
        "components": arrays["reduced_scores"].shape[1],
        "layers": layers,
        "heads": len(arrays["reduced_heads"]) // layers,
        "causal": metrics["causal"],
        "group": metrics["group"],
        "best": [best["layer"], best["head"]],
        "along_mean": plain(arrays["reduced_along_mean"]),
        "mean_norm": mean_norm,
        "width": width,
        "eps": eps,
        "scores": _packed(arrays["reduced_scores"]),
    }


def _packed(array: Array) -> str:
    """Return numbers in half precision, little-endian, row by row, in base64."""
    return b64encode(array.astype(np.dtype("<f2")).tobytes()).decode("ascii")


FACTS = Facts(files=trial)
