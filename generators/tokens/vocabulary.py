import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import islice

import numpy as np
from jaxtyping import Bool, Int
from numpy import ndarray as Array

# What kind of text a token is, without its leading space; every token is in one of these.
BYTE, UNASSIGNED = "byte", "unassigned"
GROUPS = (
    ("special", "none of the text's own: the tokenizer flags it as special"),
    (UNASSIGNED, "an id with an embedding for which the tokenizer has no token"),
    (BYTE, "not valid UTF-8: a part of a character"),
    ("control", "nothing to see: white space, control or invisible characters only"),
    ("digits", "digits and other numerals only"),
    ("letters", "Latin letters only"),
    ("other script", "letters and combining marks only, not all of them Latin"),
    ("punctuation", "punctuation and symbols only"),
    ("mixed", "more than one of these"),
)
# How two tokens differ, tested in this order.
PAIR_GROUPS = ("leading space", "byte or unprintable", "plural", "case", "digits", "other")

LONGEST_READABLE = 512  # characters; the longest real tokens, runs of spaces, have 128


@dataclass(frozen=True)
class ModelVocabulary:
    """The tokens of a model by id.

    `raw_bytes` leave out the marker (in byte-level tokenizers and those of SentencePiece the leading space is part of
    them), `readable` is a form in which every character can be seen and that no two tokens share,
    `marks_space` whether a token carries the tokenizer's space marker (in WordPiece: whether it lacks `##`; in GPT-1:
    whether it ends a word), `special` whether it is none of the text's own, which ids without a token aren't either.
    `groups` names what kind of text each is. `merges` are the ids of two tokens and of the one that they make, where
    the tokenizer says so.
    """

    raw_bytes: tuple[bytes, ...]
    readable: tuple[str, ...]
    groups: tuple[str, ...]
    marks_space: Bool[Array, " V"]
    special: Bool[Array, " V"]
    merges: Int[Array, "merges 3"] = field(default_factory=lambda: np.zeros((0, 3), np.int64))

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the tokenizer's own data, without our readable forms and group names."""
        digest = hashlib.sha256()
        for text in self.raw_bytes:
            digest.update(len(text).to_bytes(4, "little") + text)
        apart = ([group == kind for group in self.groups] for kind in (BYTE, UNASSIGNED))
        for flags in (self.marks_space, self.special, *apart):
            digest.update(np.asarray(flags, bool).tobytes())
        digest.update(self.merges.astype("<i8").tobytes())
        return digest.hexdigest()

    def containing(self, token_id: int, limit: int) -> tuple[int, ...]:
        """Return up to `limit` longer tokens that contain this one, lowest id first.

        Where the tokenizer has merges, those that it is a part of by merges; elsewhere those spelled with it.
        """
        if self.special[token_id] or not self.raw_bytes[token_id]:
            return ()
        if len(self.merges):
            return tuple(sorted(self._made_with(token_id))[:limit])
        return tuple(islice(self._spelled_with(token_id), limit))

    def pair_group(self, u: int, v: int) -> str:
        """Return the first of `PAIR_GROUPS` that describes how token u differs from v, which it is mapped to."""
        if self.special[u] or self.special[v]:
            return "other"
        if self._differ_by_space(u, v):
            return "leading space"
        if BYTE in (self.groups[u], self.groups[v]):
            return "byte or unprintable"
        return _word_pair_group(*(self.raw_bytes[i].removeprefix(b" ").decode() for i in (u, v)))

    def _differ_by_space(self, u: int, v: int) -> bool:
        a, b = self.raw_bytes[u], self.raw_bytes[v]
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
        part = self.raw_bytes[token_id]
        for i, text in enumerate(self.raw_bytes):
            if part in text and len(text) > len(part) and not self.special[i]:
                yield i


@dataclass(frozen=True)
class Token:
    text: bytes
    readable: str
    marks_space: bool
    special: bool = False
    is_byte: bool = False


def assemble(
    tokens: Mapping[int, Token], size: int, merges: Iterable[tuple[int | None, int | None, int | None]] = ()
) -> ModelVocabulary:
    rows = [tokens.get(i) for i in range(size)]
    known = [m for m in merges if all(i is not None and i < size for i in m)]
    made = np.array(known, np.int64).reshape(-1, 3)
    return ModelVocabulary(
        raw_bytes=tuple(b"" if t is None else t.text for t in rows),
        readable=tuple(_distinct_forms(rows)),
        groups=tuple(UNASSIGNED if t is None else _group(t) for t in rows),
        marks_space=np.array([t is not None and t.marks_space for t in rows], bool),
        special=np.array([t is None or t.special for t in rows], bool),
        merges=made,
    )


def _distinct_forms(tokens: Sequence[Token | None]) -> Iterator[str]:
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
    if token.is_byte:
        return BYTE
    try:
        text = token.text.removeprefix(b" ").decode()
    except UnicodeDecodeError:
        return BYTE
    kinds = {_kind(c) for c in text}
    if len(kinds) > 1:
        kinds.discard("mark")
    if len(kinds) > 1:
        return "other script" if kinds == {"letters", "other script"} else "mixed"
    kind = kinds.pop() if kinds else "control"
    return "other script" if kind == "mark" else kind


@cache
def _kind(character: str) -> str:
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
