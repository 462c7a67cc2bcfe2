"""The tokenizer that the model's own software makes of its files, to read what the atlas can't and to compare."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from generators.base.errors import raise_unless_panic
from generators.checkpoint.sources import CONFIG, Files

# What transformers calls SentencePiece's model.
SENTENCEPIECE = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "sentencepiece.model", "spm.model")
FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", CONFIG),
    *("vocab.json", "merges.txt", "vocab.txt", "bpe.codes", "dict.txt", "source.spm", "target.spm", *SENTENCEPIECE),
)


@contextmanager
def _laid_out(files: Files) -> Iterator[Path]:
    """Lay out the files of a tokenizer in a folder of their own, so that nothing else is fetched or read."""
    with TemporaryDirectory() as name:
        for file in FILES:
            if (path := files.fetch(file)) is not None:
                (Path(name) / file).symlink_to(path.resolve())
        yield Path(name)


def own_tokenizer(files: Files) -> Any:
    """Return transformers' tokenizer for a model's files; None where it makes none. No code of theirs is run."""
    try:
        import transformers
    except ImportError:
        return None
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    try:
        with _laid_out(files) as folder:
            return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except BaseException as error:  # whatever the libraries raise, panics of Rust included
        raise_unless_panic(error)
        return None
    finally:
        transformers.logging.set_verbosity(before)


def as_json(tokenizer: Any) -> str | None:
    """Return a tokenizer as tokenizer.json would hold it; None where it is of Python alone."""
    with suppress(AttributeError, TypeError, ValueError):
        text = tokenizer.backend_tokenizer.to_str()
        return text if isinstance(json.loads(text), dict) else None
    return None


def strings(tokenizer: Any, ids: list[int]) -> list[str | None]:
    known = tokenizer.get_vocab()
    names = {i: string for string, i in known.items()}
    return [names.get(i) for i in ids]
