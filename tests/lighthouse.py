"""`make lighthouse`: Lighthouse looks at one page of every kind, and a budget says what it must find.

The built site is served compressed, as a host of pages does, and looked at with Lighthouse's default throttling: a
slow phone on a slow network, simulated. Each page is looked at several times and the median counts: what else the
machine does meanwhile moves single looks. `results/lighthouse.json` keeps what came out.
"""

import argparse
import functools
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.nulls import commit
from tests.site.conftest import executable

ROOT = Path(__file__).parents[1]
BUDGET = Path(__file__).with_name("lighthouse-budget.toml")
RESULTS = ROOT / "results" / "lighthouse.json"
TOOL = ROOT / ".lighthouse" / "node_modules" / ".bin" / "lighthouse"
FLAGS = "--headless=new --no-sandbox --disable-background-networking --disable-component-update"
COMPRESSED = {".html", ".css", ".js", ".json", ".svg", ".xml", ".csv", ".txt", ".py", ".ipynb"}
LOOKS = 3
MOST_SECONDS = 180  # of one look
UNTOLD = 0.9  # a check of the tool's own that scores this is passed


class Compressing(SimpleHTTPRequestHandler):
    """Serves a folder as hosts of static pages do: text compressed where the browser takes it, connections kept."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with a file, the page of a folder, or 404."""
        path = Path(self.translate_path(self.path))
        if path.is_dir() and self.path.split("?")[0].endswith("/"):
            path = path / "index.html"
        if not path.is_file():
            super().do_GET()  # leads to the folder's address, or says that there is nothing
            return
        content = path.read_bytes()
        takes = "gzip" in self.headers.get("Accept-Encoding", "")
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Cache-Control", "max-age=600")
        self.send_header("Vary", "Accept-Encoding")
        if takes and path.suffix in COMPRESSED:
            content = gzip.compress(content, mtime=0)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder compressed on this machine; give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Compressing, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@dataclass(frozen=True)
class Budget:
    """What must be found: `least` of scores out of 100, `most` of times in milliseconds, on `pages` by kind."""

    least: Mapping[str, float]
    most: Mapping[str, float]
    pages: Mapping[str, str]

    def missed(self, found: Mapping[str, float]) -> list[str]:
        """Return in words what a page misses; a number that could not be had is missed, too."""
        said = [
            f"{name} {_shown(found.get(name))}, at least {least:g}"
            for name, least in self.least.items()
            if found.get(name) is None or found[name] < least
        ]
        said += [
            f"{name} {_shown(found.get(name))} ms, at most {most:g}"
            for name, most in self.most.items()
            if found.get(name) is None or found[name] > most
        ]
        return said


def _shown(value: float | None) -> str:
    return "not measured" if value is None else f"{value:g}"


def read_budget(path: Path = BUDGET) -> Budget:
    """Read the budget."""
    return Budget(**tomllib.loads(path.read_text("utf-8")))


def numbers(report: Mapping[str, Any], budget: Budget) -> dict[str, float]:
    """Return what the budget speaks of out of one of Lighthouse's reports; what it could not measure is left out."""
    scores = {name: report["categories"][name]["score"] for name in budget.least if name in report["categories"]}
    times = {name: report["audits"][name].get("numericValue") for name in budget.most if name in report["audits"]}
    found = {name: round(100 * score) for name, score in scores.items() if score is not None}
    return found | {name: round(time) for name, time in times.items() if time is not None}


