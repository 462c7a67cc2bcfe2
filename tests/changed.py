"""`make changed`: which verdicts on stored results differ from those at an earlier commit, and the numbers of both.

Each side judges the results of its own commit by its own rules, the earlier one from a copy of that commit. Writes
`results/changed.json`, which CHANGELOG.md refers to.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.nulls import ROOT, today, write_record

RESULTS = ROOT / "results" / "changed.json"
Verdicts = dict[str, dict[str, dict[str, Any]]]  # model -> claim -> what is compared
JUDGED = ("verdict", "value", "threshold", "limit")
COMPARED = ("finding", "statement", *JUDGED)
# What judges every model of a folder of results, by the package beside it; it runs at either commit.
JUDGING = f"""
import json, sys
from pathlib import Path
from generators.compute.judged import judged_model
from generators.compute.results import Store

store, found = Store(Path("results")), {{}}
for folder in sorted(path for path in Path("results").iterdir() if path.is_dir() and path.name != "local"):
    model = judged_model(store, folder.name)
    claims = [] if model is None else model.published().claims
    found[folder.name] = {{
        claim.id: {{
            **{{key: getattr(claim, key, None) for key in {COMPARED}}},
            "limit": claim.chance and claim.chance.limit,
        }}
        for claim in claims
    }}
json.dump(found, sys.stdout)
"""


def judged(tree: Path) -> Verdicts:
    """Return the verdicts that a copy of the repository comes to on its own results."""
    clean = {**os.environ, "PYTHONPATH": str(tree)}
    said = subprocess.run([sys.executable, "-c", JUDGING], cwd=tree, env=clean, check=True, capture_output=True)
    found: Verdicts = json.loads(said.stdout)
    return found


def copy_of(commit: str, folder: Path) -> Path:
    """Unpack what is needed of a commit into a folder and return it."""
    packed = folder / "packed.tar"
    needed = ("generators", "results", "templates", "models.yml", "series.yml")
    subprocess.run(["git", "archive", f"--output={packed}", commit, *needed], cwd=ROOT, check=True)
    shutil.unpack_archive(packed, folder, filter="data")
    return folder


def changed(before: Verdicts, after: Verdicts) -> list[dict[str, Any]]:
    """Return a row for every verdict that differs, by claim; models and claims on one side alone are left out."""
    rows = []
    claims = dict.fromkeys(claim for models in (before, after) for known in models.values() for claim in known)
    for claim in claims:
        for model in sorted(before.keys() & after.keys()):
            was, now = before[model].get(claim), after[model].get(claim)
            if was is None or now is None or was["verdict"] == now["verdict"]:
                continue
            before_and_after = [{key: one[key] for key in JUDGED} for one in (was, now)]
            row = {"claim": claim, "finding": now["finding"], "statement": now["statement"], "model": model}
            rows.append(row | dict(zip(("before", "after"), before_and_after, strict=True)))
    return rows


def claims_only_in(before: Verdicts, after: Verdicts) -> dict[str, list[str]]:
    """Return the claims that are new, and those that are gone."""
    was, now = ({claim for known in side.values() for claim in known} for side in (before, after))
    return {"new": sorted(now - was), "gone": sorted(was - now)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--since", required=True, metavar="COMMIT", help="what to compare with")
    since = parser.parse_args().since
    with tempfile.TemporaryDirectory() as folder:
        before = judged(copy_of(since, Path(folder)))
    after = judged(ROOT)
    rows = changed(before, after)
    write_record(RESULTS, {**today(), "since": since, **claims_only_in(before, after), "changed": rows})
    print(f"{len(rows)} verdicts changed: see {RESULTS}")


if __name__ == "__main__":
    main()
