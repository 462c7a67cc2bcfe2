"""`make bench`: seconds and peak memory of a whole `atlas compute`, and of each finding about weights.

The models are made up and have GPT-2 124M's shape. All models are computed one after another, by `--jobs`, and by a
Dask cluster on this machine; the files that each way leaves must be the same. Ratios are of one run, so that they are
of one machine in one state. `--write` stores the figures in `results/bench.json`, from which the site makes a table.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from threadpoolctl import threadpool_limits

from generators.base.files import replace_file
from generators.base.plain import as_json
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import in_folder
from generators.compute.plan import Opened, inputs, plan
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from tests.checkpoints import Sizes, write_checkpoint
from tests.nulls import today
from tests.processes import PeakMemory, seconds_of_command

Array = np.ndarray
ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "bench.json"
CLUSTER_PYTHON = ROOT / ".venv-cluster" / "bin" / "python"
DASK_SETTINGS = ROOT / "docs" / "dask.yaml"  # what is recommended where workers share their cores with the work
GPT2 = Sizes(n_layer=12, n_head=12, d_model=768, n_ctx=1024, vocab_size=50257)
SMALL = Sizes(n_layer=2, n_head=4, d_model=128, n_ctx=256, vocab_size=4000)
MODELS, JOBS = 8, 2
SERIAL, BY_JOBS, BY_CLUSTER = "one after another", "--jobs", "cluster"
MEBI = 2**20
ATLAS = ["-c", "from generators.cli import main; main()", "compute", "--skip-runs"]
CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=int(sys.argv[1]), threads_per_worker=1, dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


def realistic_embedding(V: int, d: int, rng: np.random.Generator) -> Array:
    """Return token embeddings (V, d) built like real ones: a search prunes them as it does those of a real model.

    Variances fall as (k + 9)^-0.7 about a common mean, norms vary by 15 %, two fifths of the tokens come in similar
    pairs, and a hundred unused tokens lie close together.
    """
    E = rng.standard_normal((V, d), dtype=np.float32) * ((np.arange(d) + 9) ** -0.35).astype(np.float32)
    first, second, unused = np.split(rng.permutation(V)[: 2 * (V // 5) + min(100, V // 20)], [V // 5, 2 * (V // 5)])
    apart = rng.uniform(0.15, 0.7, (len(second), 1)).astype(np.float32)
    E[second] = E[first] * np.sqrt(1 - apart**2) + E[second] * apart
    E += 0.5 * np.linalg.norm(E, axis=1).mean() / np.sqrt(d)
    E *= np.exp(0.15 * rng.standard_normal((V, 1), dtype=np.float32))
    E[unused] = E[unused].mean(axis=0) + 0.04 * E[unused]
    return E


def winding_positions(n: int, d: int, rng: np.random.Generator) -> Array:
    """Return position embeddings (n, d) float32 that wind in a few channels, with noise in all."""
    P = 0.02 * rng.standard_normal((n, d))
    for wave in range(1, 5):
        for channel in rng.choice(d, 3, replace=False):
            P[:, channel] += 0.5 / wave * np.cos(2 * np.pi * wave * np.arange(n) / n + channel)
    return P.astype(np.float32)


def write_models(place: Path, count: int, sizes: Sizes) -> None:
    """Write so many made-up models and their registry."""
    names = [f"made-up-{number}" for number in range(1, count + 1)]
    for seed, name in enumerate(names):
        rng = np.random.default_rng(seed)
        E = realistic_embedding(sizes.vocab_size, sizes.d_model, rng)
        P = winding_positions(sizes.n_ctx, sizes.d_model, rng)
        write_checkpoint(place / name, sizes=sizes, seed=seed, changed={"wte.weight": E, "wpe.weight": P})
    entries = [{"name": name, "title": name, "sources": [{"folder": name}]} for name in names]
    (place / "models.yml").write_text(yaml.safe_dump(entries))


def measured(place: Path, results: str, *options: str, python: Path | str = sys.executable) -> dict[str, float]:
    """Return the seconds and the peak memory of computing all models."""
    command = [str(python), *ATLAS, "--results", results, *options]
    with PeakMemory() as memory:
        _, seconds = seconds_of_command(command, place, environment())
    return {"seconds": round(seconds, 1), "memory_mib": round(memory.peak / MEBI)}


def environment() -> dict[str, str]:
    """Return the environment of a command: this code, one thread of its own, and the settings of Dask."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "DASK_CONFIG": str(DASK_SETTINGS)}


