"""Compute models one after another on a machine with little disk, and put their results in a folder of their own.

The hub client's cache of whole files is removed after each model if less than `--spare` GB are free. A model that
can't be had, read, or held by this machine is skipped: a notice says why. Exit 1: something failed, which is a bug;
everything computed until then is stored.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from skipping import say

ATLAS = [sys.executable, "-c", "from generators.cli import main; main()"]
GB = 1_000_000_000
SPARE_GB = 8.0  # the whole files of the largest model that is run in 16 GB of memory
NOT_RESULTS = (".lock", ".unfinished")  # of what is in a model's folder


def hub_cache() -> Path:
    """Return the cache of the hub's client."""
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
    return Path(os.environ.get("HF_HUB_CACHE", home / "hub"))


def compute(
    models: list[str], results: Path, apart: Path, spare_gb: float, options: list[str]
) -> tuple[list[str], dict[str, str]]:
    """Compute models into `results`, copy theirs into `apart`; return which failed, and why others were skipped."""
    failed, skipped = [], {}
    for name in models:
        code, why = _compute(name, results, options)
        if why is not None:
            skipped[name] = why
        elif code:
            failed.append(name)
        if (results / name).is_dir():
            ignored = shutil.ignore_patterns(*NOT_RESULTS)
            shutil.copytree(results / name, apart / name, dirs_exist_ok=True, ignore=ignored)
        if shutil.disk_usage(results.parent).free < spare_gb * GB:
            shutil.rmtree(hub_cache(), ignore_errors=True)
    return failed, skipped


def _compute(name: str, results: Path, options: list[str]) -> tuple[int, str | None]:
    """Compute a model; return the exit code, and why the model was skipped if it was."""
    with tempfile.TemporaryDirectory() as folder:
        summary = Path(folder) / "summary.json"
        command = [*ATLAS, "compute", "--results", str(results), "--summary", str(summary), *options, "--", name]
        code = subprocess.run(command, check=False).returncode
        said = json.loads(summary.read_text("utf-8")) if summary.is_file() else {"skipped": {}}
    return code, said["skipped"].get(name)


def main() -> None:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", help="names of models, separated by spaces")
    parser.add_argument("--apart", type=Path, required=True, help="where these models' results are put")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--spare", type=float, default=SPARE_GB, metavar="GB")
    given, options = parser.parse_known_args()
    given.apart.mkdir(parents=True, exist_ok=True)
    failed, skipped = compute(given.models.split(), given.results.resolve(), given.apart, given.spare, options)
    say(skipped)
    if failed:
        sys.exit(f"Something failed in: {', '.join(failed)}")


if __name__ == "__main__":
    main()
