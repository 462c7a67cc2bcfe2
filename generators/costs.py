"""What computing models takes, before any weight is read: bytes to download, memory, time, and who grants access.

All of it is known from config.json and from the headers of files of weights; of older files, which have no headers to
be read by themselves, only their size. Memory is what the scheduler counts on (`compute/memory.py`). The time is a
guess: of one thread, which runs a model as fast as this machine multiplies matrices while nothing else is done on it.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from math import prod

from generators import findings as all_findings
from generators.base.architecture import Architecture
from generators.base.errors import InputError, WeightsUnavailableError
from generators.base.progress import in_bytes, in_minutes
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.registry import Model
from generators.checkpoint.sources import Files, Places, locate
from generators.compute import memory
from generators.compute.plan import Opened, to_read
from generators.compute.running import RunSettings
from generators.findings.inputs import RUN
from generators.runner.budget import THREADS, assumed_speed

AT_ONCE = 16  # concurrent requests to the hub, one per model
# Seconds of one thread that measuring weights takes, fitted to models of 320 to 4,096 channels: to read and hash each
# number; statistics of E go with V d, neighbors of tokens with V^2 d (more if outputs have a matrix of their own),
# spectra with d^3. Curves as long as P go with n d, random rotations of its channels with d^2.
BASE_S, NUMBERS_S, TOKENS_S, NEIGHBORS_S, UNTIED_S, SPECTRA_S = 8.0, 3e-8, 1e-7, 4e-12, 2.5e-11, 7e-9
CURVE_S, ROTATIONS_S = 2.6e-5, 2.5e-5
# Windows that any model is run on, however short the budget, each as often as it is: a model that rotates on more, as
# random sets of its pairs are held. They are run at this share of the speed at which two matrices are multiplied.
FEWEST_RUNS, FEWEST_ROTATING = 900, 1280
# Prompts that ask to repeat tokens: of 4 in 100 tokens and of some others, in three forms; tokens run for each.
ASKED_SHARE, ASKED, FORMS, PROMPT = 0.04, 280, 3, 6
HEADS = ("lm_head", "predictions", "vocab_", "decoder.bias")  # in names of tensors of an encoder that predicts tokens
SHARE = 0.9  # of the speed at which matrices are multiplied, that runs reach
HOUR_S, LONG_S = 3600.0, 2 * 3600.0
FINDINGS = all_findings.FINDINGS


@dataclass(frozen=True)
class Cost:
    """What computing one model takes: bytes to download, bytes of memory, seconds; None where that isn't known.

    `gated` says that the owner grants access, `trouble` why no more is known.
    """

    model: Model
    download: int | None = None
    memory: int | None = None
    seconds: float | None = None
    gated: bool = False
    trouble: str | None = None


def costs(models: Sequence[Model], places: Places, settings: RunSettings) -> Iterator[Cost]:
    if not settings.skip:
        _speed(settings.device)  # measure before other threads interfere
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            yield from pool.map(lambda model: cost_of(model, places, settings), models)
        finally:
            pool.shutdown(cancel_futures=True)


def cost_of(model: Model, places: Places, settings: RunSettings) -> Cost:
    cost = Cost(model)
    try:
        files = locate(model, places.models_dirs, places.hub)
        cost = replace(cost, gated=files.gated)
        if files.comes_whole:
            return replace(cost, download=files.to_come((), whole=True))
        return _by_headers(cost, Opened(model, files, open_checkpoint(files, model.family, compare=False), settings))
    except (InputError, WeightsUnavailableError) as error:
        return replace(cost, trouble=str(error))


def _by_headers(cost: Cost, opened: Opened) -> Cost:
    checkpoint, runs = opened.checkpoint, opened.why_no_run is None
    a = checkpoint.architecture
    wanted, whole = to_read(FINDINGS, opened)
    findings = [f for f in FINDINGS if opened.reading(f).reason is None and (runs or RUN not in f.needs)]
    each = [memory.to_measure(finding, opened) for finding in findings]
    numbers, budgeted = _numbers(opened.files)
    positions = (a.n_ctx or 0) if "position_embedding" in checkpoint else 0
    return replace(
        cost,
        download=checkpoint.to_come(wanted, whole=whole),
        memory=max([memory.to_plan(FINDINGS, opened), *each]),
        seconds=_of_weights(a, numbers, positions) + (_of_runs(opened, numbers, budgeted) if runs else 0),
    )


def _of_weights(a: Architecture, numbers: int, positions: int) -> float:
    d, vocab = a.d_model, a.vocab_size or 0
    tokens = TOKENS_S * vocab * d + (NEIGHBORS_S if a.tied else UNTIED_S) * vocab**2 * d
    curve = CURVE_S * positions * d + ROTATIONS_S * d**2 if positions else 0
    return BASE_S + NUMBERS_S * numbers + tokens + SPECTRA_S * d**3 + curve


def _of_runs(opened: Opened, numbers: int, budgeted: int) -> float:
    """Return the seconds of all runs: as many as fit the budget, but no fewer than findings need."""
    a, settings = opened.checkpoint.architecture, opened.settings
    window, vocab = min(memory.WINDOW, a.n_ctx or memory.WINDOW), a.vocab_size or 0
    is_headless = not a.causal and not any(head in name for name in opened.files.names() for head in HEADS)
    looked_up = 0 if a.tied and not is_headless else vocab * (a.d_embedding or a.d_model)  # rows of E
    affordable = settings.budget_s * assumed_speed(settings.device) / (2 * window * max(1, budgeted))
    fewest = FEWEST_ROTATING if any(a.rotary) else FEWEST_RUNS
    windows = min(sum(finding.passes for finding in FINDINGS), max(fewest, affordable))
    prompts = (ASKED_SHARE * vocab + ASKED) * FORMS * PROMPT / window if a.causal else 0
    operations = 2 * window * max(1, numbers - looked_up) + 4 * a.n_layer * a.d_model * window**2
    return (windows + prompts) * operations / _speed(settings.device)


@cache
def _speed(device: str) -> float:
    """Return the approximate floating point operations per second of a running model, on one thread or a GPU."""
    if device != "cpu":
        return assumed_speed(device)
    from generators.runner.faster import speed

    return SHARE * speed(THREADS)


def _numbers(files: Files) -> tuple[int, int]:
    """Return how many weights a model has, and on how many a run counts where it chooses how much text to read."""
    sizes = {name: prod(files.header(name).shape) for name in files.names()}
    return sum(sizes.values()), sum(size for name, size in sizes.items() if "embed" not in name)


# Text output

COLUMNS = ("model", "download", "memory", "time here", "access", "results")


def row(cost: Cost, state: str) -> tuple[str, ...]:
    access = "gated" if cost.gated else "open"
    if cost.trouble is not None:
        return cost.model.name, "?", "?", "?", f"{access}: {cost.trouble}" if cost.gated else cost.trouble, state
    memory_needed = "?" if cost.memory is None else in_bytes(cost.memory)
    took = "?" if cost.seconds is None else in_hours(cost.seconds)
    return cost.model.name, in_bytes(cost.download or 0), memory_needed, took, access, state


def in_total(found: Sequence[Cost]) -> str:
    known = [cost for cost in found if cost.trouble is None]
    size, seconds = sum(cost.download or 0 for cost in known), sum(cost.seconds or 0 for cost in known)
    said = f"about {in_bytes(size)} to download and {in_hours(seconds)} on this machine"
    others = len(found) - len(known)
    return f"{said}, not counting {others} that can't be downloaded" if others else said


def in_hours(seconds: float) -> str:
    return in_minutes(seconds) if seconds < LONG_S else f"about {round(seconds / HOUR_S)} h"
