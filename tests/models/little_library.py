"""A few files of the real standard library, in a folder that passes for a whole one."""

import shutil
import sysconfig
from pathlib import Path

MODULES = ("abc.py", "bisect.py", "colorsys.py", "fnmatch.py", "heapq.py", "keyword.py", "textwrap.py", "types.py")
HELD_OUT = "functools.py"  # its path's hash holds it out
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
TOKENIZER_ONLY = "idlelib/tooltip.py"


def write_little_library(folder: Path) -> Path:
    """Copy them into `folder` and return it."""
    here = Path(sysconfig.get_path("stdlib"))
    for name in (*MODULES, HELD_OUT):
        shutil.copy(here / name, folder)
    (folder / TOKENIZER_ONLY).parent.mkdir()
    shutil.copy(here / "argparse.py", folder / TOKENIZER_ONLY)
    return folder
