"""`make changed`: which verdicts on stored results differ from those at an earlier commit, and the numbers of both.

Each side judges the results of its own commit by its own rules, the earlier one from a copy of that commit.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.nulls import ROOT

# What judges every model of a folder of results, by the package beside it; it runs at either commit.
JUDGING = """
from pathlib import Path
from generators.compute.judged import judged_model
from generators.compute.results import Store

store = Store(Path("results"))
for folder in sorted(path for path in Path("results").iterdir() if path.is_dir() and path.name != "local"):
    model = judged_model(store, folder.name)
    for claim in [] if model is None else model.published().claims:
        limit = claim.chance and claim.chance.limit
        print(claim.id, folder.name, claim.verdict, claim.value, claim.threshold, limit, sep="\\t")
"""
Verdicts = dict[tuple[str, ...], list[str]]  # (claim, model) -> verdict, value, threshold, limit of chance


def judged(tree: Path) -> Verdicts:
    """Return the verdicts that a copy of the repository comes to on its own results."""
    clean = {**os.environ, "PYTHONPATH": str(tree)}
    said = subprocess.run(
        [sys.executable, "-c", JUDGING], cwd=tree, env=clean, check=True, stdout=subprocess.PIPE, text=True
    )
    rows = [line.split("\t") for line in said.stdout.splitlines()]
    return {(claim, model): numbers for claim, model, *numbers in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--since", required=True, metavar="COMMIT", help="what to compare with")
    since = parser.parse_args().since
    with tempfile.TemporaryDirectory() as folder:
        needed = ("generators", "results", "templates", "models.yml", "series.yml")
        packed = subprocess.run(["git", "archive", since, *needed], cwd=ROOT, check=True, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
        before = judged(Path(folder))
    after = judged(ROOT)
    for place in sorted(before.keys() | after.keys()):
        was, now = before.get(place, ["absent"]), after.get(place, ["absent"])
        if was[0] != now[0]:
            print(*place, *was, "->", *now)


if __name__ == "__main__":
    main()
