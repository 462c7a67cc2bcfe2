"""Processes that draw pages end with the command that started them, and say nothing of it."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from generators.base.interrupts import ctrl_c_deferred
from generators.site.drawn_pages import _drawing_processes
from tests.conftest import ROOT

pytestmark = pytest.mark.usefixtures("ctrl_c")


def test_ctrl_c_ends_what_is_drawn_at_once():
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt), _drawing_processes(2) as pool:
        with ctrl_c_deferred():
            drawn = [pool.submit(time.sleep, 120) for _ in range(4)]
        while not any(future.running() for future in drawn):
            time.sleep(0.01)
        raise KeyboardInterrupt
    assert time.monotonic() - begin < 60
    assert multiprocessing.active_children() == []


KILLED = """
import os, signal
from generators.site.drawn_pages import _drawing_processes
if __name__ == "__main__":
    with _drawing_processes(2) as pool:
        print(*{pool.submit(os.getpid).result() for _ in range(8)}, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_they_end_when_the_command_is_killed(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, script], env=environment, stdout=subprocess.PIPE, text=True, check=False)
    assert run.returncode == -signal.SIGKILL
    left = [psutil.Process(int(pid)) for pid in run.stdout.split() if psutil.pid_exists(int(pid))]
    assert psutil.wait_procs(left, timeout=20)[1] == []


def test_ctrl_c_means_nothing_to_them():
    with _drawing_processes(1) as pool:
        with ctrl_c_deferred():
            asked = pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, [])
        assert asked.result() == {signal.SIGINT}
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()


def test_ctrl_c_that_was_deferred_comes_after_what_it_must_not_interrupt():
    done = []
    with pytest.raises(KeyboardInterrupt), ctrl_c_deferred():
        signal.raise_signal(signal.SIGINT)
        done.append("started")
    assert done == ["started"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
