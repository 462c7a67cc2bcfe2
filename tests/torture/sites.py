"""`make reproducible`: whether two builds of the site are alike."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import typer

from tests.torture.processes import files_in

ROOT = Path(__file__).parents[2]
ATLAS = ("-c", "from generators.cli import main; main()")
THREADS = "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"
CIRCUMSTANCES = (
    {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "1", **dict.fromkeys(THREADS, "1")},
    # 1 January 2025: MkDocs takes the date from it
    {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "2", "SOURCE_DATE_EPOCH": "1735689600"}
    | dict.fromkeys(THREADS, "2"),
)


def copied(to: Path, names: Iterable[str]) -> Path:
    to.mkdir(parents=True)
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        else:
            shutil.copy(ROOT / name, to / name)
    return to


def rendered(project: Path, circumstances: Mapping[str, str]) -> dict[str, bytes]:
    """Build the site of a project in some circumstances, without a hub; return its files. Nothing is computed."""
    names = ("ATLAS_", "SOURCE_DATE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    environment |= {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT), "SITE_URL": "https://example.org/atlas/"}
    subprocess.run([sys.executable, *ATLAS, "render"], cwd=project, env=environment | circumstances, check=True)
    return files_in(project / "site")


def differing(first: Mapping[str, bytes], second: Mapping[str, bytes]) -> list[str]:
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def reproducible() -> None:
    """Build the site twice in circumstances that differ, and compare."""
    with tempfile.TemporaryDirectory() as place:
        folders = Path(place, "first"), Path(place, "second, with a longer name", "in it")
        names = ("mkdocs.yml", "models.yml", "series.yml", "results", "models", "site_src")
        sites = [rendered(copied(to, names), how) for to, how in zip(folders, CIRCUMSTANCES, strict=True)]
    found = differing(*sites)
    print(f"{len(sites[0])} files, {len(found)} differ: {found}")
    if found:
        raise typer.Exit(1)
