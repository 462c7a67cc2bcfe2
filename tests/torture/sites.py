"""`make many`: what a site of many models weighs and costs. `make reproducible`: whether two builds are alike."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import typer
import yaml
from playwright.sync_api import Browser

from generators.base.plain import plain
from generators.compute.results import Store
from tests.nulls import today, write_record
from tests.site.conftest import executable, served, started_browser
from tests.torture.processes import cost_of

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
MOVED = 0.05  # by how much of itself a number is moved, as a standard deviation
ATLAS = ("-c", "from generators.cli import main; main()")
THREADS = "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"
CIRCUMSTANCES = (
    {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "1", **dict.fromkeys(THREADS, "1")},
    # 1 January 2025: MkDocs takes the date from it
    {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "2", "SOURCE_DATE_EPOCH": "1735689600"}
    | dict.fromkeys(THREADS, "2"),
)


def copied(to: Path, names: Iterable[str]) -> Path:
    """Copy what a site is made from."""
    to.mkdir(parents=True)
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        else:
            shutil.copy(ROOT / name, to / name)
    return to


def project(folder: Path, count: int) -> Path:
    """Make a folder for a site of made-up models: the stored ones in turn, their numbers moved a little."""
    copied(folder, ("mkdocs.yml", "site_src"))
    store, to, entries = Store(ROOT / "results"), Store(folder / "results"), []
    for number in range(1, count + 1):
        like, name = store.names()[(number - 1) % len(store.names())], f"made-up-{number}"
        record = store.model(like)
        title = f"Made up {number}, after {record.title}"
        to.save_model(record.model_copy(update={"name": name, "title": title}))
        copy_moved(store, like, to, name, seed=number)
        entries.append({"name": name, "title": title, "sources": [{"hub": f"made-up/{name}", "revision": "0" * 40}]})
    (folder / "models.yml").write_text(yaml.safe_dump(entries, sort_keys=False), "utf-8")
    for report in (ROOT / "results").glob("*.json"):
        shutil.copy(report, folder / "results")
    return folder


def copy_moved(store: Store, like: str, to: Store, name: str, seed: int, only: Iterable[str] = ()) -> None:
    """Write the findings of another model, or some, with their numbers moved a little."""
    rng = np.random.default_rng(seed)
    for finding in only or store.finding_names(like):
        found, arrays = store.load(like, finding)
        to.save_finding(name, found.model_copy(update={"metrics": moved(found.metrics, rng)}), arrays)


def moved(value: Any, rng: np.random.Generator, factor: float = 1) -> Any:
    """Return numbers, however nested, moved a little; shares stay shares, and counts stay.

    Those of one mapping move together: a value stays within its interval.
    """
    if isinstance(value, Mapping):
        factor = 1 + MOVED * rng.standard_normal()
        return {key: moved(each, rng, factor) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [moved(each, rng, factor) for each in value]
    if not isinstance(value, float):
        return value
    return plain(float(np.clip(value * factor, -1, 1)) if abs(value) <= 1 else value * factor)


def python(folder: Path, *arguments: str, **circumstances: str) -> tuple[float, float]:
    """Run Python in a project, without a hub; return seconds of CPU and of the clock."""
    names = ("ATLAS_", "SOURCE_DATE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    environment |= {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT), **circumstances}
    return cost_of([sys.executable, *arguments], folder, environment)[:2]


def mkdocs(folder: Path) -> tuple[float, float]:
    """Let MkDocs alone make a site of a project's pages, and throw it away."""
    with tempfile.TemporaryDirectory() as site:
        return python(folder, "-m", "mkdocs", "build", "--quiet", "--site-dir", site)


