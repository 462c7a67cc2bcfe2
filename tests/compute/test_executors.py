"""`atlas compute --jobs`: processes that are killed or interrupted cost their job at most, and none stays behind."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from multiprocessing import Pipe
from threading import Thread
from types import SimpleNamespace

import psutil
import pytest

from generators.base.display import Display
from generators.base.progress import silent
from generators.compute import executors
from generators.compute.executors import Processes
from generators.compute.jobs import Failed
from generators.compute.results import Store
from generators.compute.verify import verify
from tests.compute.harness import ONLY, heeding_ctrl_c, started, stored, with_expected

MEASURING = re.compile(r"computing (\w+)$")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a project of three models, with the results of computing one after another in `expected`."""
    return with_expected(tmp_path_factory.mktemp("project"), 3)


@contextmanager
def at_rest(process):
    """Yield the workers while nothing goes on: all would be done before they are looked up."""
    os.killpg(process.pid, signal.SIGSTOP)
    try:
        children = psutil.Process(process.pid).children(recursive=True)
        workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
        assert len(workers) == 2
        yield workers
    finally:
        os.killpg(process.pid, signal.SIGCONT)


def until_measuring(process, count=1):
    """Read lines until so many findings were begun; return those lines."""
    lines = []
    while sum(1 for line in lines if MEASURING.search(line)) < count:
        line = process.stderr.readline().rstrip()
        assert line or process.poll() is None, lines
        lines.append(line)
    return lines


def test_a_killed_process_costs_its_job(place):
    with started(place, "killed", "--jobs", "2") as process:
        lines = until_measuring(process, 2)
        with at_rest(process) as workers:
            workers[0].kill()
        lines += process.stderr.read().splitlines()
    assert process.returncode == 0, lines
    assert sum(line.endswith("is begun again: its process ended (SIGKILL)") for line in lines) == 1
    assert sum(bool(MEASURING.search(line)) for line in lines) in (9, 10)
    assert stored(place / "killed") == stored(place / "expected")
    assert lines[-1] == "9 findings of 3 models are stored"


def test_ctrl_c_ends_at_once_and_what_is_stored_is_whole(tmp_path):
    # So many models that work is left when the fourth finding is begun, on any machine.
    place, results = with_expected(tmp_path, 30), "interrupted"
    with started(place, results, "--jobs", "2") as process:
        until_measuring(process, 4)
        with at_rest(process) as workers:
            begin = time.monotonic()
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: of all processes in front
        process.wait()
        assert time.monotonic() - begin < 10  # many times what it takes, on a machine that has other work
        rest = process.stderr.read()
    assert process.returncode == 130, rest
    *others, said = rest.splitlines()
    assert said.startswith("Stopped. What was measured is stored")
    assert all(re.match(r"model-\d+[: ]", line) for line in others), rest
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert alive == []
    store = Store(place / results)
    assert list(verify(store)) == []
    whole = stored(place / "expected")
    left = stored(place / results)
    assert all(whole[name] == data for name, data in left.items())
    assert sum(len(store.finding_names(name)) for name in store.names()) >= 2  # 4 begun, one at most lost by each


# Presses Ctrl-C when the first process was started and not yet told what to do.
AT_THE_START = """
import os, signal, sys, time
from multiprocessing import util
from generators.cli import main

start = util.spawnv_passfds

def interrupted(path, command, passed):
    process = start(path, command, passed)
    if any("spawn_main" in str(part) for part in command):
        os.killpg(0, signal.SIGINT)
        time.sleep(1)
        print("handed over", file=sys.stderr)
    return process

util.spawnv_passfds = interrupted
main()
"""


def test_ctrl_c_while_the_first_process_starts_waits_until_it_has(place):
    command = [sys.executable, "-c", AT_THE_START, "compute", *ONLY, "--results", "at-the-start", "--jobs", "2"]
    outside = {"start_new_session": True, "preexec_fn": heeding_ctrl_c}
    run = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, **outside)
    assert run.returncode == 130
    assert run.stdout == ""
    *before, said = run.stderr.splitlines()
    assert [line for line in before if ": opening" not in line] == ["handed over"]
    assert said.startswith("Stopped. ")


def test_processes_end_with_the_one_that_started_them(place):
    with started(place, "orphans", "--jobs", "2") as process:
        until_measuring(process, 2)
        with at_rest(process) as workers:
            process.kill()
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert alive == []


def test_an_answer_that_cannot_be_sent_is_a_failure(monkeypatch):
    context = SimpleNamespace(perform=lambda job, say: lambda: job)
    monkeypatch.setattr(executors, "end_with", lambda parent: None)
    monkeypatch.setattr(executors, "WorkerContext", lambda share: context)
    here, there = Pipe()
    worker = Thread(target=executors._do_jobs, args=(there, os.getpid(), 1.0))
    worker.start()
    here.send("a job")
    answer = here.recv()
    here.close()
    worker.join()
    assert isinstance(answer, Failed)
    assert "lambda" in answer.sentence


def test_jobs_share_the_memory_that_is_free(monkeypatch):
    monkeypatch.setattr(executors, "free_memory", lambda: 100)
    workers = Processes(Display(silent), 2)
    assert workers.admits(1000)  # nothing else is done
    workers._running["1"] = SimpleNamespace(need=60)
    assert workers.admits(40)
    assert not workers.admits(41)


@pytest.mark.parametrize(("jobs", "threads"), [(3, "2"), (16, "1")])
def test_processes_share_the_cores_and_what_the_user_said_of_threads_stays(monkeypatch, jobs, threads):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    workers = Processes(Display(silent), jobs)
    process, connection = workers._started()
    begun = psutil.Process(process.pid)
    while "OPENBLAS_NUM_THREADS" not in begun.environ():  # it is still its parent's copy
        assert begun.is_running()
    found = begun.environ()
    process.kill()
    connection.close()
    assert (found["OPENBLAS_NUM_THREADS"], found["OMP_NUM_THREADS"]) == ("3", threads)
    assert "OMP_NUM_THREADS" not in os.environ
