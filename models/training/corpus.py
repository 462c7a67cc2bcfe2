"""The text that the atlas's own models are made of: the source of Python's standard library, and its tokens.

The tokenizer is trained on more than the model is, which is how GPT-2 came by its never-trained tokens. Here both
sides are known: `LibraryFiles.trained` is what a model reads, `token_counts` says how often it meets every token.
"""

import hashlib
import lzma
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END_OF_TEXT = "<|endoftext|>"
N_VOCAB = 4096

# Folders of the library that the tokenizer sees and the model does not.
TOKENIZER_ONLY = ("test", "encodings", "idlelib", "pydoc_data")
# What an installation adds to the library: other people's packages, and files that name the machine.
NOT_LIBRARY = ("site-packages", "dist-packages", "__pycache__")
NAMES_THE_MACHINE = ("config-", "_sysconfigdata")
# One file in so many is held out, to measure the model on.
HELD_OUT_ONE_IN = 25


@dataclass(frozen=True)
class LibraryFiles:
    """The library's files by path, in three parts that share no file."""

    trained: dict[str, str]
    held_out: dict[str, str]
    tokenizer_only: dict[str, str]

    @property
    def everything(self) -> dict[str, str]:
        """All files, in the order of their paths: what the tokenizer is trained on."""
        return dict(sorted((self.trained | self.held_out | self.tokenizer_only).items()))

    @property
    def sha256(self) -> str:
        """One digest of every path and text, the same wherever the library is the same."""
        digest = hashlib.sha256()
        for path, text in self.everything.items():
            digest.update(f"{path}\0{len(text)}\0{text}".encode())
        return digest.hexdigest()


def read_library(folder: Path | None = None) -> LibraryFiles:
    """The `.py` files under `folder` (by default, of the Python that runs this) that are valid UTF-8.

    Raises:
        FileNotFoundError: there are none.
    """
    folder = folder or Path(sysconfig.get_path("stdlib"))
    corpus = LibraryFiles({}, {}, {})
    for path, text in _files(folder):
        if path.split("/")[0] in TOKENIZER_ONLY:
            corpus.tokenizer_only[path] = text
        elif int(hashlib.sha256(path.encode()).hexdigest(), 16) % HELD_OUT_ONE_IN == 0:
            corpus.held_out[path] = text
        else:
            corpus.trained[path] = text
    if not corpus.trained or not corpus.tokenizer_only:
        raise FileNotFoundError(
            f"{folder} is not a whole standard library: it needs modules and the folder test/ "
            "(Debian keeps that in the package libpython3-testsuite)."
        )
    return corpus


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).as_posix()):
        parts = path.relative_to(folder).parts
        if set(parts) & set(NOT_LIBRARY) or any(part.startswith(NAMES_THE_MACHINE) for part in parts):
            continue
        try:
            yield "/".join(parts), path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue  # a few tests are in other encodings on purpose


def train_tokenizer(texts: dict[str, str]) -> Tokenizer:
    """GPT-2's kind of tokenizer, byte-level BPE, with `N_VOCAB` tokens; `END_OF_TEXT` is the first."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=N_VOCAB,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts.values(), trainer)
    return tokenizer


def encode(texts: dict[str, str], tokenizer: Tokenizer) -> np.ndarray:
    """Every file and an `END_OF_TEXT` after each, as one run of token ids, int64 (n_tokens,)."""
    end = tokenizer.token_to_id(END_OF_TEXT)
    # A file that spells the marker out (this library has none) must not be able to end itself.
    tokenizer.encode_special_tokens = True
    encoded = tokenizer.encode_batch(list(texts.values()), add_special_tokens=False)
    return np.concatenate([np.array([*one.ids, end], np.int64) for one in encoded])


def token_counts(ids: np.ndarray) -> np.ndarray:
    """How often every token occurs in `ids`: int64 (N_VOCAB,)."""
    return np.bincount(ids, minlength=N_VOCAB).astype(np.int64)


@dataclass(frozen=True)
class Encoded:
    """A corpus as its own tokenizer gives it: ids of what is trained on and held out, and the counts of the first."""

    tokenizer: Tokenizer
    trained: np.ndarray
    held_out: np.ndarray
    counts: np.ndarray


def encoded(corpus: LibraryFiles) -> Encoded:
    """Train a tokenizer on all of `corpus` and return what it makes of both parts that a model meets."""
    tokenizer = train_tokenizer(corpus.everything)
    trained = encode(corpus.trained, tokenizer)
    return Encoded(tokenizer, trained, encode(corpus.held_out, tokenizer), token_counts(trained))


def xz_bits_per_byte(text: str, known: str = "") -> float:
    """What `xz -9e` needs for `text`, in bits a byte; with `known`, what it needs more once it has packed that."""

    def packed(data: bytes) -> int:
        # 192 MiB of dictionary, so that all of `known` stays within reach.
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 192 << 20}]
        return len(lzma.compress(data, format=lzma.FORMAT_XZ, filters=filters))

    before = packed(known.encode()) if known else 0
    return 8 * (packed((known + text).encode()) - before) / len(text.encode())
