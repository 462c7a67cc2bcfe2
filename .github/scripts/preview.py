"""Write a report of each model that a pull request adds to the registry, or changes there.

A model that can't be had or read is skipped: a notice says why. Exit 1: a report failed, or there are more models
than a preview takes; what could be written is there.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from skipping import say

from generators.base.errors import InputError, WeightsUnavailableError
from generators.checkpoint.registry import Model, Registry, load_registry
from generators.checkpoint.sources import Places
from generators.compute.plan import open_model

ATLAS = [sys.executable, "-c", "from generators.cli import main; main()"]
MOST = 4  # models: a preview is no way to have the whole atlas computed
MINUTES = "2"  # of running each model


def added(before: Registry, now: Registry) -> list[str]:
    """Return the names of the models that are new, or not what they were; folders are the same from either root."""
    known = {model.name: model.model_dump(exclude={"sources", "counts"}) for model in before.models}
    places = {model.name: [_place(source, before) for source in model.sources] for model in before.models}
    return [
        model.name
        for model in now.models
        if known.get(model.name) != model.model_dump(exclude={"sources", "counts"})
        or places[model.name] != [_place(source, now) for source in model.sources]
    ]


def _place(source: object, registry: Registry) -> object:
    folder = getattr(source, "folder", None)
    return source if folder is None else str(folder.relative_to(registry.root))


def why_not(model: Model) -> str | None:
    """Return why a model can't be had or read, as far as its config and headers say it; else None."""
    try:
        open_model(model, Places())
    except (InputError, WeightsUnavailableError) as error:
        return str(error)
    return None


def main() -> None:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path, help="the registry as it is where the pull request goes")
    parser.add_argument("now", type=Path, help="the registry of the pull request")
    parser.add_argument("output", type=Path, help="a folder for the reports")
    given, options = parser.parse_known_args()
    now = load_registry(given.now)
    names = added(load_registry(given.before), now)
    skipped = {name: why for name in names[:MOST] if (why := why_not(now.find(name))) is not None}
    say(skipped)
    failed = []
    for name in (name for name in names[:MOST] if name not in skipped):
        command = [*ATLAS, "report", "--registry", str(given.now), "--output", str(given.output / name)]
        if subprocess.run([*command, "--budget", MINUTES, *options, "--", name], check=False).returncode:
            failed.append(name)
    if failed:
        sys.exit(f"Something failed in: {', '.join(failed)}")
    if len(names) > MOST:
        sys.exit(f"The first {MOST} of {len(names)} models were previewed.")


if __name__ == "__main__":
    main()
