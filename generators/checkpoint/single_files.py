"""Files that aren't read: what each is, by its content or its name, and what to do instead."""

import fnmatch
import json
import re
import zipfile
from collections.abc import Callable, Collection
from pathlib import Path

from generators.base.errors import InputError
from generators.checkpoint.config import CONFIG, PICKLED, WEIGHTS

READ = f"The atlas reads folders with {CONFIG} and model.safetensors or pytorch_model.bin"
OTHERS = "nanoGPT, TransformerLens, GGUF and CTranslate2 (Whisper)"
ADAPTER = "adapter_config.json"
MERGE = "Merge the two with peft (merge_and_unload, then save_pretrained), and name the folder that this writes."
# Parts of tensor names that only adapters have: LoRA by peft, loralib and diffusers, VeRA, DoRA, AdaLoRA; LoHa and
# LoKr; IA3; OFT and BOFT; prompts and prefixes; what peft makes of the layers that it changes.
OF_ADAPTERS = re.compile(
    r"(^|[._])(lora|loha|lokr|hada|dora|vera|ia3|oft|boft|hra|randlora)([._]|$)|lora_(A|B|E|down|up|embedding)|"
    r"(^|\.)(prompt_embeddings|prompt_encoder|prefix_encoder|word_embeddings_prompt|base_layer|modules_to_save|"
    r"original_module|adapter_(down|up)|adapters)(\.|$)"
)
BY_TRANSFORMERS_4 = (
    "Name the original, or convert it with transformers 4: from_pretrained(FOLDER, {}=True), then save_pretrained."
)
META = (
    "weights in Meta's own format. Convert them with convert_llama_weights_to_hf.py of the transformers repository, "
    "or name the model on the hub. The ckpt.pt of llama2.c: `export.py NEW_FOLDER --version -1 --checkpoint ckpt.pt`."
)
LITGPT = (
    "a checkpoint of LitGPT. Convert it with `litgpt convert_from_litgpt CHECKPOINT_FOLDER NEW_FOLDER`, and put the "
    "original's config.json beside the model.pth that it writes."
)
DEEPSPEED = (
    "a checkpoint of DeepSpeed. Convert it in the folder that holds zero_to_fp32.py, `python zero_to_fp32.py . OUT`, "
    "put the model's config.json into OUT, and name OUT."
)
MEGATRON = "a checkpoint of Megatron-LM. Convert it with Megatron Bridge: AutoBridge's export_ckpt."
ON_HUB = "Name the converted copy on the hub (its name ends in -hf)."
ENCODER = "a HookedEncoder of TransformerLens; the atlas reads its HookedTransformer. Name the original BERT."
COPY = "Name a PyTorch or safetensors copy of the same model"
TENSORFLOW = (
    f"a checkpoint of TensorFlow. {COPY}, or convert it with transformers 4: "
    "CLASS.from_pretrained('FILE.ckpt.index', from_tf=True, config=...), then save_pretrained."
)
ORBAX = (
    "a checkpoint of Orbax (JAX). Read it with the software that wrote it, save its weights as model.safetensors "
    f"with the names of transformers, and put {CONFIG} beside it."
)
# Names of files that no reader here takes; the first match says what a folder holds.
FOREIGN = {
    "adapter_model.*": f"weights of an adapter alone. {MERGE}",
    "consolidated.*.pth": META,
    "lit_model.pth": LITGPT,
    **dict.fromkeys(("*zero_to_fp32.py", "*_model_states.pt", "*_optim_states.pt"), DEEPSPEED),
    **dict.fromkeys(("latest_checkpointed_iteration.txt", "mp_rank_*", "model_optim_rng.pt"), MEGATRON),
    **dict.fromkeys(("_CHECKPOINT_METADATA", "manifest.ocdbt"), ORBAX),
    "*.distcp": (
        "a distributed checkpoint of PyTorch. Convert it: `python -m torch.distributed.checkpoint.format_utils "
        f"dcp_to_torch FOLDER pytorch_model.bin`, and put {CONFIG} beside it."
    ),
    **dict.fromkeys(("*.ckpt.index", "*.ckpt.data-*", "*.ckpt.meta"), TENSORFLOW),
    "*.onnx": "an ONNX graph, made to be run and not read. Name the model that it was exported from.",
    "*.keras": f"a model of Keras, which transformers can't open. {COPY}.",
    "*.h5": f"weights of Keras or TensorFlow (HDF5). {BY_TRANSFORMERS_4.format('from_tf')}",
    "*.npz": (
        "an archive of NumPy arrays (MLX can write such files). Save them as model.safetensors "
        f"(safetensors.numpy.save_file) beside {CONFIG}, and name the folder."
    ),
    "*.msgpack": f"weights of Flax. {BY_TRANSFORMERS_4.format('from_flax')}",
    "*.ggml": "a file of GGML, the format before GGUF. Name the original that it was converted from.",
}
# Endings of tensor names that other software uses and no table of the atlas.
TENSORS = {
    ".attention.wq.weight": META,
    ".attn.qkv.weight": LITGPT,
    ".norm_1.weight": LITGPT,
    ".self_attention.linear_qkv.weight": MEGATRON,
    ".att.key.weight": f"weights of RWKV in its author's own format. {ON_HUB}",
    ".mixer.in_proj.weight": f"a model of mamba_ssm. {ON_HUB}",
    "embed.embed.W_E": ENCODER,
}
SHARD = re.compile(r"(?P<of>.+)-(?P<at>\d{5})-of-(?P<count>\d{5})(?P<ending>\.\w+)")
BEGIN = 64  # bytes that show what a file is
CTRANSLATE2 = re.compile(rb"[\x01-\x10]\0\0\0[\x05-\x40]\0\w+Spec\0")  # a version, then the kind of model
OF_PYTORCH = (".pt", ".pth", ".bin", ".ckpt")


