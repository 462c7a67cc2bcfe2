"""`make many`: fifty made-up models, and what a site of them weighs and costs.

They are copies of the stored models under other names, their numbers moved a little, so that no two are alike. The
site is built from their results: cold, from the cache, with one model changed, and with nothing changed; MkDocs' part
of it is timed by itself. Seconds are of the processor, all cores together, and by the clock. `--write` keeps the
figures in `results/many.json`.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from generators.base.plain import plain
from generators.compute.results import Store
from tests.nulls import today, write_record
from tests.processes import copied, seconds_of_command

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "many.json"
MODELS = 50
MOVED = 0.05  # by how much of itself a number is moved, as a standard deviation
NOWHERE = "0" * 40  # a commit of the hub, which is not asked
MADE_FROM = ("mkdocs.yml", "site_src")
ATLAS = "from generators.cli import main; main()"
KILO, MEGA = 1000, 1000**2
SEED = 0


def made_up(store: Store, to: Store, count: int, seed: int = SEED) -> list[dict[str, Any]]:
    """Write the results of made-up models, each after a stored one in turn; return their entries of a registry."""
    rng = np.random.default_rng(seed)
    stored = store.names()
    entries = []
    for number in range(1, count + 1):
        like, name = stored[(number - 1) % len(stored)], f"made-up-{number}"
        record = store.model(like)
        assert record is not None
        title = f"Made up {number}, after {record.title}"
        to.save_model(record.model_copy(update={"name": name, "title": title}))
        for finding in store.finding_names(like):
            copy_moved(store, like, to, name, finding, rng)
        entries.append({"name": name, "title": title, "sources": [{"hub": f"made-up/{name}", "revision": NOWHERE}]})
    return entries


def copy_moved(store: Store, like: str, to: Store, name: str, finding: str, rng: np.random.Generator) -> None:
    """Write one finding of a made-up model: that of another, with its numbers moved a little."""
    whole = store.load(like, finding)
    assert whole is not None
    found, arrays = whole
    to.save_finding(name, found.model_copy(update={"metrics": moved(found.metrics, rng)}), arrays)


def moved(value: Any, rng: np.random.Generator, factor: float = 1) -> Any:
    """Return numbers, however nested, moved a little; shares stay shares, and what is counted stays.

    Those of one mapping move together: a value stays within its interval.
    """
    if isinstance(value, Mapping):
        factor = 1 + MOVED * rng.standard_normal()
        return {key: moved(each, rng, factor) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [moved(each, rng, factor) for each in value]
    if not isinstance(value, float):
        return value
    new = value * factor
    return plain(float(np.clip(new, -1, 1)) if abs(value) <= 1 else new)


def project(folder: Path, count: int, source: Path = ROOT) -> Path:
    """Make a folder from which a site of made-up models can be built."""
    copied(source, folder, MADE_FROM)
    entries = made_up(Store(source / "results"), Store(folder / "results"), count)
    (folder / "models.yml").write_text(yaml.safe_dump(entries, sort_keys=False), "utf-8")
    for kept in (source / "results").glob("*.json"):
        shutil.copy(kept, folder / "results")
    return folder


def seconds_of_atlas(folder: Path, *arguments: str) -> tuple[float, float]:
    """Run the command in a project; return the seconds of the processor, its children's too, and of the clock."""
    return _seconds(folder, "-c", ATLAS, *arguments)


def seconds_of_mkdocs(folder: Path) -> tuple[float, float]:
    """Let MkDocs alone make a site of a project's pages, and throw it away."""
    with tempfile.TemporaryDirectory() as site:
        return _seconds(folder, "-m", "mkdocs", "build", "--quiet", "--site-dir", site)


def _seconds(folder: Path, *arguments: str) -> tuple[float, float]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ATLAS_")}
    alone = {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    return seconds_of_command([sys.executable, *arguments], folder, {**environment, **alone})


def change_one(folder: Path, count: int) -> None:
    """Move the numbers of the last model once more."""
    store, rng = Store(folder / "results"), np.random.default_rng(SEED + 1)
    copy_moved(store, f"made-up-{count}", store, f"made-up-{count}", "helix", rng)


def seconds(folder: Path, count: int) -> dict[str, dict[str, float]]:
    """Return what the site of a project costs, by what there is already; and what MkDocs takes of that.

    `seconds` are of the processor, `clock` by the clock.
    """
    found = {"cold": seconds_of_atlas(folder, "render"), "mkdocs": seconds_of_mkdocs(folder)}
    for made in (".pages", "site"):
        shutil.rmtree(folder / made)
    found["from_cache"] = seconds_of_atlas(folder, "render")
    change_one(folder, count)
    found["one_changed"] = seconds_of_atlas(folder, "render")
    found["unchanged_render"] = seconds_of_atlas(folder, "render")
    seconds_of_atlas(folder, "build")  # which looks for the weights, and says that there are none
    found["unchanged_build"] = seconds_of_atlas(folder, "build")
    return {
        "seconds": {name: round(processor, 2) for name, (processor, _) in found.items()},
        "clock": {name: round(clock, 2) for name, (_, clock) in found.items()},
    }


def size(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    return path.stat().st_size if path.is_file() else sum(each.stat().st_size for each in path.rglob("*.*"))


def of_each_model(site: Path, names: list[str]) -> float:
    """Return the bytes of the largest model: its page, its figures, its data."""
    return max(sum(size(site / part / name) for part in ("models", "figures", "data")) for name in names)


def sizes(site: Path, names: list[str]) -> dict[str, float]:
    """Return what a site weighs: in megabytes, the HTML of its pages in kilobytes."""
    largest_finding = max(map(size, (site / "findings").glob("*/index.html")))
    html = {"home": size(site / "index.html"), "finding": largest_finding}
    found = {f"{name}_kB": round(bytes_ / KILO) for name, bytes_ in html.items()}
    return {**found, "model_MB": round(of_each_model(site, names) / MEGA, 2), "site_MB": round(size(site) / MEGA, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=MODELS, help="how many")
    parser.add_argument("--into", type=Path, help="keep the project in this folder, which is not there yet")
    parser.add_argument("--write", action="store_true", help="keep the figures in results/many.json")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = project(chosen.into or Path(temporary, "many"), chosen.models)
        found: dict[str, Any] = {"models": chosen.models, **seconds(folder, chosen.models)}
        names = [f"made-up-{number}" for number in range(1, chosen.models + 1)]
        found |= {"sizes": sizes(folder / "site", names)}
    print(json.dumps(found, indent=1))
    if chosen.write:
        write_record(RESULTS, {**today(), **found})


if __name__ == "__main__":
    main()
