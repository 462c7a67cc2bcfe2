"""Child processes with limits, and what they printed and returned."""

import contextlib
import io
import json
import os
import re
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import psutil

from generators import cli

KIBI, MEBI, GIBI = 2**10, 2**20, 2**30
SENTENCE = "atlas: "  # how the command begins one
MOST_PRINTED = 100_000  # characters


class Ended(NamedTuple):
    """How a child process ended: by which signal (0: none), its exit code, what it printed, what `act` returned."""

    signal: int
    code: int
    said: str
    gave: Any = None

    @property
    def is_sound(self) -> bool:
        """Return whether it finished, or failed with a sentence and no traceback."""
        short = len(self.said) < MOST_PRINTED and "Traceback" not in self.said
        return not self.signal and short and (self.code == 0 or SENTENCE in self.said)


def in_child(act: Callable[[], Any], seconds: int, memory: int) -> Ended:
    """Run `act` in a child, with limits on seconds of CPU and on further bytes. What it returns must be JSON."""
    receive, send = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(receive)
        try:
            os.write(send, json.dumps(_acted(act, seconds, memory)).encode())
        finally:  # also where the parent was killed: a child must not go on in its place
            os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        told = pipe.read()
    killed = os.WTERMSIG(os.waitpid(pid, 0)[1])
    return Ended(*json.loads(told)) if told and not killed else Ended(killed, 1, f"ended by signal {killed}")


def _acted(act: Callable[[], Any], seconds: int, memory: int) -> Ended:
    said, code, gave = io.StringIO(), 0, None
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
            most = psutil.Process().memory_info().data + memory  # the child has its parent's memory
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))
            signal.alarm(10 * seconds)  # waiting takes no CPU
            gave = act()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:  # what a terminal would show
            code = 1
            traceback.print_exc()
    return Ended(0, code, said.getvalue()[-MOST_PRINTED:], gave)


def atlas(*arguments: object) -> None:
    """Run the command in this process. Raises SystemExit: it failed."""
    with mock.patch.object(sys, "argv", ["atlas", *map(str, arguments)]):
        try:
            cli.main()
        except SystemExit as end:
            if end.code:
                raise


def most_memory() -> int:
    """Return the bytes that this process had at its peak; `ru_maxrss` would count its parent's, too."""
    return KIBI * int(re.findall(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text("utf-8"))[0])


def files_in(folder: Path, *but: str) -> dict[str, bytes]:
    """Return every file of a folder by its path inside, but those of some names."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name not in but)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}
