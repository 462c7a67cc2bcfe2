import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Int
from numpy import ndarray as Array

from generators.base.errors import InputError
from generators.base.frequencies import TokenFrequency
from generators.base.progress import printable
from generators.checkpoint.sources import Files
from generators.tokens.vocabulary import ModelVocabulary

COUNTS = "token_counts.npy"
# A vocabulary is taken for English by itself if it has as many whole words, and if this share of them is English.
FEWEST_WORDS = 1000
MOSTLY = 0.5


def token_frequencies(
    files: Files,
    model_frequency: str,
    vocabulary: ModelVocabulary | None,
    size: int,
    extra_counts: Path | None = None,
) -> tuple[TokenFrequency, ...]:
    """Return what can be known of how often a model's tokens occur, best source first.

    Counts shipped with the model; counts over a corpus that the user names; word frequencies; always the token index.

    Word frequencies are looked up where `model_frequency`, the best source that the registry gives the model, is
    "wordfreq", and where nothing is known and at least half of the vocabulary's whole words are English.
    `extra_counts` is a file as `atlas count-tokens` writes it.
    """
    found = []
    shipped = files.fetch(COUNTS)
    if shipped is not None:
        found.append(_counted("counts", "token counts that come with the model", shipped, size))
    if extra_counts is not None:
        found.append(
            _counted("corpus", f"token counts of a corpus ({printable(extra_counts.name)})", extra_counts, size)
        )
    unknown = model_frequency == "index" and not found
    if vocabulary is not None and (model_frequency == "wordfreq" or (unknown and _is_english(vocabulary))):
        found.append(_of_words(vocabulary))
    return (*found, _index(size))


def read_counts(path: Path, size: int) -> Int[Array, " V"]:
    """Read int64 counts of `size` tokens. Raises InputError: the file holds none, or nothing was counted."""
    if path.exists() and not path.is_file():
        raise InputError(f"The counts {path} can't be read: that is a folder, a pipe or a device, not a file.")
    try:
        counts = np.lib.format.open_memmap(path, mode="r")  # reads no pickles and no more than the file has
    except Exception as error:  # NumPy raises all kinds of errors for damaged headers
        raise InputError(f"The counts {path} can't be read: {' '.join(str(error).split())}.") from error
    if counts.dtype != np.int64 or counts.shape != (size,):
        shape = " x ".join(map(str, counts.shape)) or "a single number"
        raise InputError(
            f"The counts {path} must be {size} int64 numbers, one per token; they are {shape} of {counts.dtype}."
        )
    if counts.min(initial=0) < 0:
        raise InputError(f"The counts {path} have negative numbers.")
    if not counts.any():
        raise InputError(f"The counts {path} are all 0.")
    return np.array(counts)


def _counted(source: str, label: str, path: Path, size: int) -> TokenFrequency:
    counts = read_counts(path, size)
    made_from = (source, hashlib.sha256(counts.astype("<i8").tobytes()).hexdigest())
    return TokenFrequency(source, label, np.log1p(counts.astype(np.float64)), 1.0, False, made_from)


def _of_words(vocabulary: ModelVocabulary) -> TokenFrequency:
    """Return the frequency in English of tokens that begin a word and are all letters (in GPT-1: that end one).

    wordfreq ignores case: " The" gets the frequency of " the".
    """
    from importlib.metadata import version

    known = _english()
    frequencies = np.array([known.get(word, np.nan) for word in _words(vocabulary)], np.float64)
    release = version("wordfreq")
    label = f"frequencies of English words (wordfreq {release})"
    coverage = float(np.isfinite(frequencies).mean()) if len(frequencies) else 0.0
    made_from = ("wordfreq", release, vocabulary.digest)
    return TokenFrequency("wordfreq", label, np.log(frequencies), coverage, False, made_from)


@cache
def _english() -> Mapping[str, float]:
    from wordfreq import get_frequency_dict

    return get_frequency_dict("en")


def _is_english(vocabulary: ModelVocabulary) -> bool:
    words = [word for word in _words(vocabulary) if len(word) > 1]
    return len(words) >= FEWEST_WORDS and sum(word in _english() for word in words) >= MOSTLY * len(words)


def _words(vocabulary: ModelVocabulary) -> list[str]:
    """Return the word that each token is, empty where it is none."""
    return list(map(_word, vocabulary.raw_bytes, vocabulary.marks_space & ~vocabulary.special))


def _word(text: bytes, begins_word: bool) -> str:
    word = text.removeprefix(b" ").decode("utf-8", "replace") if begins_word else ""
    return word.casefold() if word.isalpha() else ""


def _index(size: int) -> TokenFrequency:
    label = "token index (a proxy: tokenizers tend to number frequent tokens first)"
    falling = np.arange(0, -size, -1, dtype=np.float64)
    return TokenFrequency("index", label, falling, 1.0, True, ("index", size))
