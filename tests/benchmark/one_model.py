"""All weight findings of one checkpoint in a process of its own: seconds of the processor and peak memory, as JSON.

python -m tests.benchmark.one_model FOLDER
"""

import json
import sys
from pathlib import Path

from threadpoolctl import threadpool_limits

from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.registry import FolderSource, Frequency, Model
from generators.checkpoint.sources import in_folder
from generators.compute.plan import Opened, inputs, plan
from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.findings.inputs import RUN
from tests.benchmark.timing import processor_seconds_of
from tests.process_memory import most_memory


def opened_in(folder: Path, frequency: Frequency = "index") -> Opened:
    """Return the checkpoint of a folder, open; `frequency` names where frequencies of tokens are from."""
    files = in_folder(folder)
    model = Model(name=folder.name, title=folder.name, sources=(FolderSource(folder=folder),), frequency=frequency)
    return Opened(model, files, open_checkpoint(files))


def of_weights(opened: Opened) -> list[Finding]:
    """Return the findings that this checkpoint allows and that run nothing."""
    return [f for f in FINDINGS if RUN not in f.needs and plan(f, opened).key is not None]


def main() -> None:
    """Measure every finding and print what it takes."""
    opened = opened_in(Path(sys.argv[1]))
    found = of_weights(opened)
    before = most_memory()
    with threadpool_limits(1):
        seconds = {f.name: processor_seconds_of(lambda f=f: f.measure(inputs(f, opened)))[0] for f in found}
    print(json.dumps({"findings": seconds, "before": before, "peak": most_memory()}))


if __name__ == "__main__":
    main()
