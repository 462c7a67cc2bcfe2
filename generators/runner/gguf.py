"""A GGUF file's config and tokenizer as transformers has them, written into a folder for a run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from generators.runner.errors import CannotRunError
from generators.runner.opening import CONFIG, line_of

ALONE = "alone.gguf"  # away from its folder, whose other files transformers might read


def write_config_and_tokenizer(file: Path, config: Mapping[str, Any], folder: Path) -> None:
    """Write config.json and the tokenizer that transformers makes from a GGUF file's own.

    Raises CannotRunError: transformers can't make it.
    """
    from transformers import AutoTokenizer

    (folder / CONFIG).write_text(json.dumps(dict(config)), "utf-8")
    (folder / ALONE).symlink_to(file.resolve())
    try:
        made = AutoTokenizer.from_pretrained(
            str(folder), gguf_file=ALONE, trust_remote_code=False, local_files_only=True
        )
        made.backend_tokenizer.save(str(folder / "tokenizer.json"))
    except Exception as error:  # transformers and tokenizers raise all kinds of errors
        raise CannotRunError(
            f"The model can't be run: transformers can't read its file's tokenizer ({line_of(error)})."
        ) from error
