"""Every finding about weights, measured of a small random checkpoint: a result or a sentence, never an exception."""

import re
import tempfile
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
    """Return of each finding about weights "computed", or the sentence that says why it can't be.

    Raises whatever a finding raises. ValueError: what should be a sentence is none.
    """
    with (
        tempfile.TemporaryDirectory() as name,
        patch.object(chance, "DRAWS", FEW),
        threadpool_limits(MEASURING_THREADS),
    ):
        build(case).save_pretrained(name)
        files = in_folder(Path(name), stack=case.stack)
        called = "small" + (f"--{case.stack}" if case.stack else "")
        model = Model(name=called, title="Small", sources=(FolderSource(folder=Path(name)),), stack=case.stack)
        opened = Opened(model, files, open_checkpoint(files), RunSettings(skip=True))
        found = {finding.name: _outcome(finding, opened) for finding in ABOUT_WEIGHTS}
    for finding, outcome in found.items():
        if outcome != COMPUTED and not SENTENCE.fullmatch(outcome):
            raise ValueError(f"{finding} of {case.name}: {outcome!r} is no sentence")
    return found


def _outcome(finding: Finding[Any], opened: Opened) -> str:
    planned = plan(finding, opened)
    if planned.reason is not None:
        return planned.reason
    try:
        finding.measure(inputs(finding, opened))
    except NotApplicableError as error:
        return str(error)
    return COMPUTED
