"""`make stored`: findings that run a model, measured anew and compared with what git keeps: results/stored.json.

How far a number may move follows from what instruction sets do: each finding is measured with those of this processor
and, in a process of its own, without them (ATEN_CPU_CAPABILITY=default).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from tests.nulls import ROOT, today, write_record
from tests.test_stored_numbers import STORED, differences, measured_run, stored

RECORD = ROOT / "results" / "stored.json"
MODELS = ("stdlib-gpt2", "stdlib-rotary", "all-minilm-l6-v2")
RUNNING = [finding for finding in FINDINGS if RUN in finding.needs]
PLAIN = {"ATEN_CPU_CAPABILITY": "default"}


def moves(models: list[str], only: list[str]) -> dict[str, dict[str, tuple[float, str]]]:
    found: dict[str, dict[str, tuple[float, str]]] = {}
    for model in models:
        for finding in RUNNING:
            record = STORED.finding(model, finding.name)
            if record is None or record.status != "computed" or (only and finding.name not in only):
                continue
            moved = differences(measured_run(finding, model), stored(record, model))
            found.setdefault(finding.name, {})[model] = max(moved, default=(0.0, ""))
            print(f"{model} {finding.name}: {found[finding.name][model]}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--only", nargs="*", default=[], help="findings; by default all that run a model")
    parser.add_argument("--here", action="store_true", help="print the moves under this environment as JSON")
    parser.add_argument("--write", action="store_true", help="write results/stored.json")
    asked = parser.parse_args()
    if asked.here:
        print(json.dumps(moves(asked.models, asked.only)))
        return
    given = [sys.executable, "-m", "tests.stored", "--here", "--models", *asked.models, "--only", *asked.only]
    with tempfile.TemporaryDirectory() as cache:
        as_it_is, plain = (
            json.loads(subprocess.run(given, env=os.environ | more, check=True, stdout=subprocess.PIPE).stdout)
            for more in ({"ATLAS_CACHE": cache}, {"ATLAS_CACHE": cache, **PLAIN})
        )
    limits = {
        name: {"moved": max(as_it_is[name].values()), "between_instruction_sets": max(plain[name].values())}
        for name in as_it_is
    }
    for name, found in limits.items():
        print(name, found)
    if asked.write:
        write_record(RECORD, {**today(), "models": asked.models, "findings": limits})


if __name__ == "__main__":
    main()
