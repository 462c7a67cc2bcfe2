"""Findings that measure next to nothing and count how often they do."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from typing_extensions import TypedDict

from generators.findings.contract import Finding
from generators.findings.inputs import Inputs
from generators.findings.judging import Evidence, Rule, Untested
from generators.findings.measured import Measurements
from generators.findings.wording import Words


class Metrics(TypedDict):
    sum: float


def toy(
    name: str,
    *,
    needs: tuple[str, ...] = ("position_embedding",),
    measure: Callable[[Inputs], Measurements] | None = None,
    runs: Counter[str] | None = None,
    metrics: type[Any] = Metrics,
    **more: Any,
) -> Finding:
    """Return a finding that sums what it needs; `runs` counts its computations by name, `more` are fields of it."""

    def count_and_measure(inputs: Inputs) -> Measurements:
        if runs is not None:
            runs[name] += 1
        return (measure or _sum)(inputs)

    words = Words(title=name.title(), order=1, question=1)
    return Finding(name, words, needs, metrics, count_and_measure, lambda measured: [], signature="", **more)


def _sum(inputs: Inputs) -> Measurements:
    total = np.array([float(inputs.weights[role].sum()) for role in inputs.weights])
    return Measurements({"sum": float(total.sum())}, {}, {"sums": total})


def positive(threshold: float = 0.0, test: Callable[[Measurements], Evidence | Untested] | None = None) -> Rule:
    return Rule(
        id="positive",
        short="positive",
        statement="The sum is large.",
        value="sum",
        sense="at least",
        holds=threshold,
        answer="It is {{ value | form('.3g') }}.",
        test=test or (lambda measured: Evidence(measured.metrics["sum"])),
    )
