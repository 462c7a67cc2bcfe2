"""The model itself, for findings that run it: whether it can be run here, and what its results then depend on."""

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import finalize

from generators.base.errors import InputError
from generators.base.plain import content_digest
from generators.checkpoint.checkpoint import Checkpoint
from generators.checkpoint.sources import CONFIG, Files
from generators.checkpoint.sources.tensor_cache import TensorCache, default_folder
from generators.compute import run_text
from generators.runner import CannotRunError, open_model
from generators.runner.budget import DEFAULT_BUDGET_S, FLOAT_BYTES, MINUTE, assumed_speed, chosen_device
from generators.runner.opening import MEMORY_FACTOR, WHISPER, Tensors, write_tokenizer
from generators.runner.texts import TokenizedText, encode

if TYPE_CHECKING:
    from generators.runner.own_samples import TextChoice
    from generators.runner.run import OpenedModel

LIBRARIES = ("torch", "transformers", "tokenizers")
# Files read to run a checkpoint, besides the tensors; without tokenizer.json also older files.
READ = (CONFIG, run_text.TOKENIZER, "tokenizer_config.json", "special_tokens_map.json", "held_out_tokens.npy")
DEVICES = ("cpu", "cuda", "auto")
GIB = 1 << 30
NOT_INSTALLED = "Running a model needs PyTorch and transformers: pip install 'helix-atlas[run]'."
NOT_NOW = "couldn't be downloaded."
OUT_OF_TIME = "Measuring it would have taken longer than the time given to it (--budget)."
OTHER_SOFTWARE = "The model can't be run here: transformers doesn't open its file, which the atlas only reads."
FOR_EVER = "more than this machine has."
NO_TOKENS = "The model can't be run on text: it has no tokens."
SKIPPED = "It runs the model, which was left out (--skip-runs)."
ASKED = "<|startoftranscript|><|en|><|transcribe|><|notimestamps|>"
OWN_SAMPLES = "own-samples"  # name in the cache
SAMPLES_VERSION = 1  # raise when the text or the way samples are drawn changes
CUT_TO = "cut_to_operations"  # recorded for runs that read fewer windows for lack of time


@dataclass(frozen=True)
class RunSettings:
    """How long the findings that run one model may take together, in seconds, and on what; or that none is run.

    Time and device are in no key: what was measured with more time, or elsewhere, stays (`has_time_for_more`).
    """

    budget_s: float = DEFAULT_BUDGET_S
    device: str = "cpu"
    skip: bool = False
    own_samples: bool = False  # use these as the text; the only setting here that is in a key
    keep_outdated: bool = False  # keep and list results of older versions
    ends_on_time: bool = False  # leave out what wouldn't end within the budget here

    @property
    def operations(self) -> str:
        return f"{self.budget_s * assumed_speed(self.device):.6e}"


AS_USUAL = RunSettings()


def chosen(minutes: float, device: str, *, skip: bool) -> RunSettings:
    if not 0 < minutes < float("inf"):
        raise InputError(f"--budget is a number of minutes above 0, not {minutes:g}.")
    if device not in DEVICES:
        raise InputError(f"There is no device {device!r}; there are {', '.join(DEVICES)}.")
    try:
        return RunSettings(minutes * MINUTE, "cpu" if skip else chosen_device(device), skip)
    except CannotRunError as error:
        raise InputError(f"--device {device} can't be used: {error}") from error


def has_time_for_more(settings: RunSettings, record: Mapping[str, str] | None) -> bool:
    """Return whether a stored run read fewer windows than these settings have time for.

    So a longer budget measures again what a shorter one had cut, and a shorter one replaces nothing.
    """
    then = (record or {}).get(CUT_TO)
    return then is not None and float(settings.operations) > float(then)


def why_not(files: Files, checkpoint: Checkpoint, device: str = "cpu") -> str | None:
    """Return why a model can't be run here, as far as that can be said without opening it; else None.

    Of a model on the hub that includes whether it fits into memory and on the disk, so that no file comes in vain.
    """
    if any(find_spec(name) is None for name in LIBRARIES):
        return NOT_INSTALLED
    hears = checkpoint.architecture.family == WHISPER
    if files.stack is not None and not hears:
        return "The model can't be run here: it is one of two models in one checkpoint."
    if files.dialect.software and not files.is_gguf and not hears:
        return OTHER_SOFTWARE
    if checkpoint.architecture.vocab_size is None:
        return NO_TOKENS
    n_layer = checkpoint.architecture.n_layer
    lacking = [role for role, slot in checkpoint.family.roles(n_layer) if _is_lacking(role, slot, checkpoint)]
    if lacking:
        more = f" and {len(lacking) - 1} more tensors" if len(lacking) > 1 else ""
        return f"The model can't be run: the checkpoint lacks {checkpoint.lacking(lacking[0])}{more}."
    if (no_text := run_text.why_no_text(files)) is not None:
        return no_text
    too_large = _too_large(files) if files.folder is None and device == "cpu" else None
    if too_large is None and (no_room := files.no_room()) is not None:
        return f"The model can't be run here: {no_room}"
    return too_large


