"""What a user typed -> a model: a name in `models.yml`, a folder, a file, a hub id."""

import re
from pathlib import Path
from typing import get_args

from generators.base.errors import InputError
from generators.base.nearest import nearest
from generators.checkpoint.registry import HUB_ID, LONGEST_NAME, FolderSource, HubSource, Model, Registry, Stack, slug
from generators.checkpoint.single_files import what_to_name

USUAL_FILE = re.compile(r"ckpt|checkpoint|model|pytorch_model|weights|state_dict|best|last")


def find_model(spec: str, registry: Registry) -> Model:
    """Turn what the user typed (a name in models.yml, a folder, a hub id) into a model.

    Of a checkpoint that holds two models each is meant by its ending: `owner/whisper--encoder`.

    Raises InputError: it is none of the three; names the nearest, and what a file is that was named.
    """
    model = _as_typed(spec, registry)
    whole, stack = _halved(spec)
    if model is None and stack is not None and (pair := _as_typed(whole, registry)) is not None:
        model = half(pair, stack)
    if model is None:
        near = nearest(spec, [*(model.name for model in registry.known()), *(one.name for one in registry.series)])
        raise InputError(f"{spec!r} is no model in models.yml{near}, no folder, and no hub id such as 'owner/model'.")
    return model


def find_models(spec: str, registry: Registry) -> list[Model]:
    series = registry.find_series(spec)
    if series is not None:
        return [model for _, model in registry.members(series)]
    return [find_model(spec, registry)]


def half(model: Model, stack: Stack) -> Model:
    return model.model_copy(
        update={"name": f"{model.name}--{stack}", "title": f"{model.title}, {stack}", "stack": stack}
    )


def _as_typed(spec: str, registry: Registry) -> Model | None:
    if (model := registry.find(spec)) is not None:
        return model
    if (path := _path(spec)) is not None:
        return _model_at(path, spec)
    if HUB_ID.fullmatch(spec) and len(spec) <= LONGEST_NAME and _halved(spec)[1] is None:
        return Model(name=slug(spec.replace("/", "--")), title=spec, sources=(HubSource(hub=spec),))
    return None


def _halved(spec: str) -> tuple[str, Stack | None]:
    """Split off `--encoder` and the like; no hub id has two hyphens in a row."""
    for stack in get_args(Stack):
        if spec.endswith(f"--{stack}"):
            return spec.removesuffix(f"--{stack}"), stack
    return spec, None


def _path(spec: str) -> Path | None:
    try:
        path = Path(spec).expanduser()
        return path.resolve() if spec and (path.is_dir() or path.is_file()) else None
    except (OSError, ValueError, RuntimeError):
        return None


def _model_at(path: Path, spec: str) -> Model:
    """Return the model in a folder or a file. Raises InputError: it isn't read, or no page can be called so."""
    kind, names = "folder", [path.name]
    if path.is_file():
        if (said := what_to_name(path, spec)) is not None:
            raise InputError(said)
        stem = re.sub(r"-\d{5}-of-\d{5}$", "", path.stem)  # any shard names all of them
        kind, names = "file", [path.parent.name if USUAL_FILE.fullmatch(stem) else stem, path.stem]
    name = next(filter(None, map(slug, names)), None)
    if name is None:
        raise InputError(f"The {kind} {path} has no name that can name a page; rename it.")
    return Model(name=name, title=name, sources=(FolderSource(folder=path),))
