"""The vocabulary of a model: readable, safe forms of its tokens, their groups, and which contain which."""

from dataclasses import dataclass

from jaxtyping import Bool
from numpy import ndarray as Array


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of a model by id.

    `texts` are their raw bytes without marker (for byte-level tokenizers the leading space is part of them),
    `readable` a form in which every character can be seen and no two tokens look alike, `marks_space` whether a token
    carries the tokenizer's space marker (in WordPiece: whether it lacks `##`), `special` whether it is none of the
    text's own. `groups` names what kind of text each is. `digest` is the SHA-256 of all of it.
    """

    texts: tuple[bytes, ...]
    readable: tuple[str, ...]
    groups: tuple[str, ...]
    marks_space: Bool[Array, " V"]
    special: Bool[Array, " V"]
    digest: str
