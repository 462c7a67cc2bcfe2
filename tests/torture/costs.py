"""`make large`: seconds and memory of findings where tables are long. `make bench`: of a whole `atlas compute`."""

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
import yaml

from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import Places
from generators.compute.jobs import measure
from generators.compute.plan import open_model, plan, prepare
from generators.compute.running import RunSettings
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from tests.checkpoints import Sizes, write_checkpoint
from tests.nulls import today, write_record
from tests.synthetic import realistic_embedding, winding_positions
from tests.torture.processes import GIBI, MEBI, cost_of, in_child, most_memory

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
SECONDS, BYTES = 60, 2 * GIBI  # that a finding may take; it is ended at four times as much
SHAPES = {
    "65,536 positions x 32": Sizes(n_layer=2, n_head=2, d_model=32, n_ctx=65_536, vocab_size=1000),
    "1,000 layers x 8": Sizes(n_layer=1000, n_head=2, d_model=8, n_ctx=64, vocab_size=1000),
    "1,000 layers x 16": Sizes(n_layer=1000, n_head=2, d_model=16, n_ctx=64, vocab_size=1000),
    "1,000,000 tokens x 64": Sizes(n_layer=2, n_head=2, d_model=64, n_ctx=256, vocab_size=1_000_000),
}
READING = "reading"  # every tensor, to plan all findings
ON_WEIGHTS = {finding.name: finding for finding in FINDINGS if RUN not in finding.needs}
GPT2 = Sizes(n_layer=12, n_head=12, d_model=768, n_ctx=1024, vocab_size=50257)
SMALL = Sizes(n_layer=2, n_head=4, d_model=128, n_ctx=256, vocab_size=4000)
CLUSTER_PYTHON = ROOT / ".venv-cluster" / "bin" / "python"
DASK_SETTINGS = ROOT / "docs" / "dask.yaml"  # what is recommended where workers share their cores with the work
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "DASK_CONFIG": str(DASK_SETTINGS)}
ATLAS = ["-c", "from generators.cli import main; main()", "compute", "--skip-runs"]
CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=int(sys.argv[1]), threads_per_worker=1, dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


def written(folder: Path, sizes: Sizes, seed: int = 0) -> Path:
    """Write a made-up model with tokens and positions like real ones, a vocabulary, and token counts."""
    rng = np.random.default_rng(seed)
    changed = {"wte.weight": realistic_embedding(sizes.vocab_size, sizes.d_model, rng)}
    if sizes.d_model > 12:  # each of 4 waves takes 3 channels
        changed["wpe.weight"] = winding_positions(sizes.n_ctx, sizes.d_model, rng)
    write_checkpoint(folder, sizes=sizes, seed=seed, changed=changed)
    (folder / "vocab.txt").write_text("\n".join(f"{'##' * (i % 3 == 0)}w{i}" for i in range(sizes.vocab_size)))
    np.save(folder / "token_counts.npy", np.arange(sizes.vocab_size, dtype=np.int64)[::-1])
    return folder


def measured(folder: Path, name: str) -> dict[str, Any]:
    """Measure one finding of a model in this process; return how that ended and what it took."""
    source, settings = FolderSource(folder=folder), RunSettings(skip=True)
    model = Model(name="large", title="Large", sources=(source,), frequency="counts")
    opened, status = open_model(model, Places(), settings), "computed"
    if name == READING:
        prepare(opened, list(ON_WEIGHTS.values()), lambda line: None)
    else:
        planned = plan(ON_WEIGHTS[name], opened)
        opened.checkpoint.let_go()  # reading counts, as time and as memory
        missing = planned.key is None
        status = "missing" if missing else measure(planned, opened, folder, lambda done: None).record.status
    return {"status": status, "seconds": round(time.process_time(), 2), "mib": round(most_memory() / MEBI)}


