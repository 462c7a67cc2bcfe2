"""The vocabulary of a model: readable, safe forms of its tokens, their groups, and which contain which."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Bool, Int
from numpy import ndarray as Array

from generators.base.errors import InputError
from generators.checkpoint.sources import Files, check_size

Content = TypeVar("Content")

TOKENIZER = "tokenizer.json"
SPECIAL_TOKENS = "special_tokens_map.json"

# What kind of text a token is, without its leading space; every token is in one of these.
GROUPS = (
    ("special", "none of the text's own: the tokenizer flags it as special"),
    ("unassigned", "an id with an embedding for which the tokenizer has no token"),
    ("byte", "not valid UTF-8: a part of a character"),
    ("control", "nothing to see: white space, control or invisible characters only"),
    ("digits", "digits and other numerals only"),
    ("letters", "Latin letters only"),
    ("other script", "letters and combining marks only, not all of them Latin"),
    ("punctuation", "punctuation and symbols only"),
    ("mixed", "more than one of these"),
)
# How two tokens differ, tested in this order.
PAIR_GROUPS = ("leading space", "byte or unprintable", "plural", "case", "digits", "other")

# Names by which tokenizer files without flags know special tokens.
USUAL_SPECIAL = frozenset(
    ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<unk>", "<pad>", "<s>", "</s>", "<mask>", "<|endoftext|>")
)
LONGEST_READABLE = 512  # characters; the longest tokens of real vocabularies, runs of spaces, have 128
WORD_END = "</w>"
SPACE_MARKER = "▁"
BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


@dataclass(frozen=True)
class ModelVocabulary:
    """The tokens of a model by id.

    `texts` are their raw bytes without marker (for byte-level tokenizers and those of SentencePiece the leading space
    is part of them), `readable` a form in which every character can be seen and no two tokens look alike,
    `marks_space` whether a token carries the tokenizer's space marker (in WordPiece: whether it lacks `##`; in GPT-1:
    whether it ends a word), `special` whether it is none of the text's own, which ids without a token aren't either.
    `groups` names what kind of text each is. `merges` are the ids of two tokens and of the one that they make, where
    the tokenizer says so. `digest` is the SHA-256 of all that comes from the tokenizer.
    """

    texts: tuple[bytes, ...]
    readable: tuple[str, ...]
    groups: tuple[str, ...]
    marks_space: Bool[Array, " V"]
    special: Bool[Array, " V"]
    digest: str
    merges: Int[Array, "merges 3"] = field(default_factory=lambda: np.zeros((0, 3), np.int64))

    def containing(self, token_id: int, limit: int) -> tuple[int, ...]:
        """Return up to `limit` longer tokens that contain this one, lowest id first.

        Where the tokenizer has merges, those that it is a part of by merges; elsewhere those spelled with it.
        """
        if self.special[token_id] or not self.texts[token_id]:
            return ()
        if len(self.merges):
            return tuple(sorted(self._made_with(token_id))[:limit])
        return tuple(islice(self._spelled_with(token_id), limit))

    def pair_group(self, u: int, v: int) -> str:
        """Return how token u differs from token v that it is mapped to: the first of `PAIR_GROUPS` that fits."""
        if self.special[u] or self.special[v]:
            return "other"
        if self._differ_by_space(u, v):
            return "leading space"
        if "byte" in (self.groups[u], self.groups[v]):
            return "byte or unprintable"
        return _word_pair_group(*(self.texts[i].removeprefix(b" ").decode() for i in (u, v)))

    def _differ_by_space(self, u: int, v: int) -> bool:
        a, b = self.texts[u], self.texts[v]
        return a == b" " + b or b == b" " + a or (a == b and self.marks_space[u] != self.marks_space[v])

    @cached_property
    def _makes(self) -> dict[int, list[int]]:
        makes: dict[int, list[int]] = {}
        for left, right, made in self.merges.tolist():
            makes.setdefault(left, []).append(made)
            makes.setdefault(right, []).append(made)
        return makes

    def _made_with(self, token_id: int) -> set[int]:
        found: set[int] = set()
        new = [token_id]
        while new:
            made = self._makes.get(new.pop(), ())
            new += [i for i in made if i not in found]
            found.update(made)
        return found - {token_id}

    def _spelled_with(self, token_id: int) -> Iterator[int]:
        part = self.texts[token_id]
        for i, text in enumerate(self.texts):
            if part in text and len(text) > len(part) and not self.special[i]:
                yield i


@dataclass(frozen=True)
class Token:
    """One token: its raw bytes, its readable form, and what its tokenizer says of it."""

    text: bytes
    readable: str
    marks_space: bool
    special: bool = False
    is_byte: bool = False


@dataclass(frozen=True)
class Spelling:
    """How a tokenizer spells text in its token strings.

    `byte_level`: each character stands for a byte, as in GPT-2. `continuation` stands before what doesn't begin a
    word (WordPiece: `##`), `word_end` after what ends one (GPT-1: `</w>`), `space` for a space (SentencePiece: `▁`).
    `byte_tokens`: `<0x0A>` stands for a byte.
    """

    byte_level: bool = False
    continuation: str = ""
    word_end: str = ""
    space: str = ""
    byte_tokens: bool = False

    def read(self, string: str) -> Token:
        """Return what a token string means."""
        byte = BYTE_TOKEN.fullmatch(string) if self.byte_tokens else None
        if byte:
            return Token(bytes.fromhex(byte[1]), f"\\x{byte[1]}", marks_space=False, is_byte=True)
        if self.continuation:
            stem = _without_prefix(string, self.continuation)
            return self._affixed(stem or string, prefix="" if stem is None else self.continuation)
        if self.word_end:
            stem = _without_suffix(string, self.word_end)
            return self._affixed(stem or string, suffix="" if stem is None else self.word_end)
        text = self._bytes(string)
        return Token(text, readable_form(text), text.startswith(b" "))

    def read_added(self, content: str, special: bool) -> Token:
        """Return an added token: its content stands as it is, in no tokenizer's spelling."""
        text = content.encode()
        marks_space = text.startswith(b" ") or bool(self.continuation)
        return Token(text, readable_form(text), marks_space, special)

    def _affixed(self, stem: str, prefix: str = "", suffix: str = "") -> Token:
        text = self._bytes(stem)
        marks_space = bool(suffix) if self.word_end else not prefix
        return Token(text, prefix + readable_form(text) + suffix, marks_space)

    def _bytes(self, string: str) -> bytes:
        if self.byte_level:
            try:
                return bytes(map(_byte_of_character().__getitem__, string))
            except KeyError:  # an added token
                return string.encode()
        return (string.replace(self.space, " ") if self.space else string).encode()


