"""A little library that trainings read: a few files of the real standard library, in a folder that passes for it."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.conftest import ROOT

MODULES = ("abc.py", "bisect.py", "colorsys.py", "fnmatch.py", "heapq.py", "keyword.py", "textwrap.py", "types.py")
HELD_OUT = "functools.py"  # its path's hash holds it out
TOKENIZER_ONLY = "idlelib/tooltip.py"
# Begins a training that is killed at step `argv[1]`.
KILLED = """
import os, signal, sys
from dataclasses import replace
from models.training import run
kill_at, sys.argv = int(sys.argv[1]), ["train.py", *sys.argv[2:]]
advance = run.TrainingRun.advance
def killed(self, ids):
    if self.step == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return advance(self, ids)
run.TrainingRun.advance = killed
"""
NEVER = -1


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, here = tmp_path_factory.mktemp("library"), Path(sysconfig.get_path("stdlib"))
    for name in (*MODULES, HELD_OUT):
        shutil.copy(here / name, folder)
    (folder / TOKENIZER_ONLY).parent.mkdir()
    shutil.copy(here / "argparse.py", folder / TOKENIZER_ONLY)
    return folder


def trained(code: str, kill_at: int, *given: object) -> subprocess.CompletedProcess[str]:
    """Run a training in a process of its own."""
    command = [sys.executable, "-c", code, str(kill_at), *map(str, given)]
    environment = {**os.environ, "COLUMNS": "400"}  # rich breaks no line
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
