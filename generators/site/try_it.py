"""What a browser computes from when a reader blurs a model's positions: scores of positions, matrices of heads."""

from base64 import b64encode
from typing import Any

import numpy as np
from numpy import ndarray as Array

from generators.base.plain import as_compact_json, plain
from generators.site.staging import Staging
from generators.site.view import ModelPage

FINDING = "blurred"


def write_trial(page: ModelPage, staging: Staging) -> None:
    """Write a file of a model's positions and one of each layer's heads; nothing where it has no reduction."""
    measured = next((s.measured for s in page.sections if s.finding.name == FINDING), None)
    if measured is None or "reduced_heads" not in measured.arrays:
        return
    arrays, metrics, model = measured.arrays, measured.metrics, page.findings.model
    folder = f"data/{page.name}/trial"
    staging.write(f"{folder}.json", as_compact_json(_positions(arrays, metrics, model.n_head)))
    matrices = arrays["reduced_heads"]
    for layer in range(len(matrices) // model.n_head):
        of_layer = matrices[layer * model.n_head : (layer + 1) * model.n_head]
        errors = [[row["error"], row["error_in_groups"]] for row in metrics["heads"] if row["layer"] == layer]
        staging.write(f"{folder}-{layer}.json", as_compact_json({"matrices": _packed(of_layer), "errors": errors}))


def _positions(arrays: dict[str, Array], metrics: Any, n_head: int) -> dict[str, Any]:
    mean_norm, width, eps = plain(arrays["reduced_norm"])
    best = max(metrics["heads"], key=lambda row: row["as_they_are"])
    return {
        "n": len(arrays["reduced_scores"]),
        "components": arrays["reduced_scores"].shape[1],
        "layers": len(arrays["reduced_heads"]) // n_head,
        "heads": n_head,
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
