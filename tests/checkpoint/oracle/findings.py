"""Every finding about weights, measured of a small random checkpoint: a result or a sentence, never an exception."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from threadpoolctl import threadpool_limits

from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import in_folder
from generators.compute.jobs import MEASURING_THREADS
from generators.compute.plan import Opened, inputs, plan
from generators.compute.running import RunSettings
from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.findings.helix import chance
from generators.findings.inputs import RUN, NotApplicableError
from tests.checkpoint.oracle.cases import OracleCase
from tests.checkpoint.oracle.model import build

ABOUT_WEIGHTS = tuple(finding for finding in FINDINGS if RUN not in finding.needs)
FEW = 99  # draws of chance, of which one is the 99th percentile
COMPUTED = "computed"
SENTENCE = re.compile(r"[A-Z].*\.", re.DOTALL)


def outcomes_of(case: OracleCase) -> dict[str, str]:
    """Return what comes of each finding about weights in the small random checkpoint of a case.

    Raises whatever a finding raises. ValueError: what should be a sentence is none.
    """
    with tempfile.TemporaryDirectory() as folder:
        build(case).save_pretrained(folder)
        found = outcomes(Path(folder), case.stack)
    for name, outcome in found.items():
        if outcome != COMPUTED and not SENTENCE.fullmatch(outcome):
            raise ValueError(f"{name} of {case.name}: {outcome!r} is no sentence")
    return found


def outcomes(folder: Path, stack: str | None) -> dict[str, str]:
    """Return what comes of each finding about weights: "computed", or the sentence that says why it can't be.

    Raises whatever a finding raises.
    """
    files = in_folder(folder, stack=stack)
    source = FolderSource(folder=folder)
    model = Model(name="small" + (f"--{stack}" if stack else ""), title="Small", sources=(source,), stack=stack)
    opened = Opened(model, files, open_checkpoint(files), RunSettings(skip=True))
    with _few_draws(), threadpool_limits(MEASURING_THREADS):
        return {finding.name: _outcome(finding, opened) for finding in ABOUT_WEIGHTS}


def _outcome(finding: Finding[Any], opened: Opened) -> str:
    planned = plan(finding, opened)
    if planned.reason is not None:
        return planned.reason
    try:
        finding.measure(inputs(finding, opened))
    except NotApplicableError as error:
        return str(error)
    return COMPUTED


@contextmanager
def _few_draws() -> Iterator[None]:
    with patch.object(chance, "DRAWS", FEW):
        yield
