"""The text that a model is run on: whether there is a tokenizer, and whether the text in its tokens is still a text.

Without any file, transformers makes a tokenizer with an empty vocabulary, which turns every text into unknown tokens.
"""

from importlib import metadata
from pathlib import Path

import numpy as np

from generators.base.errors import raise_unless_panic
from generators.checkpoint.sources import Files
from generators.runner import CannotRunError
from generators.runner.texts import (
    HELD_OUT,
    LANGUAGE_REFERENCE_SHA256,
    REACTIONS_SHA256,
    VOCABULARY,
    TokenizedText,
    encode,
    reads_reactions,
    shipped_text,
)
from generators.tokens.own_tokenizer import SENTENCEPIECE
from generators.tokens.tokenizer_files import check_ids

TOKENIZER = "tokenizer.json"  # if present, no other vocabulary file is read
# Each of these makes a tokenizer: by these names transformers looks for the files of its fast ones.
WHOLE = (
    (TOKENIZER,),
    ("vocab.json", "merges.txt"),
    ("vocab.txt",),
    ("tekken.json",),
    *((name,) for name in SENTENCEPIECE),
)
OLDER = (*(name for names in WHOLE[1:] for name in names), "added_tokens.json")

NO_TOKENIZER = (
    "The model can't be run: it has no tokenizer (no tokenizer.json, vocab.txt, vocab.json with merges.txt, "
    "or SentencePiece model)."
)
NO_TOKENIZER_IN_GGUF = "The model can't be run: its GGUF file has no tokenizer."
TOKENS = "tokenizer.ggml.tokens"
RARE = " \U00010600"  # a Linear A letter, in no vocabulary
MOST_UNKNOWN = 0.5  # largest share of unknown tokens in a text
FEWEST_TOKENS = 50  # distinct tokens


def tokenizer_files(files: Files) -> tuple[str, ...]:
    if files.has(TOKENIZER):
        return (TOKENIZER,)
    there = tuple(name for name in OLDER if files.has(name))
    return there if any(set(names) <= set(there) for names in WHOLE) else ()


def why_no_text(files: Files) -> str | None:
    if files.is_gguf:
        return None if TOKENS in files.settings() else NO_TOKENIZER_IN_GGUF
    lacking = [name for name in libraries(files) if not any(metadata.distributions(name=name))]
    if lacking:
        return f"Its tokenizer needs packages that aren't installed: pip install {' '.join(lacking)}"
    return None if tokenizer_files(files) else NO_TOKENIZER


def shipped_digest(files: Files) -> str:
    alone = not files.is_gguf and not files.has(TOKENIZER)
    of_reactions = reads_reactions(files.content(VOCABULARY) if alone else None)
    return REACTIONS_SHA256 if of_reactions else LANGUAGE_REFERENCE_SHA256


def libraries(files: Files) -> tuple[str, ...]:
    """Return the packages that read this tokenizer, beside those that every run needs."""
    return ("sentencepiece", "protobuf") if set(SENTENCEPIECE) & set(tokenizer_files(files)) else ()


def checked_text(folder: Path, vocab_size: int) -> TokenizedText | None:
    """Return the shipped text in the tokens of the model in `folder`: a text, and not mostly unknown tokens.

    None if the checkpoint carries a text, which is in its own tokens already.

    Raises CannotRunError: there are too many unknown tokens, or too few different ones, or one that the model of
    `vocab_size` tokens doesn't have; what the checkpoint carries is no array.
    """
    if (folder / HELD_OUT).is_file():
        _check_array(folder / HELD_OUT)
        return None
    try:
        if (folder / TOKENIZER).is_file():
            check_ids(folder / TOKENIZER, vocab_size)
        text = shipped_text(folder)
        if text.sha256 == REACTIONS_SHA256:  # a language of few signs, cut without a tokenizer
            return text
        rare = encode(folder, RARE)
    except CannotRunError:
        raise
    except BaseException as error:  # the tokenizers library raises nothing more specific, and panics
        raise_unless_panic(error)
        raise CannotRunError(
            f"The model can't be run: its tokenizer fails ({' '.join(str(error).split())})."
        ) from error
    if max((*text.before, *text.after), default=0) >= vocab_size:
        raise CannotRunError(f"The text {text.name} has token ids beyond the vocabulary of {vocab_size}.")
    # The letter becomes the unknown token, or bytes, the last of which hardly occurs in English.
    share = float((text.ids == rare[-1]).mean()) if rare and len(text.ids) else 0.0
    if share > MOST_UNKNOWN:
        raise CannotRunError(
            f"The model can't be run: {share:.0%} of the tokens of the text are unknown to its tokenizer."
        )
    different = len(set(text.ids.tolist()))
    if different < FEWEST_TOKENS:
        raise CannotRunError(
            f"The model can't be run: its tokenizer makes the text into only {different} different tokens."
        )
    return text


def _check_array(path: Path) -> None:
    """Raise an error for files that NumPy can't map, such as pickled objects or several arrays."""
    try:
        np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # NumPy raises all kinds of errors for damaged headers
        line = " ".join(str(error).split())
        raise CannotRunError(f"The model can't be run: {path.name} can't be read ({line}).") from error
