"""What a command was asked for, from what was typed: models, where weights are, a store of results, settings."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from generators import options
from generators.base.errors import InputError
from generators.base.nearest import nearest

MOST_CHARACTERS = 10_000  # of an argument or a setting; a path has at most 4,096
LEAST_ADDRESSES = 768 * 2**20  # bytes

if TYPE_CHECKING:
    from generators.checkpoint.registry import Model, Registry
    from generators.checkpoint.sources import Places
    from generators.compute.results import Store
    from generators.compute.running import RunSettings
    from generators.findings.contract import Finding


def run_settings(
    budget: float | None, device: str, skip_runs: bool, usual: float = options.DEFAULT_BUDGET
) -> "RunSettings":
    from generators.compute import running

    chosen = running.chosen(usual if budget is None else budget, device, skip=skip_runs)
    return chosen if budget is None else replace(chosen, ends_on_time=True)


def findings(only: list[str] | None) -> "Sequence[Finding[Any]] | None":
    if only is None:
        return None
    from generators.findings import FINDINGS

    known = {finding.name: finding for finding in FINDINGS}
    for name in only:
        if name not in known:
            near = nearest(name, known) or f"; there are {', '.join(known)}"
            raise InputError(f"There is no finding {name!r}{near}.")
    return [finding for name, finding in known.items() if name in only]


def registry(path: Path, *, named: bool = False) -> "Registry":
    """Return the models of the registry, which may be absent if a model is `named` (by folder or hub id)."""
    from generators.checkpoint.registry import Registry, load_registry

    without = named and path == options.DEFAULT_REGISTRY and not path.exists()
    return Registry(models=()) if without else load_registry(path)


def store(root: Path | None, wait: float | None = None) -> "Store":
    """Return the store to use: the folder named, or local results layered over the tracked ones."""
    from generators.compute.results import Store

    return Store(options.LOCAL, wait, under=options.RESULTS) if root is None else Store(root, wait)


def addresses() -> int | None:
    """Return how many bytes of addresses `ulimit -v` allows, None where it sets no limit."""
    with suppress(ImportError):  # not on Windows
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        return None if soft == resource.RLIM_INFINITY else soft
    return None


def check_environment() -> None:
    """Check what libraries read or need when they are imported. Raises InputError: they could not be."""
    settings = [(name, os.environ.get(name, "")) for name in ("ATLAS_RESULTS", "ATLAS_REGISTRY")]
    for name, value in [*settings, *(("An argument", argument) for argument in sys.argv[1:])]:
        if len(value) > MOST_CHARACTERS:
            raise InputError(f"{name} has {len(value):,} characters, {MOST_CHARACTERS:,} at most.")
    allowed = addresses()
    if allowed is not None and allowed < LEAST_ADDRESSES:  # below it, some end the process and some never end
        raise InputError(
            f"`ulimit -v` allows {allowed >> 20} MiB of addresses; allow at least {LEAST_ADDRESSES >> 20} MiB, and "
            "8 GiB to run models."
        )
    for name in ("HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT"):
        said = os.environ.get(name, "10")
        if len(said) > 9 or not said.strip().isdecimal():
            raise InputError(f"{name} is a number of seconds, such as 10, not {said[:80]!r}.")
    said = os.environ.get("HF_ENDPOINT", "")
    if not said:
        return
    try:
        parts = urlsplit(said)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InputError(f"HF_ENDPOINT is the hub's address, such as https://huggingface.co, not {said[:80]!r}.")


def models_here(registry: "Registry", places: "Places") -> "Sequence[Model]":
    from generators.checkpoint.sources import is_here

    return [model for model in registry.models if is_here(model, places.models_dirs)]


def asked_models(
    specs: list[str] | None, registry: "Registry", family: str | None, group: str | None, *, everything: bool
) -> "Sequence[Model]":
    if sum((bool(specs), group is not None, everything)) > 1:
        raise InputError("Name models, or a --group, or --all: one of the three.")
    if group is not None:
        groups = dict.fromkeys(model.group for model in registry.models if model.group)
        found = [model for model in registry.models if model.group == group]
        if not found:
            raise InputError(f"There is no group {group!r}; there are: {'; '.join(groups)}.")
        return found
    if everything:
        return registry.models
    return named_models(specs, registry, family) if specs or family else ()


def named_models(specs: list[str] | None, registry: "Registry", family: str | None = None) -> "Sequence[Model]":
    from generators.checkpoint.typed import find_model, find_models

    if family is None:
        found = [model for spec in specs or () for model in find_models(spec, registry)]
        return list(_by_name(found).values()) if specs else registry.models
    if len(specs or []) != 1:
        raise InputError("--family goes with exactly one MODEL: it is the table that this one is read by.")
    return [find_model(spec, registry).model_copy(update={"family": family}) for spec in specs or ()]


def _by_name(models: "Sequence[Model]") -> "dict[str, Model]":
    """Return models by name, each once. Raises InputError: two have one name, and so one folder of results."""
    first: dict[str, Model] = {}
    for model in models:
        other = first.setdefault(model.name, model)
        if other.sources != model.sources:
            these = " and ".join(source.in_words() for source in (other.sources[0], model.sources[0]))
            raise InputError(f"Results of {these} would both be stored as {model.name}: rename one of them.")
    return first


def places(offline: bool) -> "Places":
    from generators.checkpoint.sources import Hub, Places

    folders = [Path(part) for part in os.environ.get("ATLAS_MODELS", "").split(os.pathsep) if part]
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"The models folder {folder} isn't there.")
    return Places(folders, Hub(offline=offline))


def with_counts(specs: list[str] | None, found: "Sequence[Model]", counts: Path) -> "Sequence[Model]":
    if len(specs or []) != 1:
        raise InputError("--counts goes with exactly one MODEL: they are the counts of its tokens.")
    return [found[0].model_copy(update={"counts": counts})]


def on_own_samples(
    models: "Sequence[Model]", only: list[str] | None, settings: "RunSettings"
) -> "tuple[Sequence[Model], list[str], RunSettings]":
    from generators.checkpoint.registry import ON_OWN_SAMPLES
    from generators.findings import FINDINGS
    from generators.findings.inputs import RUN

    renamed = [
        model.model_copy(update={"name": model.name + ON_OWN_SAMPLES, "title": f"{model.title}, own samples"})
        for model in models
    ]
    running = [
        finding.name for finding in FINDINGS if RUN in finding.needs and finding.name in (only or [finding.name])
    ]
    if not running:
        raise InputError("--own-samples measures findings that run the model, and --only names none of them.")
    return renamed, running, replace(settings, own_samples=True)


def stored_name(spec: str, store: "Store", path: Path) -> str:
    """Return the name of a model in the store: `spec` itself, or what was given to `atlas compute`."""
    from generators.checkpoint.registry import SLUG

    if SLUG.fullmatch(spec) and spec in store.names():
        return spec
    return named_models([spec], registry(path, named=True))[0].name


def row(store: "Store", model: "Model") -> tuple[str, ...]:
    weights = " or ".join(source.in_words() for source in model.sources)
    return model.name, model.title, weights, state(store, model), model.adds or ""


def state(store: "Store", model: "Model") -> str:
    try:
        if store.model(model.name) is None:
            return "not computed yet"
        dates = store.dates(model.name)
    except InputError:
        return "damaged"
    return f"computed {max(dates)}" if dates else "nothing could be computed"
