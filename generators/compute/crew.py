"""Who computes: this process, several here, or the workers of a cluster; each gives the same results."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from generators.base.board import Board, board
from generators.base.errors import InputError
from generators.base.progress import progress
from generators.checkpoint.registry import Model
from generators.checkpoint.sources import Places
from generators.compute.results import Store
from generators.compute.running import Settings
from generators.compute.several import compute_models
from generators.compute.tally import Tally

if TYPE_CHECKING:
    from generators.compute.workers import Workers
    from generators.findings.contract import Finding

GB = 1_000_000_000


@dataclass(frozen=True)
class Crew:
    """So many processes here, with so many bytes of memory together (None: what is free); or a cluster's workers."""

    jobs: int = 1
    scheduler: str | None = None
    memory: int | None = None


def chosen(jobs: int, scheduler: str | None, memory_gb: float | None) -> Crew:
    """Return who computes, as a user asked for it.

    Raises:
        InputError: what was asked for makes no sense.
    """
    if scheduler is not None and (jobs != 1 or memory_gb is not None):
        raise InputError("--scheduler goes with neither --jobs nor --memory: the cluster's workers have their own.")
    if memory_gb is not None and not 0 < memory_gb < float("inf"):
        raise InputError(f"--memory is a number of gigabytes above 0, not {memory_gb:g}.")
    return Crew(jobs, scheduler, None if memory_gb is None else int(memory_gb * GB))


def compute_with(
    crew: Crew,
    models: Sequence[Model],
    places: Places,
    store: Store,
    settings: Settings,
    *,
    named: bool,
    findings: "Sequence[Finding[Any]] | None" = None,
) -> Tally:
    """Compute every finding of every model that is not stored yet; arguments are those of `compute_models`.

    Raises:
        InputError: the cluster can't be used.
        AtlasError: results can't be written.
    """
    if crew.jobs == 1 and crew.scheduler is None:
        with progress(len(models)) as (tell, advance):
            return compute_models(
                models, places, store, tell, advance, named=named, findings=findings, settings=settings
            )
    from generators.compute.fleet import Fleet

    workers, places = _workers(crew), replace(places, models_dirs=tuple(d.resolve() for d in places.models_dirs))
    with board() as shown:
        tally = Fleet(places, store, workers, shown, settings).compute(models, named=named, findings=findings)
        shown.report(_summary(shown, len(models), tally))
    return tally


def _workers(crew: Crew) -> "Workers":
    if crew.scheduler is None:
        from generators.compute.processes import Processes

        return Processes(crew.jobs, crew.memory)
    from generators.compute.cluster import connected

    return connected(crew.scheduler)


def _summary(shown: Board, n_models: int, tally: Tally) -> str:
    """Return what it came to; what failed, and why, is told after it."""
    failed = len(set(tally.failed) | set(tally.bad_input))
    said = f"{shown.done} findings of {n_models} models are stored"
    away = len(set(tally.unavailable) - set(tally.failed) - set(tally.bad_input))
    parts = [f"{failed} with failures"] * bool(failed) + [f"{away} can't be had now"] * bool(away)
    return f"{said}; models: {', '.join(parts)}" if parts else said
