"""A site of one model that opens from the disk, without a server and without the network."""

import tempfile
from pathlib import Path

from generators.base.errors import InputError
from generators.base.progress import Report
from generators.checkpoint.registry import Model, Registry
from generators.checkpoint.sources import Places
from generators.compute.results import Store
from generators.compute.running import AS_USUAL, RunSettings
from generators.compute.schedule import compute_model
from generators.site.build import make_pages, run_mkdocs
from generators.site.build_cache import Workshop
from generators.site.locations import packaged


def write_report(
    model: Model, places: Places, output: Path, report: Report, settings: RunSettings = AS_USUAL
) -> list[str]:
    """Compute a model and write the site of it alone; return a sentence for everything that failed.

    Raises:
        InputError: the checkpoint can't be used, or `output` is a file or holds something that is no report.
        WeightsUnavailableError: the weights can't be had now.
    """
    if output.exists() and not (output.is_dir() and (not any(output.iterdir()) or (output / "index.html").is_file())):
        raise InputError(f"{output} is there and is no report; name another place with --output.")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        store = Store(place / "results")
        done = compute_model(model, places, store, report, settings=settings)
        workshop = Workshop(
            packaged("site_src"), packaged("mkdocs.yml"), place / "pages", place / "cache", output.resolve()
        )
        made = make_pages(Registry(models=(model,)), store, workshop, report=report, whole=False)
        run_mkdocs(workshop, from_disk=True)
    failed = [f"{finding} failed: {reason}" for finding, reason in done.failed.items()]
    return [*failed, *made.sentences]
