"""A site of one model that opens from the disk, without a server and without the network."""

import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from generators.base.display import display
from generators.base.errors import AtlasError, InputError
from generators.base.files import besides, read_limited, recover_folder, swap_folder
from generators.base.interrupts import Stopped
from generators.base.progress import progress
from generators.checkpoint.registry import Model, Registry
from generators.checkpoint.sources import Places
from generators.compute.results import LARGEST_ARRAYS, MODEL, Store
from generators.compute.running import AS_USUAL, RunSettings
from generators.compute.schedule import compute_model
from generators.site.build import make_pages, run_mkdocs
from generators.site.build_cache import Workshop, alone
from generators.site.locations import packaged

KEPT = ".results"  # in the report: what was measured, so that the next call measures only what is left
PAGES = ".pages"  # in there: the names of the report's other files, so that nobody else's is removed
STOPPED = "What was measured is in the report: open {} in a browser. The same command goes on."


def write_report(
    model: Model, places: Places, output: Path, settings: RunSettings = AS_USUAL, processes: int = 1
) -> list[str]:
    """Compute what is not stored of a model, and write the site of it alone; return a sentence for all that failed.

    Another process that writes a report to the same place is kept from it.

    What is measured is stored inside the report. After Ctrl-C the report of what is stored is written all the same.

    Raises:
        InputError: the checkpoint can't be used, or `output` is a file or holds something that is no report.
        WeightsUnavailableError: the weights can't be downloaded.
        Stopped: by Ctrl-C; says how to go on.
        AtlasError: it can't be written, or another process is at it.
    """
    try:
        place = hashlib.sha256(os.fsencode(output.resolve())).hexdigest()[:16]
        for folder in (output, *besides(output.resolve())):
            _check_ours(folder)
        recover_folder(output.resolve())
    except (OSError, RuntimeError, ValueError) as error:  # links that lead to one another; the root of the disk
        raise InputError(f"{output} can't be written: {error}.") from error
    with alone(Path(tempfile.gettempdir(), f"helix-atlas-{place}"), output):
        store = Store(output / KEPT)
        others = [name for name in store.folders() if name != model.name]
        if others and not (output / KEPT / PAGES).exists() and not (output / "index.html").exists():
            raise InputError(f"{output} has results of {others[0]} and no report; name another place with --output.")
        try:
            failed = _measured(model, places, store, settings, processes)
        finally:
            with suppress(OSError):  # no folder is left where nothing was stored
                (output / KEPT).rmdir()
                output.rmdir()
        for other in store.folders():  # only now: what can't be measured replaces nothing
            if other != model.name:
                shutil.rmtree(store.root / other, ignore_errors=True)
        sentences = _write_pages(model, store, output, stopped=failed is None)
    if failed is None:
        raise Stopped(STOPPED.format(output / "index.html"))
    return [*failed, *sentences]


def _measured(model: Model, places: Places, store: Store, settings: RunSettings, processes: int) -> list[str] | None:
    """Return a sentence for each finding that failed, None if stopped. Raises Stopped: nothing was measured."""
    try:
        with display() as shown:
            done = compute_model(model, places, store, shown, settings=settings, processes=processes)
    except Stopped:
        if not store.finding_names(model.name):
            raise Stopped("Nothing was measured yet.") from None
        return None
    return [f"{finding} failed: {reason}" for finding, reason in done.failed.items()]


def _write_pages(model: Model, store: Store, output: Path, *, stopped: bool) -> list[str]:
    """Write the site from what is stored. The old one stays until it is whole, and what is stored stays in any case.

    Raises AtlasError: it can't be written.
    """
    with tempfile.TemporaryDirectory() as folder, progress() as report:
        if stopped:
            report("Stopped. The report of what is stored is written; Ctrl-C again leaves that.")
        place = Path(folder)
        workshop = Workshop(
            packaged("site_src"), packaged("mkdocs.yml"), place / "pages", place / "cache", place / "site"
        )
        made = make_pages(Registry(models=(model,)), store, workshop, report=report, whole=False)
        run_mkdocs(workshop, from_disk=True)
        _check_ours(output)  # once more: what came there meanwhile isn't replaced
        try:
            shutil.copytree(store.root, workshop.site / KEPT, ignore=_unreadable)
            (workshop.site / KEPT / PAGES).write_text("\n".join(_pages(workshop.site)), "utf-8")
            swap_folder(workshop.site, output.resolve())
        except OSError as error:
            raise AtlasError(f"The report can't be written to {output}: {error}.") from error
    return made.sentences


def _unreadable(folder: str, names: list[str]) -> list[str]:
    """Return what is neither a folder nor a file that results may be, but a pipe, a device or gigabytes."""
    paths = [Path(folder, name) for name in names]
    return [p.name for p in paths if not p.is_dir() and not (p.is_file() and p.stat().st_size <= LARGEST_ARRAYS)]


def _check_ours(folder: Path) -> None:
    """Raise InputError unless a folder is absent, empty, or a report and nothing else: it will be replaced."""
    if not folder.exists():
        return
    kept = folder / KEPT
    if not (folder.is_dir() and (kept.is_dir() or not any(folder.iterdir()))):
        raise InputError(f"{folder} is there and is no report; name another place with --output.")
    found, ours = _pages(folder), set[str]()
    if (kept / PAGES).exists():
        ours = set(read_limited(kept / PAGES, LARGEST_ARRAYS).decode("utf-8", "replace").splitlines())
    elif "index.html" in found and any(kept.glob(f"*/{MODEL}")):
        return  # of a version of the atlas that kept no list
    if foreign := [name for name in found if name not in ours]:
        raise InputError(f"{folder} holds {foreign[0]}, which is no part of a report; name another --output.")


def _pages(folder: Path) -> list[str]:
    """Return the files of a report but for what was measured."""
    paths = (path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())
    return sorted(p.relative_to(folder).as_posix() for p in paths if folder / KEPT not in p.parents)
