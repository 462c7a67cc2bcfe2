"""`make bench`: time and memory of the whole command and of each finding, on the real GPT-2 weights.

Nothing here is a test: timings are read by people. Weights are looked for in $ATLAS_MODELS.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from generators.findings import FINDINGS
from generators.weights import Checkpoint, open_checkpoint
from generators.weights.sources import in_folder

MEBI = 2**20


def gpt2_folder() -> Path:
    """Return where the GPT-2 checkpoint is."""
    for part in os.environ.get("ATLAS_MODELS", "").split(os.pathsep):
        if (Path(part) / "gpt2" / "config.json").is_file():
            return Path(part) / "gpt2"
    sys.exit("make bench needs the GPT-2 weights: name their parent folder in ATLAS_MODELS")


def whole_command(folder: Path) -> None:
    """Time `atlas compute` with an empty store and again with a full one, and tell the peak memory of both."""
    command = [sys.executable, "-c", "from generators.cli import main; main()", "compute", str(folder), "--results"]
    with tempfile.TemporaryDirectory() as results:
        for label in ("atlas compute, empty store", "atlas compute, nothing to do"):
            begin = time.perf_counter()
            subprocess.run([*command, results], check=True, stderr=subprocess.DEVNULL)
            seconds = time.perf_counter() - begin
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / MEBI
            print(f"{label:<40} {seconds:8.2f} s   peak of all runs so far {peak:6.0f} MiB")


def bytes_read(checkpoint: Checkpoint) -> int:
    """Return the size of all tensors that the findings read."""
    tensors = {checkpoint.record(role).name: checkpoint.record(role) for role in checkpoint}
    widths = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
    total = 0
    for tensor in tensors.values():
        elements = 1
        for size in tensor.shape:
            elements *= size
        total += elements * widths[tensor.dtype]
    return total


def each_finding(checkpoint: Checkpoint) -> None:
    """Time each finding's computation by itself."""
    for finding in FINDINGS:
        if all(role in checkpoint for role in finding.roles(finding.needs, checkpoint.architecture.n_layer)):
            begin = time.perf_counter()
            finding.compute(checkpoint, checkpoint.architecture)
            print(f"{finding.name:<40} {time.perf_counter() - begin:8.2f} s")


def main() -> None:
    """Print all measurements."""
    folder = gpt2_folder()
    checkpoint = open_checkpoint(in_folder(folder))
    whole_command(folder)
    print(f"{'tensors read':<40} {bytes_read(checkpoint) / MEBI:8.0f} MiB")
    each_finding(checkpoint)


if __name__ == "__main__":
    main()
