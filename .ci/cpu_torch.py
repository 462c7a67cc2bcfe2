"""Install PyTorch's build for CPUs from an index that has it, if that index answers soon; else leave it to pip.

The usual package index has a build for GPUs under the same version, which brings gigabytes of libraries along. The
version is the one that requirements-torch.txt pins, and nothing else is taken from that index.
"""

import subprocess
import sys
import threading
import urllib.request
from contextlib import suppress
from importlib import metadata
from pathlib import Path

PATIENCE_S = 3.0
REQUIREMENTS = Path(__file__).parents[1] / "requirements-torch.txt"


def answers(url: str) -> bool:
    """Return whether an address answers in time, however long its name server or a proxy takes."""
    answered = threading.Event()

    def ask() -> None:
        with suppress(Exception), urllib.request.urlopen(url, timeout=PATIENCE_S):
            answered.set()

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE_S)
    return answered.is_set()


def main() -> None:
    """Do what the command line asks."""
    index = sys.argv[1].rstrip("/")
    (pin,) = (line for line in REQUIREMENTS.read_text("utf-8").splitlines() if line.startswith("torch=="))
    with suppress(metadata.PackageNotFoundError):
        if metadata.version("torch").partition("+")[0] == pin.removeprefix("torch=="):
            return
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    command = [*pip, "install", "--no-compile", "--no-deps", "--index-url", index, pin]
    if not answers(f"{index}/torch/") or subprocess.run(command, check=False).returncode:
        print(f"{index} doesn't offer {pin} now: pip installs the package index's build.", flush=True)


if __name__ == "__main__":
    main()