def load_vocabulary(files: Files, size: int) -> ModelVocabulary | None:
    """Read a model's vocabulary; None where there is no tokenizer file.

    Args:
        files: `tokenizer.json` is read, or else `vocab.json` with `merges.txt`, or else `vocab.txt`.
        size: the number of rows of E; ids for which the tokenizer has no token get a placeholder, tokens beyond are
            left out.

    Raises:
        InputError: a tokenizer file is damaged.
        WeightsUnavailableError: a file that exists can't be had now.
    """
    for names, read in READERS:
        paths = [path for path in map(files.fetch, names) if path is not None]
        for path in paths:
            check_size(path)
        if len(paths) == len(names):
            return read(paths, files, size)
    return None


def assemble(
    tokens: Mapping[int, Token], size: int, merges: Iterable[tuple[int | None, int | None, int | None]] = ()
) -> ModelVocabulary:
    """Return the vocabulary of `size` ids whose tokens are `tokens`."""
    rows = [tokens.get(i) for i in range(size)]
    known = [m for m in merges if all(i is not None and i < size for i in m)]
    made = np.array(known, np.int64).reshape(-1, 3)
    return ModelVocabulary(
        texts=tuple(b"" if t is None else t.text for t in rows),
        readable=tuple(_told_apart(rows)),
        groups=tuple("unassigned" if t is None else _group(t) for t in rows),
        marks_space=np.array([t is not None and t.marks_space for t in rows], bool),
        special=np.array([t is None or t.special for t in rows], bool),
        digest=_digest(rows, made),
        merges=made,
    )


def readable_form(raw: bytes) -> str:
    r"""Return bytes as text in which everything can be seen and that no other bytes share.

    Space, tab, newline and the other ASCII controls are shown as control pictures (␠ ␉ ␊), bytes that aren't UTF-8 as
    `\xNN`, and as `\u{NNNN}` what can't be seen or doesn't stand alone: combining marks, format and bidi characters,
    other spaces, unassigned and private code points, conjoining jamo, what normalisation would change, and literal
    control pictures. A backslash is doubled. Letters that are written from right to left stay as they are: a page
    wraps the form in `<bdi>`.
    """
    return raw.decode("utf-8", "surrogateescape").translate(_SHOWN)


class _Shown(dict[int, str]):
    """The readable form of each character, by code point; bytes that aren't UTF-8 are lone surrogates."""

    def __missing__(self, code: int) -> str:
        shown = self[code] = _shown(code)
        return shown


def _shown(code: int) -> str:
    character = chr(code)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02X}"
    if code <= 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if character == "\\":
        return "\\\\"
    return f"\\u{{{code:04X}}}" if _is_hidden(character) else character


