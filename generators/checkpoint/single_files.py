"""A file where a folder was asked for: what it looks like, and what to name instead."""

from pathlib import Path

from generators.checkpoint.config import CONFIG

READ = f"The atlas reads folders with {CONFIG} and model.safetensors or pytorch_model.bin"
PYTORCH = "a PyTorch file"
# How files of a format begin; `.bin` and `.pt` say little, so the content comes before the name.
BEGINNINGS = {
    b"GGUF": "a GGUF file",
    b"\x89HDF": "a Keras or TensorFlow file (HDF5)",
    b"PK": PYTORCH,
    b"\x80": PYTORCH,
}
ENDINGS = {
    ".gguf": "a GGUF file",
    ".ggml": "a GGML file",
    ".pt": PYTORCH,
    ".pth": PYTORCH,
    ".ckpt": PYTORCH,
    ".bin": PYTORCH,
    ".onnx": "an ONNX file",
    ".h5": "a Keras or TensorFlow file (HDF5)",
    ".msgpack": "a Flax file",
}
OF_FOLDERS = (".safetensors", ".json")  # and pytorch_model.bin: what a folder that can be read is made of


def what_to_name(path: Path, typed: str) -> str:
    """Return what a file is and what to name instead of it, in one sentence or two."""
    if path.suffix in OF_FOLDERS or path.name.startswith("pytorch_model"):
        folder = Path(typed).parent
        if (path.parent / CONFIG).is_file():
            return f"{typed!r} is a file: name its folder, {_as_folder(folder)!r}."
        return f"{typed!r} is a file, and there is no {CONFIG} beside it. {READ}: name such a folder."
    return (
        f"{typed!r} is {_kind(path)}, which the atlas can't read. {READ}: save_pretrained of transformers writes one."
    )


def _kind(path: Path) -> str:
    try:
        with path.open("rb") as file:
            begin = file.read(max(map(len, BEGINNINGS)))
    except OSError:
        begin = b""
    by_content = (kind for start, kind in BEGINNINGS.items() if begin.startswith(start))
    return next(by_content, ENDINGS.get(path.suffix.lower(), "a file of a format that it doesn't know"))


def _as_folder(folder: Path) -> str:
    """Return a folder so that it can't be taken for the name of a model."""
    return str(folder) if folder.is_absolute() or str(folder) in (".", "..") else f"./{folder}"