def medians(looks: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of every number that every look has."""
    looks = list(looks)
    shared = [name for name in looks[0] if all(name in look for look in looks)]
    return {name: statistics.median(look[name] for look in looks) for name in shared}


def complaints(report: Mapping[str, Any], categories: Iterable[str]) -> list[str]:
    """Return the checks of some categories that a page did not pass, and where."""
    asked = {ref["id"] for name in categories for ref in report["categories"][name]["auditRefs"] if ref["weight"]}
    failed = [audit for name, audit in report["audits"].items() if name in asked and _failed(audit)]
    return [f"{audit['id']}: {audit['title']}{_where(audit)}" for audit in failed]


def _failed(audit: Mapping[str, Any]) -> bool:
    return audit.get("score") is not None and audit["score"] < UNTOLD


def _where(audit: Mapping[str, Any]) -> str:
    items = (audit.get("details") or {}).get("items", [])
    found = [item["node"]["snippet"] for item in items[:3] if isinstance(item.get("node"), dict)]
    return "".join(f"\n      {snippet[:160]}" for snippet in found)


def look(url: str, browser: str) -> dict[str, Any]:
    """Return Lighthouse's report on a page.

    Raises:
        RuntimeError: Lighthouse failed; what it printed says why.
    """
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "report.json")
        command = [str(TOOL), url, "--quiet", "--output=json", f"--output-path={path}", f"--chrome-flags={FLAGS}"]
        environment = {**os.environ, "CHROME_PATH": browser}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=MOST_SECONDS)
        if done.returncode or not path.is_file():
            raise RuntimeError(f"Lighthouse failed on {url}: {done.stderr[-2000:]}")
        report: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if "runtimeError" in report:
            raise RuntimeError(f"Lighthouse failed on {url}: {report['runtimeError']['message']}")
        return report


def chromium() -> str | None:
    """Return the browser to look with: a whole Chromium before the one without a screen, None without either."""
    return os.environ.get("ATLAS_CHROMIUM") or shutil.which("chromium") or executable()


def looked_at(site: Path, pages: Mapping[str, str], budget: Budget, browser: str, looks: int) -> dict[str, Any]:
    """Look at pages and print what came out; return what is kept of it."""
    found, speeds, version = {}, [], ""
    with served(site) as address:
        for kind, page in pages.items():
            reports = [look(address + page, browser) for _ in range(looks)]
            speeds += [report["environment"]["benchmarkIndex"] for report in reports]
            version = reports[-1]["lighthouseVersion"]
            measured = medians(numbers(report, budget) for report in reports)
            found[kind] = {
                "page": page,
                "scores": {name: value for name, value in measured.items() if name in budget.least},
                "times": {name: value for name, value in measured.items() if name in budget.most},
                "missed": budget.missed(measured),
            }
            print(f"{kind}: {', '.join(f'{name} {value:g}' for name, value in measured.items())}")
            for line in (
                *(f"missed: {what}" for what in found[kind]["missed"]),
                *complaints(reports[-1], budget.least),
            ):
                print(f"    {line}", flush=True)
    return {"lighthouse": version, "looks": looks, "speed": round(statistics.median(speeds)), "pages": found}


def main() -> None:
    """Look at every kind of page, and leave with 1 where the budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the figures in results/lighthouse.json")
    parser.add_argument("--looks", type=int, default=LOOKS, help=f"at each page; the median counts ({LOOKS})")
    parser.add_argument("--only", action="append", default=[], metavar="KIND", help="of page; may be given again")
    parser.add_argument("--site", type=Path, default=ROOT / "site", help="the folder of the built site")
    chosen = parser.parse_args()
    budget, browser = read_budget(), chromium()
    if browser is None:
        sys.exit("Chromium isn't installed (name one in ATLAS_CHROMIUM).")
    pages = {kind: page for kind, page in budget.pages.items() if not chosen.only or kind in chosen.only}
    absent = [page for page in pages.values() if not (chosen.site / page / "index.html").is_file()]
    if absent or not pages:
        sys.exit(f"{chosen.site} has no {', '.join(absent) or 'such page'}: build the site, or change {BUDGET.name}.")
    kept = looked_at(chosen.site, pages, budget, browser, chosen.looks)
    print(f"This machine's speed while it looked: {kept['speed']} (Lighthouse means its figures for 1500 and more).")
    if chosen.write:
        made = {"date": datetime.now(UTC).date().isoformat(), "commit": commit()}
        made["budget"] = {"least": budget.least, "most": budget.most}
        RESULTS.write_text(json.dumps({**made, **kept}, indent=1) + "\n", "utf-8")
    sys.exit(1 if any(page["missed"] for page in kept["pages"].values()) else 0)


if __name__ == "__main__":
    main()