def _is_hidden(character: str) -> bool:
    """Return whether a character can't be seen alone, or might be taken for another."""
    code = ord(character)
    return (
        unicodedata.category(character)[0] in "MCZ"
        or unicodedata.normalize("NFC", character) != character
        or any(code in block for block in _HIDDEN_BLOCKS)
    )


_SHOWN = _Shown()
_HIDDEN_BLOCKS = (
    range(0x115F, 0x1200),  # jamo that join with the one before, and fillers
    range(0xD7B0, 0xD800),
    range(0x2400, 0x2440),  # control pictures
    range(0x2800, 0x2801),  # the empty Braille cell
    range(0x3164, 0x3165),  # Hangul fillers
    range(0xFFA0, 0xFFA1),
    range(0xFFFC, 0xFFFD),  # the object replacement character
)


def _told_apart(tokens: Sequence[Token | None]) -> Iterator[str]:
    """Yield readable forms; the id stands before those that are empty or taken, and alone where there is no token.

    So it does before those that are too long to be read, of which the beginning is given. No other form has a space.
    """
    taken = set()
    for i, token in enumerate(tokens):
        if token is None:
            yield f"[id {i}]"
        elif len(token.readable) > LONGEST_READABLE:
            yield f"[id {i}] {token.readable[:LONGEST_READABLE]}…"
        elif not token.readable or token.readable in taken:
            yield f"[id {i}] {token.readable}".rstrip()
        else:
            taken.add(token.readable)
            yield token.readable


def _group(token: Token) -> str:
    if token.special:
        return "special"
    if token.is_byte or not _is_utf8(token.text):
        return "byte"
    kinds = {_kind(c) for c in token.text.removeprefix(b" ").decode()}
    if len(kinds) > 1:
        kinds.discard("mark")
    if len(kinds) > 1:
        return "other script" if kinds == {"letters", "other script"} else "mixed"
    kind = kinds.pop() if kinds else "control"
    return "other script" if kind == "mark" else kind


@cache
def _kind(character: str) -> str:
    """Return the group of a single character, or that it is a mark on another one."""
    category = unicodedata.category(character)
    if category[0] == "L":
        return "letters" if "LATIN" in unicodedata.name(character, "") else "other script"
    return {"M": "mark", "N": "digits", "P": "punctuation", "S": "punctuation"}.get(category[0], "control")


def _word_pair_group(u: str, v: str) -> str:
    if not (u.isprintable() and v.isprintable()):
        return "byte or unprintable"
    short, long = sorted((u, v), key=len)
    if short.isalpha() and long in (short + "s", short + "es"):
        return "plural"
    if u.casefold() == v.casefold():
        return "case"
    return "digits" if {_kind(c) for c in u + v} == {"digits"} else "other"


def _digest(tokens: Sequence[Token | None], merges: Int[Array, "merges 3"]) -> str:
    digest = hashlib.sha256()
    for token in tokens:
        if token is None:
            digest.update(b"none")
        else:
            flags = bytes([token.marks_space, token.special, token.is_byte])
            digest.update(flags + len(token.text).to_bytes(4, "little") + token.text)
    digest.update(merges.astype("<i8").tobytes())
    return digest.hexdigest()


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _without_prefix(string: str, prefix: str) -> str | None:
    return string[len(prefix) :] if string.startswith(prefix) and len(string) > len(prefix) else None


def _without_suffix(string: str, suffix: str) -> str | None:
    return string[: -len(suffix)] if string.endswith(suffix) and len(string) > len(suffix) else None


@cache
def _byte_of_character() -> dict[str, int]:
    """Return the byte that each character stands for in byte-level tokenizers (GPT-2's `bytes_to_unicode`, inverted).

    Visible Latin-1 characters stand for themselves, those from U+0100 on for the other bytes in order.
    """
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in visible]
    return {chr(b): b for b in visible} | {chr(0x100 + i): b for i, b in enumerate(others)}


def _read_tokenizer(paths: Sequence[Path], files: Files, size: int) -> ModelVocabulary:
    """Read tokenizer.json; the library knows its versions and checks it, and writes it out in the newest."""
    from tokenizers import Tokenizer

    content = json.loads(_read(lambda: Tokenizer.from_str(paths[0].read_text("utf-8")).to_str(), paths, files))
    model = content["model"]
    if model["type"] == "Unigram":
        ids = {string: i for i, (string, _) in enumerate(model["vocab"])}
        unknown = next((s for s, i in ids.items() if i == model.get("unk_id")), None)
    else:
        ids, unknown = model["vocab"], model.get("unk_token")
    spelling = _spelling_of(content, ids)
    tokens = _as_tokens(ids, spelling, special={unknown})
    for added in content["added_tokens"]:
        if added["special"] or added["id"] not in tokens:
            tokens[added["id"]] = spelling.read_added(added["content"], added["special"])
    return assemble(tokens, size, _merges(model.get("merges", ()), ids, spelling))