@contextmanager
def cluster(workers: int) -> Iterator[str]:
    """Yield the address of a Dask scheduler with so many workers on this machine."""
    with tempfile.TemporaryDirectory() as place:
        script = Path(place, "started.py")  # each worker imports it anew
        script.write_text(CLUSTER)
        command = [str(CLUSTER_PYTHON), str(script), str(workers)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, env=environment(), text=True, **pipes) as process:
            assert process.stdout is not None and process.stdin is not None
            try:
                yield process.stdout.readline().strip()
            finally:
                process.stdin.close()


def files(results: Path) -> dict[str, bytes]:
    """Return every file of results but locks."""
    found = (path for path in results.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {path.relative_to(results).as_posix(): path.read_bytes() for path in found}


def whole(count: int, sizes: Sizes) -> dict[str, Any]:
    """Return what computing all models takes each way, and how many times as fast as one after another it is."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        write_models(place, count, sizes)
        ways = {SERIAL: measured(place, SERIAL), BY_JOBS: measured(place, BY_JOBS, "--jobs", str(JOBS))}
        if CLUSTER_PYTHON.is_file():
            with cluster(JOBS) as address:
                ways[BY_CLUSTER] = measured(place, BY_CLUSTER, "--scheduler", address, python=CLUSTER_PYTHON)
        expected = files(place / SERIAL)
        assert expected and all(files(place / way) == expected for way in ways), "results differ between ways"
    serial = ways[SERIAL]["seconds"]
    rows = [{"way": way, **took, "times_faster": round(serial / took["seconds"], 2)} for way, took in ways.items()]
    return {**about(sizes), "models": count, "jobs": JOBS, "rows": rows}


def findings(sizes: Sizes) -> dict[str, Any]:
    """Return seconds of the processor and peak memory of each finding about weights, of one model, in one thread."""
    with tempfile.TemporaryDirectory() as name, threadpool_limits(1):
        write_models(Path(name), 1, sizes)
        model = Model(name="made-up-1", title="made-up-1", sources=(FolderSource(folder=Path(name, "made-up-1")),))
        opened = Opened(model, found := in_folder(Path(name, "made-up-1")), open_checkpoint(found))
        rows = []
        for finding in FINDINGS:
            if RUN in finding.needs or plan(finding, opened).key is None:
                continue
            opened.checkpoint.let_go()  # what is read counts, as time and as memory
            tracemalloc.start()
            begin = time.process_time()
            finding.measure(inputs(finding, opened))
            seconds, peak = time.process_time() - begin, tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            rows.append({"name": finding.name, "seconds": round(seconds, 2), "memory_mib": round(peak / MEBI)})
    return {**about(sizes), "rows": rows}


def about(sizes: Sizes) -> dict[str, Any]:
    """Return what figures were measured on, and when; a commit with a plus has changed files."""
    now = today()
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "generators"], cwd=ROOT).returncode
    return {
        **now,
        "commit": now["commit"] + ("+" if changed else ""),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "layers": sizes.n_layer,
        "channels": sizes.d_model,
        "tokens": sizes.vocab_size,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmark", description=__doc__)
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument("--small", action="store_true", help="models that take seconds: to see that it runs")
    parser.add_argument("--write", action="store_true", help="store the figures in results/bench.json")
    chosen = parser.parse_args()
    sizes = SMALL if chosen.small else GPT2
    found = {"whole": whole(chosen.models, sizes), "findings": findings(sizes)}
    print(json.dumps(found, indent=1))
    if chosen.write:
        replace_file(RESULTS, as_json(found).encode())


if __name__ == "__main__":
    main()
