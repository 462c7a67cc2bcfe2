"""`make reproducible`: the site is built twice from the same results, in different circumstances, and compared.

The second time in another folder, in another time zone and language, on another day, with more threads, with other
hash seeds, and with nothing drawn before. Nothing is computed. Then every page is opened, and its requests counted.
`results/reproducible.json` keeps what came out.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from tests.nulls import today, write_record
from tests.processes import copied
from tests.site.conftest import executable, served, started_browser

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "reproducible.json"
MADE_FROM = ("mkdocs.yml", "models.yml", "series.yml", "results", "models", "site_src")
ADDRESS = "https://example.org/atlas/"
RENDER = "from generators.cli import main; main()"
THREADS = "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"
CIRCUMSTANCES = (
    {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "1", **dict.fromkeys(THREADS, "1")},
    # 1 January 2025: MkDocs takes the date from it
    {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "2", "SOURCE_DATE_EPOCH": "1735689600"}
    | dict.fromkeys(THREADS, "2"),
)


def rendered(project: Path, circumstances: dict[str, str]) -> dict[str, bytes]:
    """Build the site of a project in some circumstances; return its files. Nothing is computed."""
    stored = {name: value for name, value in os.environ.items() if not name.startswith(("ATLAS_", "SOURCE_DATE"))}
    environment = {**stored, "SITE_URL": ADDRESS, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT), **circumstances}
    subprocess.run([sys.executable, "-c", RENDER, "render"], cwd=project, env=environment, check=True)
    site = project / "site"
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def differing(first: dict[str, bytes], second: dict[str, bytes]) -> list[str]:
    """Return the files that only one has, or that differ."""
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def looked_at(site: Path, browser: Browser) -> dict[str, int]:
    """Open every page; count requests, those for anything that is not here, and what the pages' policies kept out."""
    asked: list[str] = []
    pages, kept_out = sorted(site.rglob("index.html")), 0
    with served(site) as address:
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.add_init_script("window.kept = 0; document.addEventListener('securitypolicyviolation', () => kept++)")
        for path in pages:
            name = path.relative_to(site).as_posix().removesuffix("index.html")
            page.goto(address + name, wait_until="networkidle")
            kept_out += page.evaluate("window.kept")
        page.close()
    elsewhere = [url for url in asked if not url.startswith((address, "data:"))]
    return {"pages": len(pages), "requests": len(asked), "elsewhere": len(elsewhere), "kept_out": kept_out}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the figures in results/reproducible.json")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folders = Path(place, "first"), Path(place, "second, with a longer name", "in it")
        sites = [rendered(copied(ROOT, to, MADE_FROM), how) for to, how in zip(folders, CIRCUMSTANCES, strict=True)]
        found, path, looks = differing(*sites), executable(), None
        if path is not None:
            with started_browser(path) as browser:
                looks = looked_at(folders[0] / "site", browser)
    for name in found:
        print(f"--- {name} differs")
    if chosen.write:
        write_record(RESULTS, {**today(), "files": len(sites[0]), "differ": found, "looks": looks})
    print(f"{len(sites[0])} files, {len(found)} differ; {looks or 'no browser looked at them'}")
    sys.exit(1 if found or (looks and looks["elsewhere"] + looks["kept_out"]) else 0)


if __name__ == "__main__":
    main()
