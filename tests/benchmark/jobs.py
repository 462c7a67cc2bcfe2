"""`python -m tests.benchmark.jobs`: made-up models one after another, by `--jobs`, and by a Dask cluster here.

All in one run, so that ratios are of one machine in one state; the files that each leaves are compared. What can be
reached depends on the machine: its "cores" may be two threads of one. So as many commands as jobs are run at once
too, which share nothing and know nothing of each other. The cluster is started where `make cluster-test` has made its
environment. `make bench` has it as a section, which is kept.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.benchmark.made_up import GPT2, write_models
from tests.benchmark.timing import machine, seconds_of_command
from tests.checkpoints import Sizes

ROOT = Path(__file__).parents[2]
OF_CLUSTER = ROOT / ".venv-cluster" / "bin" / "python"
OF_DASK = ROOT / "docs" / "dask.yaml"  # what is recommended where workers share their cores with the work
ATLAS = ["-c", "from generators.cli import main; main()", "compute", "--skip-runs"]
MODELS, JOBS = 8, 2
SMALL = Sizes(n_layer=2, n_head=4, d_model=128, n_ctx=256, vocab_size=4000)
CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=int(sys.argv[1]), threads_per_worker=1, dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


def timed(place: Path, results: str, *options: str, python: Path | str = sys.executable) -> dict[str, float]:
    """Return the seconds that computing all models takes, and the processor's of the command and its processes.

    Of a cluster those are the command's alone: its workers are no processes of it.
    """
    command = [str(python), *ATLAS, "--results", results, *options]
    processor, clock = seconds_of_command(command, place, environment())
    return {"seconds": round(clock, 2), "processor_seconds": round(processor, 2)}


def timed_apart(place: Path, names: list[str]) -> float:
    """Return the seconds until as many commands as names, all at once, have computed a model each."""
    begin = time.perf_counter()
    commands = [[sys.executable, *ATLAS, "--results", f"apart-{name}", name] for name in names]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = [subprocess.Popen(command, cwd=place, env=environment(), **quiet) for command in commands]
    failed = [process.wait() for process in running]
    assert not any(failed)
    return round(time.perf_counter() - begin, 2)


def environment() -> dict[str, str]:
    """Return the environment of a command: this code, one thread of its own, and the settings of Dask."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "DASK_CONFIG": str(OF_DASK)}


@contextmanager
def cluster(workers: int) -> Iterator[str]:
    """Yield the address of a scheduler with so many workers on this machine."""
    with tempfile.TemporaryDirectory() as place:
        script = Path(place, "started.py")  # each worker imports it anew
        script.write_text(CLUSTER)
        command = [str(OF_CLUSTER), str(script), str(workers)]
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


def measured(count: int, jobs: int, sizes: Sizes) -> dict[str, Any]:
    """Return what each way takes and how many times faster than one after another it is."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        names = write_models(place, count, sizes)
        ways = {"one after another": timed(place, "one"), "jobs": timed(place, "jobs", "--jobs", str(jobs))}
        if OF_CLUSTER.is_file():
            with cluster(jobs) as address:
                ways["cluster"] = timed(place, "cluster", "--scheduler", address, python=OF_CLUSTER)
        expected = files(place / "one")
        assert expected
        for way in set(ways) - {"one after another"}:
            assert files(place / way) == expected, f"{way} leaves other files"
        unchanged = timed(place, "jobs", "--jobs", str(jobs))
        apart = timed_apart(place, names[:jobs])
    one = ways["one after another"]["seconds"]
    return {
        "models": count,
        "jobs": jobs,
        "layers": sizes.n_layer,
        "d_model": sizes.d_model,
        "vocabulary": sizes.vocab_size,
        "files": len(expected),
        "ways": {way: {**took, "times_faster": round(one / took["seconds"], 2)} for way, took in ways.items()},
        "nothing_to_do": unchanged,
        "apart": {"seconds": apart, "times_faster": round(one / count * jobs / apart, 2)},
    }


def side_by_side(count: int = MODELS, jobs: int = JOBS, sizes: Sizes = GPT2) -> dict[str, Any]:
    """Measure all ways: a section of `make bench`."""
    return measured(count, jobs, sizes)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--small", action="store_true", help="models that take seconds: to see that it runs")
    given = parser.parse_args()
    found = {**machine(), **measured(given.models, given.jobs, SMALL if given.small else GPT2)}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
