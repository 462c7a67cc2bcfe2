"""How much memory a job will need, from what a checkpoint's index says of shapes: no weight is read for it.

Of a finding that measures weights, in bytes:

    BASE + COPIES x 4 x (numbers in the two largest tensors that it reads) + SQUARES x 8 x d_model^2 + TOKEN x V

`BASE` is an interpreter with its libraries and the atlas's own buffers, `COPIES` a tensor in float32 beside what is
made of it at a time, `SQUARES` the spectra of the stream, `TOKEN` what is kept of every token: its text, where it
stands in ranks, its neighbours. Of a finding that runs the model:

    RUN_BASE + the same, but for BASE + MEMORY_FACTOR x 4 x (all numbers of the checkpoint) + BATCHES x BATCH_BYTES
    + the states kept of windows

where a batch is as many windows as fit into `BATCH_BYTES`, one at least, and its largest array is its logits or its
attention. Findings share the states of up to 256 windows, until `KEPT_BYTES` are full. To plan, each tensor is read
once: as the first formula, with the largest one tensor.
"""

from collections.abc import Iterable
from math import prod
from typing import Any

from generators.checkpoint.checkpoint import Checkpoint
from generators.compute.plan import Opened
from generators.findings.contract import Finding
from generators.findings.inputs import RUN
from generators.runner.budget import BATCH_BYTES, FLOAT_BYTES, KEPT_BYTES
from generators.runner.opening import MEMORY_FACTOR

MEBI = 1 << 20
BASE = 256 * MEBI
RUN_BASE = 900 * MEBI  # includes PyTorch and transformers
COPIES = 1.5
SQUARES = 6
TOKEN = 2048  # bytes per token
BATCHES = 4
WINDOW = 256  # tokens per window
KEPT_WINDOWS = 256  # that findings share
WIDE = 8  # bytes of float64


def to_measure(finding: Finding[Any], opened: Opened) -> int:
    checkpoint = opened.checkpoint
    roles = [role for role in opened.reading(finding).roles if role in checkpoint]
    needed = _of_tensors(roles, checkpoint, 2)
    if RUN not in finding.needs or opened.why_no_run:
        return BASE + needed
    return RUN_BASE + needed + _of_a_run(opened)


def to_plan(findings: Iterable[Finding[Any]], opened: Opened) -> int:
    """Return the bytes needed to plan findings of a model, which reads one tensor at a time."""
    checkpoint, runs = opened.checkpoint, False
    wanted: dict[str, None] = {}
    for finding in findings:
        runs |= RUN in finding.needs and not opened.why_no_run
        wanted |= dict.fromkeys(role for role in opened.reading(finding).roles if role in checkpoint)
    if runs:
        wanted = dict.fromkeys(checkpoint)
    return BASE + _of_tensors(list(wanted), checkpoint, 1)


def of_machine() -> int:
    import psutil

    return int(psutil.virtual_memory().total)


def _of_tensors(roles: Iterable[str], checkpoint: Checkpoint, at_once: int) -> int:
    sizes = dict(checkpoint.size(role) for role in roles)
    largest = sum(sorted(sizes.values(), reverse=True)[:at_once])
    a = checkpoint.architecture
    return int(COPIES * FLOAT_BYTES * largest + SQUARES * WIDE * a.d_model**2 + TOKEN * (a.vocab_size or 0))


def _of_a_run(opened: Opened) -> int:
    files, a = opened.files, opened.checkpoint.architecture
    numbers = sum(prod(files.header(name).shape) for name in files.names())
    window = min(WINDOW, a.n_ctx or WINDOW)
    widest = FLOAT_BYTES * window * max(a.vocab_size or 0, a.n_head * window, 4 * a.d_model)
    kept = min(KEPT_BYTES, FLOAT_BYTES * KEPT_WINDOWS * window * (a.n_layer + 2) * a.d_model)
    return int(MEMORY_FACTOR * FLOAT_BYTES * numbers) + BATCHES * max(BATCH_BYTES, widest) + kept
