"""`atlas compute --scheduler`: a scheduler and two workers here, by `make cluster-test`."""

import os
import signal
import time
from pathlib import Path

import pytest
import yaml

from generators.compute.results import Store
from generators.compute.verify import verify
from tests.compute import harness
from tests.compute.harness import stored, with_expected
from tests.torture.costs import DASK_SETTINGS

pytestmark = pytest.mark.cluster
WORKERS = 2


@pytest.fixture(scope="module")
def cluster():
    from distributed import LocalCluster

    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a project of four models, with the results of computing one after another in `expected`."""
    return with_expected(tmp_path_factory.mktemp("project"), 4)


def settings(nested, path=()):
    """Return the paths of all settings in a file of Dask's."""
    if not isinstance(nested, dict):
        return [path]
    return [one for name, inner in nested.items() for one in settings(inner, (*path, name))]


def test_the_recommended_settings_are_settings_of_dask():
    import distributed

    known = yaml.safe_load(Path(distributed.__file__).with_name("distributed.yaml").read_text())
    recommended = settings(yaml.safe_load(DASK_SETTINGS.read_text()))
    assert recommended
    assert set(recommended) <= set(settings(known))


def started(place, cluster, results):
    return harness.started(place, results, "--scheduler", cluster.scheduler_address)


def busy_worker(cluster, client):
    """Return the process of a worker that does a job just now."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        busy = [name for name, tasks in client.processing().items() if tasks]
        if busy:
            return client.run(os.getpid, workers=busy[:1])[busy[0]]
        time.sleep(0.02)
    pytest.fail("no worker ever had a job")


def test_the_same_files_as_one_after_another_and_nothing_twice(place, cluster):
    with started(place, cluster, "together") as process:
        lines = process.stderr.read().splitlines()
    assert process.returncode == 0, lines
    assert stored(place / "together") == stored(place / "expected")
    assert sum(": computing " in line for line in lines) == 12
    assert lines[-1] == "12 findings of 4 models are stored"
    with started(place, cluster, "expected") as process:
        lines = process.stderr.read().splitlines()
    assert process.returncode == 0, lines
    assert not any(": computing " in line for line in lines)


def test_a_worker_killed_in_the_middle_costs_its_job(place, cluster):
    from distributed import Client

    with Client(cluster.scheduler_address, set_as_default=False) as client:
        client.wait_for_workers(WORKERS)
        with started(place, cluster, "killed") as process:
            os.kill(busy_worker(cluster, client), signal.SIGKILL)
            lines = process.stderr.read().splitlines()
    assert process.returncode == 0, lines
    assert sum("begun again" in line for line in lines) == 1, lines
    assert stored(place / "killed") == stored(place / "expected")


def test_ctrl_c_leaves_what_is_whole(place, cluster):
    with started(place, cluster, "interrupted") as process:
        while ": computing " not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130, rest
    assert list(verify(Store(place / "interrupted"))) == []
    with started(place, cluster, "interrupted") as process:
        process.stderr.read()
    assert stored(place / "interrupted") == stored(place / "expected")


def test_no_scheduler_is_a_sentence(atlas, place, monkeypatch):
    monkeypatch.chdir(place)
    monkeypatch.setattr("generators.compute.executors.TIMEOUT_S", 1)
    for address in ("tcp://127.0.0.1:1", "nonsense://"):
        run = atlas("compute", "--scheduler", address)
        assert run.code == 2
        assert "There is no Dask scheduler at" in run.err.splitlines()[-1]
