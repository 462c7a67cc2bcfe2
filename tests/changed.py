"""`make changed`: which verdicts on stored results differ from those at an earlier commit, in which models, and why.

Each side judges the results of its own commit by its own rules, the earlier one from a copy of that commit. Writes
`results/changed.json`, which CHANGELOG.md refers to.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.nulls import ROOT, today, write_record

RESULTS = ROOT / "results" / "changed.json"
Verdicts = dict[str, dict[str, dict[str, Any]]]  # model -> claim -> what is compared
JUDGED = ("verdict", "value", "threshold", "limit")
COMPARED = ("finding", "statement", "answer", *JUDGED)
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
            row = {"claim": claim, "finding": now["finding"], "statement": now["statement"], "model": model}
            sides = {"before": was, "after": now}
            numbers = {side: {key: one[key] for key in JUDGED} for side, one in sides.items()}
            rows.append(row | numbers | {"why": why(was, now)})
    return rows


def why(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return what differs between two judgements of a claim: its answer where one is untested, else the numbers."""
    if "untested" in (was["verdict"], now["verdict"]):
        return str(now["answer"] if now["verdict"] == "untested" else was["answer"])
    named = {"value": "effect", "threshold": "threshold", "limit": "limit of chance"}
    moved = {name: (was[key], now[key]) for key, name in named.items() if not _alike(was[key], now[key])}
    said = [f"{name} {_said(before)} → {_said(after)}" for name, (before, after) in moved.items()]
    return "; ".join(said) or "the same numbers under a new rule"


def _alike(one: float | None, other: float | None) -> bool:
    return one == other if None in (one, other) else math.isclose(one, other, rel_tol=1e-6)


def _said(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}".replace("-", "−", 1)


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