def seconds(folder: Path, last: str) -> dict[str, dict[str, float]]:
    """Return what the site of a project costs, by what there is already, in seconds of CPU and of the clock."""
    found = {"cold": python(folder, *ATLAS, "render"), "mkdocs": mkdocs(folder)}
    for made in (".pages", "site"):
        shutil.rmtree(folder / made)
    found["from_cache"] = python(folder, *ATLAS, "render")
    store = Store(folder / "results")
    copy_moved(store, last, store, last, seed=0, only=["helix"])
    found["one_changed"] = python(folder, *ATLAS, "render")
    found["unchanged_render"] = python(folder, *ATLAS, "render")
    python(folder, *ATLAS, "build")  # it looks for the weights, and says that there are none
    found["unchanged_build"] = python(folder, *ATLAS, "build")
    seconds, clock = ({name: round(took[i], 2) for name, took in found.items()} for i in (0, 1))
    return {"seconds": seconds, "clock": clock}


def size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    return path.stat().st_size if path.is_file() else sum(each.stat().st_size for each in path.rglob("*.*"))


def sizes(site: Path, names: list[str]) -> dict[str, float]:
    """Return what a site weighs: in megabytes, the HTML of its pages in kilobytes."""
    models = [sum(size(site / part / name) for part in ("models", "figures", "data")) for name in names]
    finding = max(map(size, (site / "findings").glob("*/index.html")))
    html = {"home_kB": round(size(site / "index.html") / 1e3), "finding_kB": round(finding / 1e3)}
    return {**html, "model_MB": round(max(models) / 1e6, 2), "site_MB": round(size(site) / 1e6, 1)}


def many(models: int = 50, write: bool = False) -> None:
    """What a site of so many made-up models weighs and costs; --write keeps it in results/many.json."""
    names = [f"made-up-{number}" for number in range(1, models + 1)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = project(Path(temporary, "many"), models)
        found: dict[str, Any] = {"models": models, **seconds(folder, names[-1])}
        found["sizes"] = sizes(folder / "site", names)
    print(yaml.safe_dump(found, sort_keys=False))
    if write:
        write_record(RESULTS / "many.json", {**today(), **found})


def rendered(project: Path, circumstances: Mapping[str, str]) -> dict[str, bytes]:
    """Build the site of a project in some circumstances; return its files. Nothing is computed."""
    python(project, *ATLAS, "render", SITE_URL="https://example.org/atlas/", **circumstances)
    site = project / "site"
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def differing(first: Mapping[str, bytes], second: Mapping[str, bytes]) -> list[str]:
    """Return the files that only one has, or that differ."""
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def looked_at(site: Path, browser: Browser) -> dict[str, int]:
    """Open every page; count requests, those to other hosts, and what the pages' policies kept out."""
    asked: list[str] = []
    pages, kept_out = sorted(site.rglob("index.html")), 0
    with served(site) as address:
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.add_init_script("window.kept = 0; document.addEventListener('securitypolicyviolation', () => kept++)")
        for path in pages:
            page.goto(
                address + path.relative_to(site).as_posix().removesuffix("index.html"), wait_until="networkidle"
            )
            kept_out += page.evaluate("window.kept")
        page.close()
    elsewhere = [url for url in asked if not url.startswith((address, "data:"))]
    return {"pages": len(pages), "requests": len(asked), "elsewhere": len(elsewhere), "kept_out": kept_out}


def reproducible(write: bool = False) -> None:
    """Build the site twice in circumstances that differ, and compare; --write: into results/reproducible.json."""
    with tempfile.TemporaryDirectory() as place:
        folders = Path(place, "first"), Path(place, "second, with a longer name", "in it")
        names = ("mkdocs.yml", "models.yml", "series.yml", "results", "models", "site_src")
        sites = [rendered(copied(to, names), how) for to, how in zip(folders, CIRCUMSTANCES, strict=True)]
        found, path, looks = differing(*sites), executable(), None
        if path is not None:
            with started_browser(path) as browser:
                looks = looked_at(folders[0] / "site", browser)
    print(f"{len(sites[0])} files, {len(found)} differ: {found}; {looks or 'no browser looked at them'}")
    if write:
        record = {**today(), "files": len(sites[0]), "differ": found, "looks": looks}
        write_record(RESULTS / "reproducible.json", record)
    if found or (looks and looks["elsewhere"] + looks["kept_out"]):
        raise typer.Exit(1)
