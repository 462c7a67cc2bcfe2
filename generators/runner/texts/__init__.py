"""The texts that models are run on: shipped, pinned by digest, cut into windows that a seed draws.

A checkpoint may carry text of its own as token ids (`held_out_tokens.npy`). Models of chemical reactions read
reactions, all others the language reference of Python's documentation, in the words of their own tokenizer. Models
that can't read that get their own samples (`runner/own_samples.py`).
"""

import hashlib
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy import ndarray as Array

from generators.base.errors import first_line
from generators.base.files import read_limited
from generators.base.runs import Windows
from generators.runner.errors import CannotRunError

LARGEST = 2**28  # bytes of a file next to the weights
HELD_OUT = "held_out_tokens.npy"
LANGUAGE_REFERENCE = Path(__file__).parent / "language-reference.txt"
LANGUAGE_REFERENCE_SHA256 = "f645602aa630381e9aed465dfee8c9a6ea2a7a93fe46c4da6618ac4bc763d7b5"
REACTIONS = Path(__file__).parent / "reactions.txt"
REACTIONS_SHA256 = "765f25988ac3cef06a6911b3557b9441f0a02c453ffff391794e5d90ff157fcb"
VOCABULARY = "vocab.txt"
OF_REACTIONS = {"[CLS]", "[SEP]", "[MASK]", ">>", "[C@@H]", "[N+]", "Br"}  # tokens that only such vocabularies have
# An atom, a bond, a ring or a branch: how models of reactions cut SMILES (Schwaller et al. 2018).
SMILES = re.compile(r"\[[^\]]+\]|Br|Cl|>>|%\d\d|[A-Za-z]|\d|[^\w\s]")
LONGEST_WINDOW = 256  # tokens
BLOCK = 64  # successive windows treated as one file if the text is a single file
CHAPTER = re.compile(r"^\d+\. [A-Z]", re.MULTILINE)  # each chapter is one file of the documentation
UNKNOWN = "[UNK]"
MASK_TOKENS = ("[MASK]", "<mask>")
PROBE = "a"  # any text that is one word: what a tokenizer puts around it also surrounds every window


