"""Findings of real weights, measured in this process when a test first asks for one, and what tests read in them.

`tests/test_stored_numbers.py` measures two models anew and compares them with what git keeps. Of these, a finding
that git keeps under the key that it has today isn't measured here once more.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generators.checkpoint.registry import load_registry
from generators.checkpoint.sources import Places
from generators.compute.judged import judged_finding
from generators.compute.plan import Opened, inputs, open_model, plan
from generators.compute.results import Store
from generators.findings import FINDINGS
from generators.findings.judging import Claim
from generators.findings.measured import Measurements
from tests.conftest import ROOT

COMPARED = ("gpt2", "all-minilm-l6-v2")  # by tests/test_stored_numbers.py


@dataclass(frozen=True)
class Found:
    """What one finding of one model came to; `status` and `reason` as they are published."""

    status: str
    reason: str | None
    measured: Measurements | None
    claims: Mapping[str, Claim]

    @property
    def metrics(self) -> Any:
        assert self.measured is not None, self.reason
        return self.measured.metrics

    def verdicts(self) -> dict[str, str]:
        return {name: claim.verdict for name, claim in self.claims.items()}


@dataclass(frozen=True)
class RealModel:
    """A model of the registry whose weights are here."""

    name: str
    folder: Path | None = None  # that holds a folder of its name

    @property
    def opened(self) -> Opened:
        return _opened(self.name, self.folder)

    def tensor(self, role: str) -> np.ndarray:
        """Return a tensor in float64, stream side first."""
        return self.opened.checkpoint[role].astype(np.float64)

    def __getitem__(self, finding: str) -> Found:
        return _found(self.name, self.folder, finding)


@cache
def _opened(name: str, folder: Path | None) -> Opened:
    model = load_registry(ROOT / "models.yml").find(name)
    assert model is not None
    return open_model(model, Places(() if folder is None else (folder,)))


@cache
def _found(name: str, folder: Path | None, of: str) -> Found:
    (finding,) = (finding for finding in FINDINGS if finding.name == of)
    opened = _opened(name, folder)
    planned = plan(finding, opened)
    if planned.status != "computed":
        claims = finding.untested(planned.reason or "")
        return Found(planned.status, planned.reason, None, {claim.id: claim for claim in claims})
    if name in COMPARED:
        kept = judged_finding(Store(ROOT / "results"), name, finding)
        if kept.record.key == planned.key and kept.measured is not None:
            return Found("computed", None, kept.measured, {claim.id: claim for claim in kept.claims})
    measured = finding.measure(inputs(finding, opened))
    return Found("computed", None, measured, {claim.id: claim for claim in finding.claims(measured)})


# Values as they are written down


def assert_shown(value: float, shown: str) -> None:
    """Check that a value, rounded to as many digits as are shown, is what is shown."""
    digits = len(shown.partition(".")[2])
    assert f"{value:.{digits}f}" == shown


def row(name: str, shown: str, read: Callable[[Any], float]) -> Any:
    """Return one parameter: how a value is read from metrics, and what it is."""
    return pytest.param(read, shown, id=name)


def shows(finding: str, **models: list[Any]) -> Callable[..., None]:
    """Return a test that the numbers of a finding are those that are written down, by the fixture of each model."""
    rows = [
        pytest.param(model, *one.values, id=f"{model}-{one.id}") for model, listed in models.items() for one in listed
    ]

    @pytest.mark.parametrize(("model", "read", "shown"), rows)
    def shows_them(model: str, read: Callable[[Any], float], shown: str, request: pytest.FixtureRequest) -> None:
        assert_shown(read(request.getfixturevalue(model)[finding].metrics), shown)

    return shows_them


def judges(finding: str, **models: str) -> Callable[..., None]:
    """Return a test that all claims of a finding, in their order, come to the verdicts that are written down."""

    @pytest.mark.parametrize(("model", "verdicts"), models.items(), ids=models)
    def judges_so(model: str, verdicts: str, request: pytest.FixtureRequest) -> None:
        assert [*request.getfixturevalue(model)[finding].verdicts().values()] == verdicts.split()

    return judges_so


def each(name: str, values: str, read: Callable[[Any], list[float]]) -> Iterator[Any]:
    """Yield one parameter for each of several values that stand in a list."""
    for index, value in enumerate(values.split()):
        yield row(f"{name}-{index + 1}", value, lambda metrics, i=index: read(metrics)[i])