def _spelling_of(content: Mapping[str, Any], ids: Mapping[str, int]) -> Spelling:
    model = content["model"]
    parts = {part for place in ("normalizer", "pre_tokenizer", "decoder") for part in _types(content.get(place))}
    guessed = _guessed_spelling(ids)
    return Spelling(
        byte_level="ByteLevel" in parts,
        continuation=model.get("continuing_subword_prefix") or "",
        word_end=model.get("end_of_word_suffix") or "",
        space=guessed.space if model["type"] in ("BPE", "Unigram") and "ByteLevel" not in parts else "",
        byte_tokens=guessed.byte_tokens,
    )


def _types(node: object) -> Iterator[str]:
    """Yield the types of all parts of a tokenizer's component."""
    if isinstance(node, dict):
        if isinstance(node.get("type"), str):
            yield node["type"]
        for child in node.values():
            yield from _types(child)
    elif isinstance(node, list):
        for child in node:
            yield from _types(child)


def _guessed_spelling(ids: Mapping[str, int]) -> Spelling:
    """Return the spelling that a byte-pair or SentencePiece vocabulary shows by the strings in it."""
    byte_level = all(c in ids for c in _byte_of_character())
    return Spelling(
        byte_level=byte_level,
        word_end=WORD_END if any(_without_suffix(s, WORD_END) for s in ids) else "",
        space=SPACE_MARKER if not byte_level and any(s.startswith(SPACE_MARKER) for s in ids) else "",
        byte_tokens=all(f"<0x{byte:02X}>" in ids for byte in range(0x100)),
    )


def _read_byte_pairs(paths: Sequence[Path], files: Files, size: int) -> ModelVocabulary:
    """Read vocab.json and merges.txt, with the special tokens that the files beside them name."""
    from tokenizers.models import BPE

    ids, merges = _read(lambda: BPE.read_file(*map(str, paths)), paths, files)
    spelling = _guessed_spelling(ids)
    tokens = _as_tokens(ids, spelling, _named_special(files))
    return assemble(tokens, size, _merges(merges, ids, spelling))


def _read_word_pieces(paths: Sequence[Path], files: Files, size: int) -> ModelVocabulary:
    """Read vocab.txt, with the special tokens that the files beside it name."""
    from tokenizers.models import WordPiece

    ids = _read(lambda: WordPiece.read_file(str(paths[0])), paths, files)
    return assemble(_as_tokens(ids, Spelling(continuation="##"), _named_special(files)), size)


READERS: tuple[tuple[tuple[str, ...], Callable[[Sequence[Path], Files, int], ModelVocabulary]], ...] = (
    ((TOKENIZER,), _read_tokenizer),
    (("vocab.json", "merges.txt"), _read_byte_pairs),
    (("vocab.txt",), _read_word_pieces),
)


def _as_tokens(ids: Mapping[str, int], spelling: Spelling, special: Iterable[str | None]) -> dict[int, Token]:
    named = set(special)
    return {
        i: spelling.read_added(string, special=True) if string in named else spelling.read(string)
        for string, i in ids.items()
    }


def _merges(
    pairs: Iterable[tuple[str, str]], ids: Mapping[str, int], spelling: Spelling
) -> Iterator[tuple[int | None, int | None, int | None]]:
    for left, right in pairs:
        yield ids.get(left), ids.get(right), ids.get(left + right.removeprefix(spelling.continuation))


def _named_special(files: Files) -> frozenset[str]:
    """Return the special tokens that special_tokens_map.json names, and those that go by the usual names."""
    path = files.fetch(SPECIAL_TOKENS)
    if path is None:
        return USUAL_SPECIAL
    check_size(path)
    content = _read(lambda: json.loads(path.read_text("utf-8")), [path], files)
    if not isinstance(content, dict):
        raise InputError(f"{SPECIAL_TOKENS} of {files.origin.place} must hold a JSON object.")
    entries = [e for value in content.values() for e in (value if isinstance(value, list) else [value])]
    names = (e.get("content") if isinstance(e, dict) else e for e in entries)
    return USUAL_SPECIAL | {name for name in names if isinstance(name, str)}


def _read(reading: Callable[[], Content], paths: Sequence[Path], files: Files) -> Content:
    try:
        return reading()
    except Exception as error:  # the tokenizers library raises nothing more exact
        names = " and ".join(path.name for path in paths)
        why = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"The tokenizer of {files.origin.place} can't be read from {names}: {why}.") from error
