"""A worker of a cluster keeps what arrays leave, though Dask starts it so that it would give all of it back."""

import os
import subprocess
import sys

import pytest

from generators.base import allocation
from generators.compute import executors

FAULTS = """
import resource
import numpy as np
from generators.compute import executors
{before}
np.ones(500_000).sum()
first = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    np.ones(500_000).sum()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - first)
"""
OF_DASK = {executors.TRIMS: "65536"}


def faults(before: str) -> int:
    """Return how often a page was asked for anew while arrays of 4 MB came and went."""
    command = [sys.executable, "-c", FAULTS.format(before=before)]
    environment = {**os.environ, **OF_DASK}
    return int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="it is about glibc's malloc")
def test_pages_are_kept():
    assert faults("") > 10 * faults("executors._do_not_trim()")


def test_another_c_library_is_no_trouble(monkeypatch):
    monkeypatch.setenv(executors.TRIMS, "65536")
    monkeypatch.setattr(allocation.ctypes, "CDLL", lambda name: object())
    executors._do_not_trim.__wrapped__()
    allocation.give_back_freed_memory()
