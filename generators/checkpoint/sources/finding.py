"""Which files of a folder hold weights, where none has the name that transformers gives them."""

import re
from collections.abc import Sequence
from pathlib import Path

from generators.base.errors import InputError
from generators.checkpoint.single_files import OF_PYTORCH, SHARD, begins, foreign, is_of_weights
from generators.checkpoint.sources.ctranslate2_files import CTranslate2
from generators.checkpoint.sources.formats import Format
from generators.checkpoint.sources.gguf_files import Gguf
from generators.checkpoint.sources.pickled import Pickled
from generators.checkpoint.sources.safetensors_files import Safetensors

SAFETENSORS, PICKLED_FORMAT, GGUF, CTRANSLATE2 = Safetensors(), Pickled(), Gguf(), CTranslate2()
FORMATS: dict[str, Format] = {
    "safetensors": SAFETENSORS,
    "pytorch": PICKLED_FORMAT,
    "gguf": GGUF,
    "ctranslate2": CTRANSLATE2,
}
# What trainers put beside weights, in PyTorch's format, and llama.cpp beside those of a model that sees.
BESIDE = re.compile(r"(optimizer|optim_|scheduler|scaler|rng_state|training_args|trainer_state|global_step|mmproj)")


def format_of(path: Path) -> Format:
    """Return the format of a file, by its content; by its ending where the content doesn't say it."""
    otherwise = PICKLED_FORMAT if path.suffix.lower() in OF_PYTORCH else SAFETENSORS
    return FORMATS.get(begins(path), otherwise)


def other_weights(folder: Path) -> list[str]:
    """Return the files that hold the weights, whatever they are called: one, or all shards of one; empty if none do.

    Raises InputError: there are several, or some shards are missing.
    """
    found = [path.name for path in sorted(folder.iterdir()) if _is_candidate(path) and is_of_weights(path)]
    shards = [match for name in found if (match := SHARD.fullmatch(name))]
    if shards and len(shards) == len(found) and len({_of_one(shard) for shard in shards}) == 1:
        _check_all(shards, folder)
        return found
    if len(found) > 1:
        named = ", ".join(found[:4]) + (" and more" if len(found) > 4 else "")
        raise InputError(f"The folder {folder.name} holds several files of weights ({named}): name one of them.")
    return found


def with_its_shards(folder: Path | None, name: str) -> list[str]:
    """Return a file of weights that was named; of one shard of a GGUF file, all of them."""
    shard = SHARD.fullmatch(name)
    if shard is None or folder is None or format_of(folder / name) is not GGUF:
        return [name]
    others = (SHARD.fullmatch(path.name) for path in sorted(folder.iterdir()) if path.is_file())
    shards = [other for other in others if other is not None and _of_one(other) == _of_one(shard)]
    _check_all(shards, folder)
    return [shard[0] for shard in shards]


def _of_one(shard: re.Match[str]) -> tuple[str, ...]:
    return shard["of"], shard["count"], shard["ending"]


def _check_all(shards: Sequence[re.Match[str]], folder: Path) -> None:
    count = int(shards[0]["count"])
    absent = sorted(set(range(1, count + 1)) - {int(shard["at"]) for shard in shards})
    if absent:
        raise InputError(
            f"The folder {folder.name} holds {len(shards)} of {count} shards: number {absent[0]} "
            f"{f'and {len(absent) - 1} more are' if len(absent) > 1 else 'is'} missing."
        )


def _is_candidate(path: Path) -> bool:
    hidden_or_beside = path.name.startswith(".") or BESIDE.match(path.name)
    return not hidden_or_beside and not foreign(path.name) and path.is_file()