def what_to_name(path: Path, typed: str) -> str | None:
    if begins(path) == "gguf":
        return None
    of_folder = path.suffix == ".json" or path.name in (WEIGHTS, PICKLED) or SHARD.fullmatch(path.name)
    if of_folder and (path.parent / CONFIG).is_file():
        return f"{typed!r} is a file: name its folder, {_as_folder(Path(typed).parent)!r}."
    if kind := foreign(path.name):
        return f"{typed!r} is {kind}"
    if is_of_weights(path):
        return None
    return f"{typed!r} is a file of a format that the atlas doesn't know. {READ}, and files of {OTHERS}."


def what_is_there(names: Collection[str], content: Callable[[str], bytes | None], place: str) -> str:
    """Return what a folder holds instead of readable weights, and what to do; "" if unknown."""
    if ADAPTER in names:
        kind, base = _adapter(content(ADAPTER))
        return f"{place} is {kind} alone; its base is {base}. {MERGE}"
    for pattern, kind in FOREIGN.items():
        found = next((name for name in sorted(names) if fnmatch.fnmatch(name.rpartition("/")[2], pattern)), None)
        if found is not None:
            return f"{place} holds {found}, {kind}"
    return ""


def adapter_beside(names: Collection[str], content: Callable[[str], bytes | None], place: str) -> str:
    """Return that an adapter lies beside weights, of which transformers makes another model; "" without one."""
    if ADAPTER not in names:
        return ""
    kind, _ = _adapter(content(ADAPTER))
    return (
        f"{place} holds {kind} ({ADAPTER}) beside the weights of its base: transformers opens both as one model. "
        f"{MERGE} To measure the base alone, move {ADAPTER} elsewhere."
    )


def adapter_within(names: Collection[str], place: str) -> str:
    """Return that tensors of an adapter lie among the weights, which they would change; "" without any."""
    found = next((name for name in sorted(names) if OF_ADAPTERS.search(name)), None)
    if found is None:
        return ""
    kind = "matrices of LoRA" if "lora" in found.lower() else f"parts of an adapter, such as {found},"
    return f"{place} holds {kind} beside its weights. {MERGE}"


def what_tensors_say(names: Collection[str]) -> str:
    """Return which other software gave tensors such names, and what to do; "" if that isn't known."""
    kind = next((kind for end, kind in TENSORS.items() if any(name.endswith(end) for name in names)), None)
    if kind is None:
        return ""
    return f"These are {kind}" if kind.startswith("weights") else f"This is {kind}"


def foreign(name: str) -> str:
    """Return which other software writes files of such a name, and what to do; "" if that isn't known."""
    return next((kind for pattern, kind in FOREIGN.items() if fnmatch.fnmatch(name, pattern)), "")


def _adapter(config: bytes | None) -> tuple[str, str]:
    try:
        said = json.loads(config or b"{}")
        base, kind = said.get("base_model_name_or_path"), said.get("peft_type")
    except (ValueError, AttributeError, RecursionError):
        base = kind = None
    named = "a LoRA adapter" if kind in ("LORA", None) else f"an adapter ({str(kind)[:40]})"
    return named, repr(base[:200]) if isinstance(base, str) and base else "not named in its config"


def _as_folder(folder: Path) -> str:
    """Return a folder as text that can't be mistaken for a model's name."""
    return str(folder) if folder.is_absolute() or str(folder) in (".", "..") else f"./{folder}"


# By their content


def begins(path: Path) -> str:
    """Return the format that a file's content shows: one of the words below, or "" for none."""
    try:
        with path.open("rb") as file:
            begin, size = file.read(BEGIN), path.stat().st_size
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}.") from error
    if begin[8:9] == b"{" and int.from_bytes(begin[:8], "little") <= size - 8:
        return "safetensors"
    if begin.startswith(b"GGUF"):
        return "gguf"
    if CTRANSLATE2.match(begin):
        return "ctranslate2"
    if begin.startswith(b"PK"):
        return "pytorch" if _holds_a_pickle(path) else ""
    return "pytorch" if begin[:1] == b"\x80" else ""


def is_of_weights(path: Path) -> bool:
    """Return whether a file can hold readable weights, by its content, and for PyTorch also by its suffix."""
    kind = begins(path)
    return kind in ("safetensors", "gguf", "ctranslate2") or (kind == "pytorch" and path.suffix.lower() in OF_PYTORCH)


def _holds_a_pickle(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("data.pkl") for name in archive.namelist())
    except Exception:  # whatever a damaged directory makes of zipfile
        return True
