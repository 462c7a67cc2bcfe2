"""What a user typed -> a model: a name in `models.yml`, a folder, a file, a hub id."""

import re
from collections.abc import Sequence
from pathlib import Path

from generators.base.errors import InputError
from generators.base.nearest import nearest
from generators.checkpoint.registry import (
    HUB_ID,
    LONGEST_NAME,
    STACKS,
    FolderSource,
    HubSource,
    Model,
    Registry,
    Stack,
    slug,
)
from generators.checkpoint.single_files import what_to_name

USUAL_FILE = re.compile(r"ckpt|checkpoint|model|pytorch_model|weights|state_dict|best|last")


def find_model(spec: str, registry: Registry) -> Model:
    """Turn what the user typed (a name in models.yml, a folder, a hub id) into a model.

    Of a checkpoint that holds two models each is meant by its ending: `owner/whisper--encoder`.

    Raises InputError: it is none of the three; names the nearest, and what a file is that was named.
    """
    return _found(spec, registry, [model.name for model in registry.known()])


def find_models(spec: str, registry: Registry) -> list[Model]:
    series = registry.find_series(spec)
    if series is not None:
        return [model for _, model in registry.members(series)]
    names = [model.name for model in registry.known()]
    return [_found(spec, registry, [*names, *(one.name for one in registry.series)])]


def _found(spec: str, registry: Registry, names: Sequence[str]) -> Model:
    model = _as_typed(spec, registry)
    if model is None:
        whole, stack = _halved(spec)
        of_pair = _as_typed(whole, registry) if stack else None
        model = None if of_pair is None else half(of_pair, stack)
    if model is None:
        near = nearest(spec, names)
        raise InputError(f"{spec!r} is no model in models.yml{near}, no folder, and no hub id such as 'owner/model'.")
    return model


def half(model: Model, stack: Stack | None) -> Model:
    return model.model_copy(
        update={"name": f"{model.name}--{stack}", "title": f"{model.title}, {stack}", "stack": stack}
    )


def _as_typed(spec: str, registry: Registry) -> Model | None:
    known = registry.find(spec)
    if known is not None:
        return known
    folder = _folder(spec)
    if folder is not None:
        return _model_in(folder)
    file = _file(spec)
    if file is not None:
        return _model_of(file)
    if HUB_ID.fullmatch(spec) and len(spec) <= LONGEST_NAME and _halved(spec)[1] is None:
        return Model(name=slug(spec.replace("/", "--")), title=spec, sources=(HubSource(hub=spec),))
    return None


def _halved(spec: str) -> tuple[str, Stack | None]:
    """Split off `--encoder` and the like; no hub id has two hyphens in a row."""
    for stack in STACKS:
        if spec.endswith(f"--{stack}"):
            return spec.removesuffix(f"--{stack}"), stack
    return spec, None


def _folder(spec: str) -> Path | None:
    try:
        path = Path(spec).expanduser()
        return path.resolve() if spec and path.is_dir() else None
    except (OSError, ValueError, RuntimeError):
        return None


def _file(spec: str) -> Path | None:
    """Return a file of weights; None where it is no file. Raises InputError: it can't be read by itself."""
    try:
        path = Path(spec).expanduser().resolve()
        if not path.is_file():
            return None
    except (OSError, ValueError, RuntimeError):
        return None
    if (said := what_to_name(path, spec)) is not None:
        raise InputError(said)
    return path


def _model_of(file: Path) -> Model:
    stem = re.sub(r"-\d{5}-of-\d{5}$", "", file.stem)  # any shard names all of them
    stem = file.parent.name if USUAL_FILE.fullmatch(stem) else stem
    name = slug(stem) or slug(file.stem)
    if not name:
        raise InputError(f"The file {file} has no name that can name a page; rename it.")
    return Model(name=name, title=name, sources=(FolderSource(folder=file),))


def _model_in(folder: Path) -> Model:
    name = slug(folder.name)
    if not name:
        raise InputError(f"The folder {folder} has no name that can name a page; rename it.")
    return Model(name=name, title=name, sources=(FolderSource(folder=folder),))