def of_shape(sizes: Sizes, only: list[str]) -> dict[str, dict[str, Any]]:
    """Return what reading a model of these sizes takes, and each finding about weights, in a process of its own."""
    found = {}
    with tempfile.TemporaryDirectory() as place:
        folder = written(Path(place), sizes)
        for name in only or (READING, *ON_WEIGHTS):
            ended = in_child(partial(measured, folder, name), 4 * SECONDS, 5 * BYTES)
            found[name] = ended.gave or {"status": "broke", "seconds": 4.0 * SECONDS, "mib": 0}
            print(f"  {name:<18} {found[name]} {ended.said}", flush=True)
    return found


def large(shape: list[str] = typer.Option(list(SHAPES)), only: list[str] = [], write: bool = False) -> None:  # noqa: B006, B008
    """What each finding takes of models with long tables; --write keeps it in results/large.json."""
    found = {}
    for name in shape:
        print(name, flush=True)
        found[name] = of_shape(SHAPES[name], only)
    if write:
        limits = {"seconds": SECONDS, "bytes": BYTES}
        write_record(RESULTS / "large.json", {**today(), "limits": limits, "shapes": found})
    for took in (took for taken in found.values() for took in taken.values()):
        if took["status"] == "broke" or took["seconds"] > SECONDS or took["mib"] * MEBI > BYTES:
            raise typer.Exit(1)


@contextmanager
def cluster(workers: int) -> Iterator[str]:
    """Yield the address of a Dask scheduler with so many workers on this machine."""
    with tempfile.TemporaryDirectory() as place:
        script = Path(place, "started.py")  # each worker imports it anew
        script.write_text(CLUSTER)
        command = [str(CLUSTER_PYTHON), str(script), str(workers)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, env=ENVIRONMENT, text=True, **pipes) as process:
            try:
                yield process.stdout.readline().strip()
            finally:
                process.stdin.close()


def timed(place: Path, way: str, *options: str, python: Path | str = sys.executable) -> dict[str, Any]:
    seconds, memory = cost_of([str(python), *ATLAS, "--results", way, *options], place, ENVIRONMENT)
    return {"way": way, "seconds": round(seconds, 1), "memory_mib": round(memory / MEBI)}


def whole(count: int, sizes: Sizes, jobs: int = 2) -> dict[str, Any]:
    """Return what computing all models takes each way, and how many times as fast as one after another it is."""
    with tempfile.TemporaryDirectory() as name:
        place, names = Path(name), [f"made-up-{number}" for number in range(1, count + 1)]
        for seed, model in enumerate(names):
            written(place / model, sizes, seed)
        entries = [{"name": model, "title": model, "sources": [{"folder": model}]} for model in names]
        (place / "models.yml").write_text(yaml.safe_dump(entries))
        rows = [timed(place, "one after another"), timed(place, "--jobs", "--jobs", str(jobs))]
        if CLUSTER_PYTHON.is_file():
            with cluster(jobs) as address:
                rows.append(timed(place, "cluster", "--scheduler", address, python=CLUSTER_PYTHON))
    faster = [row | {"times_faster": round(rows[0]["seconds"] / row["seconds"], 2)} for row in rows]
    return {**about(sizes), "models": count, "jobs": jobs, "rows": faster}


def of_each_finding(sizes: Sizes) -> dict[str, Any]:
    found = of_shape(sizes, list(ON_WEIGHTS))
    rows = [
        {"name": name, "seconds": took["seconds"], "memory_mib": took["mib"]}
        for name, took in found.items()
        if took["status"] == "computed"
    ]
    return {**about(sizes), "rows": rows}


def about(sizes: Sizes) -> dict[str, Any]:
    shape = {"layers": sizes.n_layer, "channels": sizes.d_model, "tokens": sizes.vocab_size}
    return {**today(), "machine": f"{platform.machine()}, {os.cpu_count()} cores", **shape}


def bench(models: int = 8, small: bool = False, write: bool = False) -> None:
    """Time of computing made-up models of GPT-2's shape (--small: in seconds); --write: into results/bench.json."""
    sizes = SMALL if small else GPT2
    found = {"whole": whole(models, sizes), "findings": of_each_finding(sizes)}
    print(yaml.safe_dump(found, sort_keys=False))
    if write:
        write_record(RESULTS / "bench.json", found)
