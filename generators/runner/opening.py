"""A checkpoint's folder -> a model that is ready to be run. No code of a repository is ever run."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy import ndarray as Array
from safetensors import SafetensorError, safe_open

from generators.base.allocation import keep_freed_memory
from generators.base.architecture import Architecture
from generators.base.errors import first_line
from generators.base.sentences import first
from generators.runner.budget import BATCH_BYTES, FLOAT_BYTES
from generators.runner.errors import CannotRunError

if TYPE_CHECKING:
    from generators.runner.run import OpenedModel

CONFIG = "config.json"
WHISPER = "whisper--decoder"
# Memory relative to the parameters: while a model is made, they are also read from the file.
MEMORY_FACTOR = 1.5
GIB = 2**30
NAMED = 3  # absent tensors named in a sentence
# Parts that no hidden state depends on; files of language models lack them.
UNREAD = ("pooler.",)
ALONE = "alone.gguf"  # away from its folder, whose other files transformers might read


@dataclass(frozen=True)
class Tensors:
    """The tensors of a model in float32, by transformers' names, and how many numbers they hold."""

    count: int
    each: Callable[[], Iterable[tuple[str, Array]]]


def open_model(
    folder: Path,
    architecture: Architecture,
    *,
    device: str = "cpu",
    tensors: Tensors | None = None,
    **options: Any,
) -> "OpenedModel":
    """Open the model in `folder` (config.json, safetensors, tokenizer) in float32.

    Args:
        tensors: in place of files that transformers can open, as it names and stores them.
        options: those of `OpenedModel`.

    Raises CannotRunError: torch or transformers absent, partial weights, an architecture that transformers lacks, a
    model that does not fit into memory, a device that isn't there.
    """
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise CannotRunError(f"The model can't be run: {package} isn't installed.")
    config = _read_config(folder)
    _check_memory(parameters_of(folder) if tensors is None else tensors.count, device)
    from generators.runner.faster import make_faster
    from generators.runner.positions import add_slopes_once
    from generators.runner.run import OpenedModel
    from generators.runner.usual import in_usual_form

    model = _load(folder, config, architecture, tensors)
    add_slopes_once(model, architecture.n_layer)
    model = model.to(device).eval().requires_grad_(False)
    in_usual_form(model)
    make_faster(model)
    keep_freed_memory(BATCH_BYTES)
    return OpenedModel(model, folder, architecture, device=device, **options)


def _read_config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / CONFIG).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CannotRunError(f"The model can't be run: its {CONFIG} can't be read ({first_line(error)}).") from error
    if not isinstance(config, dict):
        raise CannotRunError(f"The model can't be run: its {CONFIG} holds no JSON object.")
    if "quantization_config" in config:
        raise CannotRunError("The model can't be run: its weights are quantised, and the atlas runs float32 only.")
    return config


# Memory


def _check_memory(parameters: int, device: str) -> None:
    needed = int(MEMORY_FACTOR * FLOAT_BYTES * parameters)
    available = _available(device)
    if needed > available:
        raise CannotRunError(
            f"The model does not fit into memory: it needs about {needed / GIB:.1f} GiB, and "
            f"{available / GIB:.1f} GiB are free."
        )


def parameters_of(folder: Path) -> int:
    """Return how many numbers the safetensors files of a folder hold. Raises CannotRunError: none, or damage."""
    files = sorted(folder.glob("model*.safetensors"))
    if not files:
        raise CannotRunError("The model can't be run: the checkpoint has no safetensors (pickles are never read).")
    count = 0
    for path in files:
        try:
            with safe_open(path, "numpy") as file:
                count += sum(prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise CannotRunError(
                f"The model can't be run: {path.name} can't be read ({first_line(error)})."
            ) from error
    return count


def _available(device: str) -> int:
    import torch

    if device == "cpu":
        import psutil

        return int(psutil.virtual_memory().available)
    if not device.startswith("cuda") or not torch.cuda.is_available():
        raise CannotRunError(f"The model can't be run on {device}: torch sees no such device here.")
    return int(torch.cuda.mem_get_info(device)[0])


# Loading


def _load(folder: Path, config: Mapping[str, Any], architecture: Architecture, tensors: Tensors | None) -> Any:
    """Return the model with its head: of causal models always, of encoders if the checkpoint has one."""
    import transformers

    from generators.runner.usual import hearing_silence

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()

    def load(kind: Any) -> tuple[Any, set[str]]:
        """Return a model and the names of the tensors that it needs and the files lack."""
        if tensors is not None:
            return _complete(config, partial(_from_tensors, tensors, kind, config))
        made = partial(kind.from_pretrained, str(folder), use_safetensors=True, local_files_only=True)
        return _complete(config, made)

    if architecture.family == WHISPER:
        model, absent = load(transformers.AutoModelForSpeechSeq2Seq)
        model = model if absent else hearing_silence(model)
    elif architecture.causal:
        model, absent = load(transformers.AutoModelForCausalLM)
    else:
        try:
            model, absent = load(transformers.AutoModelForMaskedLM)
        except CannotRunError:
            absent = {""}
        if absent:  # missing from the head or the model: opening it without a head shows which
            model, absent = load(transformers.AutoModel)
    if absent:
        raise CannotRunError(f"The model can't be run: the checkpoint lacks {first(sorted(absent), NAMED)}.")
    return model


def write_tokenizer(file: Path, folder: Path) -> None:
    """Write the tokenizer that transformers makes from a GGUF file's own into a folder that has its config.json."""
    from transformers import AutoTokenizer

    (folder / ALONE).symlink_to(file.resolve())
    try:
        made = AutoTokenizer.from_pretrained(
            str(folder), gguf_file=ALONE, trust_remote_code=False, local_files_only=True
        )
        made.backend_tokenizer.save(str(folder / "tokenizer.json"))
    except Exception as error:  # transformers and tokenizers raise all kinds of errors
        raise CannotRunError(
            f"The model can't be run: transformers can't read its file's tokenizer ({first_line(error)})."
        ) from error


def _from_tensors(tensors: Tensors, kind: Any, config: Mapping[str, Any], **options: Any) -> Any:
    import torch
    import transformers

    settings = transformers.AutoConfig.for_model(**config)
    state = {name: torch.from_numpy(tensor) for name, tensor in tensors.each()}
    return kind._model_mapping[type(settings)].from_pretrained(None, config=settings, state_dict=state, **options)


def _complete(config: Mapping[str, Any], load: Callable[..., Any]) -> tuple[Any, set[str]]:
    import torch
    import transformers

    try:
        model, info = load(
            dtype=torch.float32,
            attn_implementation="eager",  # the only implementation that returns attention weights
            trust_remote_code=False,
            ignore_mismatched_sizes=True,  # named below
            output_loading_info=True,
        )
    except Exception as error:  # transformers raises all kinds of errors
        raise CannotRunError(
            f"The model can't be run: transformers {transformers.__version__} does not open the architecture "
            f"{str(config.get('model_type'))!r} ({first_line(error)})."
        ) from error
    wrong = [entry if isinstance(entry, str) else entry[0] for entry in info["mismatched_keys"]]
    if wrong:
        raise CannotRunError(
            f"The model can't be run: {first(sorted(wrong), NAMED)} has not the shape that {CONFIG} asks for."
        )
    return model, {name for name in info["missing_keys"] if not any(part in name for part in UNREAD)}
