"""Both caches on this machine: tensors, which are the atlas's own, and whole files, which the hub's client keeps.

Other programs use the hub client's cache, too. Nothing there is removed unless that was asked for.
"""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from generators.base.errors import InputError
from generators.base.progress import in_bytes
from generators.checkpoint.sources.tensor_cache import CachedFile, TensorCache, capacity, default_folder, surplus

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
DAY = 86400.0
COLUMNS = ("cache", "size", "folder")


@dataclass(frozen=True)
class CachedModel:
    """A model in the hub client's cache: when it was last used (seconds since 1970), and its size in bytes."""

    used: float
    size: int
    name: str
    repo: Any  # huggingface_hub's CachedRepoInfo

    def in_words(self) -> str:
        days = int((time.time() - self.used) / DAY)
        when = "today" if days < 1 else f"{days} day{'s' * (days > 1)} ago"
        return f"{self.name}: {in_bytes(self.size)}, last used {when}"


def hub_folder() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def hub_models() -> list[CachedModel]:
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repos = scan_cache_dir(hub_folder()).repos
    except CacheNotFound:
        return []
    except ValueError:
        raise InputError(f"{hub_folder()}, the cache of the hub's client, is no folder; set HF_HUB_CACHE.") from None
    of_models = (repo for repo in repos if repo.repo_type == "model")
    models = (CachedModel(repo.last_accessed, repo.size_on_disk, repo.repo_id, repo) for repo in of_models)
    return sorted(models, key=lambda model: model.used)


def parsed_size(text: str) -> int:
    """Return the bytes of a size such as `20GB`.

    Raises InputError: it is none.

    >>> parsed_size("1.5 GB"), parsed_size("0")
    (1500000000, 0)
    """
    match = re.fullmatch(r"(\d{1,30}(?:\.\d+)?)\s*([KMGT]?)B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise InputError(f"{text!r} is no size; write it as 20GB or 500MB.")
    return int(float(match[1]) * UNITS[match[2].upper()])


def overview() -> list[tuple[str, str, str]]:
    cache, models = TensorCache(default_folder()), hub_models()
    tensors, notes = cache.tensors(), cache.notes()
    return [
        (f"the atlas's: {len(tensors)} tensors, {len(notes)} notes", _size([*tensors, *notes]), str(cache.folder)),
        (f"the hub client's: files of {len(models)} models", _size(models), str(hub_folder())),
    ]


def advice() -> Iterator[str]:
    limit, models = in_bytes(capacity()), hub_models()
    yield f"The atlas's cache stays below {limit} (ATLAS_CACHE_GB): what was unused longest goes first."
    yield "To make it smaller: atlas cache --prune 5GB. To empty it: atlas cache --prune 0."
    if models:
        yield "Other programs use the hub client's cache, too. It holds, unused longest first:"
        yield from (f"  {model.in_words()}" for model in models)
        yield "To remove one: hf cache rm model/OWNER/NAME. To prune both caches: atlas cache --prune 20GB --hub."


def prune(most: int, *, hub: bool = False) -> Iterator[str]:
    """Remove what was unused longest until at most so many bytes are left, and say what, before it is removed.

    `hub`: count the hub client's cache, too, and remove models from it. Otherwise only tensors are removed.
    """
    cache = TensorCache(default_folder())
    everything: list[CachedFile | CachedModel] = [*cache.tensors(), *(hub_models() if hub else ())]
    chosen = list(surplus(everything, most))
    tensors = [entry for entry in chosen if isinstance(entry, CachedFile)]
    models = [entry for entry in chosen if isinstance(entry, CachedModel)]
    if tensors:
        yield f"Removing from {cache.folder}: {len(tensors)} tensor{'s' * (len(tensors) > 1)}, {_size(tensors)}"
    for file in (*tensors, *(cache.notes() if most == 0 else ())):
        _remove(file.path, cache.folder)
    for model in models:
        yield f"Removing from {hub_folder()}: {model.in_words()}"
        _remove_model(model)
    if not chosen:
        yield f"Nothing is removed: {_size(everything)} are no more than {in_bytes(most)}"


def _remove(path: Path, root: Path) -> None:
    """Remove a file, and the folders that it leaves empty. Raises InputError: that is impossible."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path} can't be removed: {error.strerror}.") from error
    with suppress(OSError):  # a folder that isn't empty
        for folder in path.parents:
            if folder == root:
                break
            folder.rmdir()


def _remove_model(model: CachedModel) -> None:
    """Remove all revisions of a model, and of no other that a commit of the same name could belong to."""
    from huggingface_hub import scan_cache_dir

    alone = replace(scan_cache_dir(hub_folder()), repos=frozenset([model.repo]))
    alone.delete_revisions(*(each.commit_hash for each in model.repo.revisions)).execute()


def _size(entries: Sequence[CachedFile | CachedModel]) -> str:
    return in_bytes(sum(entry.size for entry in entries))
