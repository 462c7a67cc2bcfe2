"""Both caches on this machine: tensors, which are the atlas's own, and whole files, which the hub's client keeps.

Other programs use the hub client's cache, too: it is shown, and nothing is removed from it.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from generators.base.errors import InputError
from generators.base.progress import in_bytes
from generators.checkpoint.sources.tensor_cache import CachedFile, TensorCache, capacity, default_folder

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
COLUMNS = ("cache", "size", "folder")


def hub_folder() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def parsed_size(text: str) -> int:
    """Return the bytes of a size such as `20GB`. Raises InputError: it is none."""
    match = re.fullmatch(r"(\d{1,30}(?:\.\d+)?)\s*([KMGT]?)B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise InputError(f"{text!r} is no size; write it as 20GB or 500MB.")
    return int(float(match[1]) * UNITS[match[2].upper()])


def overview() -> list[tuple[str, str, str]]:
    cache, (count, size) = TensorCache(default_folder()), _of_hub_client()
    tensors, notes = cache.tensors(), cache.notes()
    ours = f"the atlas's (at most {in_bytes(capacity())}): {len(tensors)} tensors, {len(notes)} notes"
    return [
        (ours, _size([*tensors, *notes]), str(cache.folder)),
        (f"the hub client's: files of {count} models", in_bytes(size), str(hub_folder())),
    ]


def _of_hub_client() -> tuple[int, int]:
    """Return how many models the hub client's cache holds, and the bytes that they take."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repos = scan_cache_dir(hub_folder()).repos
    except CacheNotFound:
        return 0, 0
    except ValueError:
        raise InputError(f"{hub_folder()}, the cache of the hub's client, is no folder; set HF_HUB_CACHE.") from None
    sizes = [repo.size_on_disk for repo in repos if repo.repo_type == "model"]
    return len(sizes), sum(sizes)


def prune(most: int) -> str:
    """Remove tensors that were unused longest until at most so many bytes are left. Returns what was removed."""
    cache = TensorCache(default_folder())
    chosen = list(cache.surplus(most))
    try:
        for file in (*chosen, *(cache.notes() if most == 0 else ())):
            file.path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{cache.folder} can't be pruned: {error.strerror}.") from error
    return f"Removed from {cache.folder}: {len(chosen)} tensor{'s' * (len(chosen) != 1)}, {_size(chosen)}"


def _size(files: Sequence[CachedFile]) -> str:
    return in_bytes(sum(file.size for file in files))
