"""The most memory that measuring each finding of a checkpoint takes, each in a process of its own, and its estimate.

`python -m tests.compute.peaks FOLDER [FINDING ...]` prints a line of JSON for each finding that can be measured.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generators.compute import memory
from generators.compute.jobs import measure
from generators.compute.plan import plan
from generators.compute.running import RunSettings
from generators.findings import FINDINGS
from tests.compute.harness import opened_in
from tests.torture.processes import most_memory

BUDGET_S = 4.0  # for findings that run the model: a window or two of each kind


def of_all(folder: Path, names: list[str]) -> Iterator[dict[str, Any]]:
    """Yield name, peak and estimate, in bytes, of each finding."""
    for name in names or [finding.name for finding in FINDINGS]:
        command = [sys.executable, "-m", "tests.compute.peaks", "--one", str(folder), name]
        said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2])
        if said.stdout:
            yield json.loads(said.stdout.splitlines()[-1])


def of_one(folder: Path, name: str) -> None:
    finding = next(each for each in FINDINGS if each.name == name)
    opened = opened_in(folder, RunSettings(budget_s=BUDGET_S), frequency="wordfreq")
    needed = memory.to_measure(finding, opened)
    planned = plan(finding, opened)
    if planned.key is None:
        return
    opened.checkpoint.let_go()
    with tempfile.TemporaryDirectory() as place:
        record = measure(planned, opened, Path(place), lambda done: None).record
    peak = most_memory()
    print(json.dumps({"finding": name, "status": record.status, "peak": peak, "estimate": needed}))


def main() -> None:
    if sys.argv[1] == "--one":
        of_one(Path(sys.argv[2]), sys.argv[3])
        return
    for line in of_all(Path(sys.argv[1]), sys.argv[2:]):
        ratio = line["estimate"] / line["peak"]
        print(f"{line['finding']:<16} {line['status']:<16} {line['peak'] / 2**20:7.0f} MiB   estimate x {ratio:.2f}")


if __name__ == "__main__":
    main()
