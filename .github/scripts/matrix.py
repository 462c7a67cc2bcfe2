"""Divide the registry's models among jobs of the workflow `publish`: prints `matrix=...` for $GITHUB_OUTPUT.

Models of a group go together, a few checkpoints per job; both halves of a checkpoint are in the same job, so that its
files are downloaded once.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from generators.checkpoint.registry import Model, Registry, load_registry, slug

CHECKPOINTS = 4  # a job: whole files of as many fit its disk, one after another
MOST_JOBS = 256  # of a matrix, by GitHub's rules


def jobs(registry: Registry, checkpoints: int = CHECKPOINTS) -> list[dict[str, str]]:
    """Return the name of each job and its models, separated by spaces.

    Raises:
        ValueError: there are more jobs than a matrix may have.
    """
    found = [
        {"name": f"{slug(group)}-{number}", "models": " ".join(model.name for whole in part for model in whole)}
        for group, wholes in _groups(registry)
        for number, part in enumerate(_parts(wholes, checkpoints), start=1)
    ]
    if len(found) > MOST_JOBS:
        raise ValueError(f"{len(found)} jobs are more than the {MOST_JOBS} of a matrix; give each more checkpoints")
    return found


def _parts(wholes: list[list[Model]], size: int) -> Iterator[list[list[Model]]]:
    for begin in range(0, len(wholes), size):
        yield wholes[begin : begin + size]


def _groups(registry: Registry) -> Iterator[tuple[str, list[list[Model]]]]:
    """Yield each group with its checkpoints, each as the models that it holds."""
    groups: dict[str, dict[tuple[str, ...], list[Model]]] = {}
    for model in registry.models:
        place = tuple(source.in_words() for source in model.sources)
        groups.setdefault(model.group or "others", {}).setdefault(place, []).append(model)
    for group, wholes in groups.items():
        yield group, list(wholes.values())


def main() -> None:
    """Print the matrix."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--registry", type=Path, default=Path("models.yml"))
    found = jobs(load_registry(parser.parse_args().registry))
    print(f"matrix={json.dumps({'include': found})}")


if __name__ == "__main__":
    main()
