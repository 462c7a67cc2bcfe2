"""Findings that compute next to nothing and count how often they do."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from generators.findings.finding import Finding, Result

Compute = Callable[[Mapping[str, np.ndarray], Any], Result]


def toy(
    name: str,
    *,
    needs: tuple[str, ...] = ("position_embedding",),
    uses: tuple[str, ...] = (),
    version: int = 1,
    parameters: Mapping[str, float] | None = None,
    compute: Compute | None = None,
    runs: Counter[str] | None = None,
    reads_vocabulary: bool = False,
    reads_frequencies: bool = False,
) -> Finding:
    """Return a finding that sums what it needs and has no claims; `runs` counts its computations by name."""

    def count_and_compute(weights: Mapping[str, np.ndarray], architecture: Any, *_: Any) -> Result:
        if runs is not None:
            runs[name] += 1
        return (compute or _sum)(weights, architecture)

    def _sum(weights: Mapping[str, np.ndarray], _: Any) -> Result:
        total = np.array([float(weights[role].sum()) for role in needs if "*" not in role])
        return Result({"sum": float(total.sum())}, {}, {"sums": total})

    return Finding(
        name=name,
        title=name.title(),
        version=version,
        needs=needs,
        uses=uses,
        parameters=parameters or {},
        compute=count_and_compute,
        claims=lambda result: [],
        figures=lambda result: [],
        signature="",
        reads_vocabulary=reads_vocabulary,
        reads_frequencies=reads_frequencies,
    )
