"""Compute models one after another on a machine with little disk, and put their results in a folder of their own.

The hub client's cache of whole files is removed after each model if less than `--spare` GB are free.
Exit 1: something failed; everything computed until then is stored.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ATLAS = [sys.executable, "-c", "from generators.cli import main; main()"]
GB = 1_000_000_000
SPARE_GB = 8.0  # the whole files of the largest model that is run in 16 GB of memory


def hub_cache() -> Path:
    """Return the cache of the hub's client."""
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
    return Path(os.environ.get("HF_HUB_CACHE", home / "hub"))


def compute(models: list[str], results: Path, apart: Path, spare_gb: float, options: list[str]) -> list[str]:
    """Compute models into `results`, copy theirs into `apart`; return those of which something failed."""
    failed = []
    for name in models:
        command = [*ATLAS, "compute", "--results", str(results), *options, "--", name]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
        if (results / name).is_dir():
            shutil.copytree(results / name, apart / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*"))
        if shutil.disk_usage(results.parent).free < spare_gb * GB:
            shutil.rmtree(hub_cache(), ignore_errors=True)
    return failed


def main() -> None:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", help="names of models, separated by spaces")
    parser.add_argument("--apart", type=Path, required=True, help="where these models' results are put")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--spare", type=float, default=SPARE_GB, metavar="GB")
    given, options = parser.parse_known_args()
    given.apart.mkdir(parents=True, exist_ok=True)
    failed = compute(given.models.split(), given.results.resolve(), given.apart, given.spare, options)
    if failed:
        sys.exit(f"Something failed in: {', '.join(failed)}")


if __name__ == "__main__":
    main()