def _too_large(files: Files) -> str | None:
    import psutil

    numbers = sum(prod(files.header(name).shape) for name in files.names())
    needed, memory = MEMORY_FACTOR * FLOAT_BYTES * numbers, psutil.virtual_memory()
    if needed <= memory.available:
        return None
    beyond = "more than is free." if needed <= memory.total else FOR_EVER
    return f"The model can't be run here: it needs about {needed / GIB:.1f} GiB of memory, {beyond}"


def may_pass(reason: str | None) -> bool:
    """Return whether the reason may be temporary: too little memory, disk or time, or the hub is unreachable."""
    if reason is None or reason.endswith(FOR_EVER):
        return False
    return "memory" in reason or "disk" in reason or reason.endswith((NOT_NOW, OUT_OF_TIME))


def depends_on(files: Files, checkpoint: Checkpoint) -> dict[str, Any]:
    if files.is_gguf:
        tokens = {key: value for key, value in files.settings().items() if key.startswith("tokenizer.")}
        digests = {"GGUF": content_digest({"config": files.config(), **tokens})}
    else:
        found = {name: files.content(name) for name in _read(files)}
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in found.items() if data is not None}
    return {
        "files": digests,
        "weights": {role: checkpoint.content(role) for role in checkpoint},
        "text": run_text.shipped_digest(files),
    }


def opened_model(files: Files, checkpoint: Checkpoint, device: str) -> "OpenedModel":
    as_it_is = files.opened_by_transformers and "model_type" in files.config()
    if files.folder is None or as_it_is:
        return _opened_in(_folder_of(files), files, checkpoint, device)
    place = tempfile.TemporaryDirectory()
    folder = Path(place.name)
    (folder / CONFIG).write_text(
        json.dumps({"model_type": checkpoint.family.model_types[0], **files.config()}), "utf-8"
    )
    if files.is_gguf:
        write_tokenizer(files.first_file, folder)
    else:  # weights come from `tensors`
        for name in _read(files):
            if name != CONFIG and (path := files.fetch(name)) is not None:
                (folder / name).symlink_to(path.resolve())
    numbers = sum(prod(files.header(name).shape) for name in files.names())
    opened = _opened_in(folder, files, checkpoint, device, tensors=Tensors(numbers, files.as_transformers))
    finalize(opened, place.cleanup)
    return opened


def _folder_of(files: Files) -> Path:
    config = files.fetch(CONFIG)
    if config is None:
        raise CannotRunError(f"The model can't be run: it has no {CONFIG}.")
    fetched = {name for name in (*_read(files), *files.weight_files()) if files.fetch(name) is not None}
    lost = [name for name in run_text.tokenizer_files(files) if name not in fetched]
    if lost:
        raise CannotRunError(f"The model can't be run: {lost[0]}, which its tokenizer needs, {NOT_NOW}")
    return Path(config).parent


def _opened_in(
    folder: Path, files: Files, checkpoint: Checkpoint, device: str, tensors: Tensors | None = None
) -> "OpenedModel":
    text = run_text.checked_text(folder, checkpoint.architecture.vocab_size or 0)
    if text is not None and checkpoint.architecture.family == WHISPER:
        text = transcribed(folder, text)
    slot = checkpoint.layout("position_embedding") if "position_embedding" in checkpoint else None
    name, first_row = None, 0
    if slot is not None and "formula" not in slot:
        name, first_row = checkpoint.record("position_embedding").name, slot.get("skip", 0)
        name = next(iter(files.dialect.in_transformers(name)), name)
    return open_model(
        folder,
        checkpoint.architecture,
        position_tensor=name,
        first_row=first_row,
        device=device,
        text=text,
        tensors=tensors,
        remember=partial(_remembered, files, checkpoint),
    )


def transcribed(folder: Path, text: TokenizedText) -> TokenizedText:
    """Return a text as Whisper writes it: after what asks for English, where it knows several languages."""
    asked = encode(folder, ASKED)
    return replace(text, name=f"{text.name}, hearing silence", before=asked if len(asked) == 4 else text.before)


def _remembered(files: Files, checkpoint: Checkpoint, make: "Callable[[], TextChoice]") -> "TextChoice":
    made_by = {name: metadata.version(name) for name in (*LIBRARIES, *run_text.libraries(files))}
    made_from = {**depends_on(files, checkpoint), "libraries": made_by, "version": SAMPLES_VERSION}
    cache, place = TensorCache(default_folder()), (OWN_SAMPLES, content_digest(made_from))
    stored = cache.note(*place)
    if stored is not None and stored.get("digest") == content_digest(stored.get("known")):
        return cast("TextChoice", stored["known"])
    known = make()
    cache.store_note({"known": known, "digest": content_digest(known)}, *place)
    return known


def _read(files: Files) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*READ, *run_text.tokenizer_files(files))))


def _is_lacking(role: str, slot: Any, checkpoint: Checkpoint) -> bool:
    if role in checkpoint or slot.formula or slot.when:
        return False
    return not (role == "unembedding" and checkpoint.architecture.tied)
