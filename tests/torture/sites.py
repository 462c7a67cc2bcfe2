"""`make reproducible`: whether two builds of the site are alike."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import typer
from playwright.sync_api import Browser

from tests.site.conftest import executable, served, started_browser

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
    """Copy what a site is made from."""
    to.mkdir(parents=True)
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        else:
            shutil.copy(ROOT / name, to / name)
    return to


def python(folder: Path, *arguments: str, **circumstances: str) -> None:
    """Run Python in a project, without a hub."""
    names = ("ATLAS_", "SOURCE_DATE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    environment |= {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT), **circumstances}
    subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, check=True)


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


def reproducible() -> None:
    """Build the site twice in circumstances that differ, and compare."""
    with tempfile.TemporaryDirectory() as place:
        folders = Path(place, "first"), Path(place, "second, with a longer name", "in it")
        names = ("mkdocs.yml", "models.yml", "series.yml", "results", "models", "site_src")
        sites = [rendered(copied(to, names), how) for to, how in zip(folders, CIRCUMSTANCES, strict=True)]
        found, path, looks = differing(*sites), executable(), None
        if path is not None:
            with started_browser(path) as browser:
                looks = looked_at(folders[0] / "site", browser)
    print(f"{len(sites[0])} files, {len(found)} differ: {found}; {looks or 'no browser looked at them'}")
    if found or (looks and looks["elsewhere"] + looks["kept_out"]):
        raise typer.Exit(1)