@dataclass(frozen=True)
class TokenizedText:
    """A text in a model's tokens, what the tokenizer puts around every piece, and where each file `starts`."""

    name: str
    sha256: str  # digest of the text's bytes, or of its ids if stored as ids
    ids: Int[Array, " tokens"]
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    mask_id: int | None = None
    starts: tuple[int, ...] = (0,)
    carried: bool = False  # shipped in the checkpoint: the model was trained on similar text

    def windows(self, count: int, length: int, seed: int) -> Windows:
        """Draw `count` windows that share no token of the text, or all there are; the first ones don't depend on it.

        Raises CannotRunError: the text is shorter than a window.
        """
        inner = length - len(self.before) - len(self.after)
        pieces = len(self.ids) // inner if inner > 0 else 0
        if not pieces:
            raise CannotRunError(f"The text {self.name} has only {len(self.ids)} tokens, less than one window.")
        whole = self.ids[: pieces * inner].reshape(pieces, inner)
        places = np.random.default_rng(seed).permutation(pieces)[:count]
        drawn = whole[places]
        around = [np.tile(np.array(ids, np.int32), (len(drawn), 1)) for ids in (self.before, self.after)]
        return Windows(
            np.hstack([around[0], drawn, around[1]]).astype(np.int32),
            (len(self.before), length - len(self.after)),
            self._files(places, inner),
            self.mask_id,
        )

    def _files(self, places: Int[Array, " windows"], inner: int) -> Int[Array, " windows"]:
        """Return the file that the middle of each window lies in; in a text of one file, blocks of windows."""
        if len(self.starts) < 2:
            return places // BLOCK
        return np.searchsorted(self.starts, places * inner + inner // 2, side="right") - 1


def window_length(n_ctx: int | None) -> int:
    return LONGEST_WINDOW if n_ctx is None else min(n_ctx, LONGEST_WINDOW)


def text_for(folder: Path, vocab_size: int, shipped: TokenizedText | None = None) -> TokenizedText:
    """Return the text for the model in `folder`: the tokens it carries, or the language reference in its tokens.

    Args:
        shipped: what `shipped_text` returned for it, so that it isn't tokenized again.

    Raises CannotRunError: it has no tokenizer, the text is damaged, or ids are beyond the vocabulary.
    """
    held_out = folder / HELD_OUT
    text = _carried(held_out) if held_out.is_file() else shipped or shipped_text(folder)
    if len(text.ids) and int(text.ids.max()) >= vocab_size:
        raise CannotRunError(f"The text {text.name} has token ids beyond the vocabulary of {vocab_size}.")
    return text


def encode(folder: Path, text: str) -> tuple[int, ...]:
    return tuple(_tokenizer(folder).encode(text, add_special_tokens=False).ids)


def _carried(path: Path) -> TokenizedText:
    try:
        ids = np.load(io.BytesIO(read_limited(path, LARGEST)), allow_pickle=False)
    except (OSError, ValueError, MemoryError) as error:
        raise CannotRunError(f"{path.name} can't be read ({error}).") from error
    if ids.ndim != 1 or ids.dtype.kind != "u":
        raise CannotRunError(
            f"{path.name} must hold one row of unsigned token ids, not {ids.dtype}{list(ids.shape)}."
        )
    end = _setting(path.with_name("config.json"), "eos_token_id")
    starts = (0, *(np.flatnonzero(ids == end) + 1).tolist()) if isinstance(end, int) else (0,)
    return TokenizedText(
        "held-out tokens",
        digest_of_ids(ids),
        ids.astype(np.int32),
        starts=tuple(start for start in starts if start < len(ids)),
        carried=True,
    )


def _setting(file: Path, name: str) -> Any:
    try:
        return json.loads(read_limited(file, LARGEST)).get(name)
    except (OSError, ValueError, AttributeError):
        return None


def digest_of_ids(ids: Int[Array, " tokens"]) -> str:
    return hashlib.sha256(ids.astype("<u4").tobytes()).hexdigest()


def _read(path: Path, digest: str) -> str:
    """Return a shipped text. Raises CannotRunError: it is not the text whose digest is stated here."""
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise CannotRunError(f"{path.name} is not the text that its digest names.")
    return content.decode("utf-8")


def read_language_reference() -> str:
    return _read(LANGUAGE_REFERENCE, LANGUAGE_REFERENCE_SHA256)


def reads_reactions(vocabulary: bytes | None) -> bool:
    """Return whether a vocab.txt, read where there is no tokenizer.json, has the signs of reactions in SMILES."""
    return vocabulary is not None and set(vocabulary.decode("utf-8", "replace").split()) >= OF_REACTIONS


def shipped_text(folder: Path) -> TokenizedText:
    alone = (folder / VOCABULARY).is_file() and not (folder / "tokenizer.json").is_file()
    lines = read_limited(folder / VOCABULARY, LARGEST) if alone else None
    if lines is not None and reads_reactions(lines):
        return _reactions(lines.decode("utf-8").split())
    return _language_reference(folder)


def _reactions(vocabulary: Sequence[str]) -> TokenizedText:
    ids = {token: i for i, token in enumerate(vocabulary)}
    cut = [SMILES.findall(line) for line in _read(REACTIONS, REACTIONS_SHA256).split()]
    lengths = np.cumsum([0, *map(len, cut)])
    return TokenizedText(
        "chemical reactions by textbook schemes",
        REACTIONS_SHA256,
        np.array([ids.get(token, ids.get(UNKNOWN, 0)) for line in cut for token in line], np.int32),
        (ids["[CLS]"],),
        (ids["[SEP]"],),
        ids["[MASK]"],
        tuple(lengths[:-1].tolist()),
    )


def _language_reference(folder: Path) -> TokenizedText:
    tokenizer = _tokenizer(folder)
    reference = read_language_reference()
    encoded = tokenizer.encode(reference, add_special_tokens=False)
    begins = [begin for begin, _ in encoded.offsets]
    chapters = [found.start() for found in CHAPTER.finditer(reference)]
    bare = tokenizer.encode(PROBE, add_special_tokens=False).ids
    dressed = tokenizer.encode(PROBE).ids
    begin = next((i for i in range(len(dressed)) if dressed[i : i + len(bare)] == bare), 0)
    named = _setting(folder / "tokenizer_config.json", "mask_token")
    named = named.get("content") if isinstance(named, dict) else named
    ids = (tokenizer.token_to_id(name) for name in (named, *MASK_TOKENS) if isinstance(name, str))
    return TokenizedText(
        "the language reference of Python's documentation",
        LANGUAGE_REFERENCE_SHA256,
        np.array(encoded.ids, np.int32),
        tuple(dressed[:begin]),
        tuple(dressed[begin + len(bare) :]),
        next((i for i in ids if i is not None), None),
        tuple(np.searchsorted(begins, chapters).tolist()),
    )


def _tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    try:
        if path.is_file():
            tokenizer = Tokenizer.from_file(str(path))
        else:
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(
                str(folder), trust_remote_code=False, local_files_only=True
            ).backend_tokenizer
    except Exception as error:  # both libraries raise all kinds of errors
        raise CannotRunError(
            f"The checkpoint has no tokenizer that can be read, so no text either ({first_line(error)})."
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
