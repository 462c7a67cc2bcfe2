"""Read vocabularies: of a GGUF file, `tokenizer.json`, `vocab.json` with `merges.txt`, `vocab.txt`, SentencePiece.

What older files say is compared with the model's own tokenizer; where the two differ, tokens have no names.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from generators.base import notices
from generators.base.errors import InputError, first_line, raise_unless_panic
from generators.checkpoint.sources import Files, check_size
from generators.tokens.own_tokenizer import SENTENCEPIECE, as_json, own_tokenizer, strings
from generators.tokens.readable import readable_form
from generators.tokens.vocabulary import ModelVocabulary, Token, assemble

Content = TypeVar("Content")

TOKENIZER = "tokenizer.json"
SPECIAL_TOKENS, ADDED_TOKENS = "special_tokens_map.json", "added_tokens.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
COMPARED = 50  # ids, with the model's own tokenizer
MOST_DIGITS = 9  # of an id
# Classes whose vocab.txt is WordPiece's, or likewise one token a line.
WORD_PIECE_CLASS = re.compile(
    r"((Distil|Mobile|Conv|Squeeze|Retri|Nomic|Chinese)?Bert|Electra|MPNet|Funnel|Lxmert|LayoutLM(v2)?|Splinter|Realm|"
    r"DPR(Question|Context)Encoder|Ernie|Roformer|RoFormer|MegatronBert|Esm|PreTrained|Tokenizers)"
    r"(Tokenizer(Fast)?|Backend)"
)
UNKNOWN_WORD = frozenset(("[UNK]", "<unk>"))
WITH_COUNT = re.compile(r"\s\d+$")
# Names by which tokenizer files without flags know special tokens.
USUAL_SPECIAL = frozenset(
    ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<unk>", "<pad>", "<s>", "</s>", "<mask>", "<|endoftext|>")
)
WORD_END = "</w>"
SPACE_MARKER = "▁"
MOST_GROWTH = 256  # factor by which normalizers may lengthen a text
FAR_BEYOND = 1_000_000  # ids: no known tokenizer exceeds its model's embeddings by as many
BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
IN_GGUF = "tokenizer.ggml."
UNKNOWN, CONTROL, USER_DEFINED = 2, 3, 4  # types of tokens in llama.cpp


@dataclass(frozen=True)
class Spelling:
    """How a tokenizer spells text in its token strings.

    `byte_level`: each character represents a byte, as in GPT-2. `continuation` comes before what doesn't begin a
    word (WordPiece: `##`), `word_end` after what ends one (GPT-1: `</w>`), `space` for a space (SentencePiece: `▁`).
    `byte_tokens`: `<0x0A>` represents a byte.
    """

    byte_level: bool = False
    continuation: str = ""
    word_end: str = ""
    space: str = ""
    byte_tokens: bool = False

    def read(self, string: str) -> Token:
        byte = BYTE_TOKEN.fullmatch(string) if self.byte_tokens else None
        if byte:
            return Token(bytes.fromhex(byte[1]), f"\\x{byte[1]}", marks_space=False, is_byte=True)
        cut = string.removeprefix(self.continuation) if self.continuation else string.removesuffix(self.word_end)
        text = self._bytes(cut or string)
        readable, affixed = readable_form(text), cut not in ("", string)
        if self.continuation:
            marks_space = not affixed and not self.word_end
            return Token(text, self.continuation * affixed + readable, marks_space)
        if self.word_end:
            return Token(text, readable + self.word_end * affixed, affixed)
        return Token(text, readable, text.startswith(b" "))

    def read_added(self, content: str, special: bool) -> Token:
        """Return an added token: its content is literal, in no tokenizer's spelling."""
        text = content.encode()
        marks_space = text.startswith(b" ") or bool(self.continuation)
        return Token(text, readable_form(text), marks_space, special)

    def _bytes(self, string: str) -> bytes:
        if self.byte_level:
            try:
                return bytes(map(_byte_of_character().__getitem__, string))
            except KeyError:  # an added token
                return string.encode()
        return (string.replace(self.space, " ") if self.space else string).encode()


@dataclass(frozen=True)
class Tokens:
    """The tokens that files give, by id; `guessed` where their spelling is only known by what tokens look like."""

    tokens: Mapping[int, Token]
    spelling: Spelling
    merges: tuple[tuple[int | None, int | None, int | None], ...] = ()
    guessed: bool = False


def check_ids(path: Path, size: int) -> None:
    """Refuse a tokenizer.json or vocab.json with an id far beyond the embedding's rows: libraries list the gap."""
    check_size(path)
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} can't be read: it isn't JSON.") from error
    largest = max(_ids_in(content), default=0)
    if largest > size + FAR_BEYOND:
        raise InputError(f"{path} has a token with the id {largest}, and the model embeds {size}.")
    if isinstance(content, dict):
        _check_merges(path, content.get("model"))
        _check_growth(path, content.get("normalizer"))


def _check_merges(path: Path, model: object) -> None:
    """Refuse merges of what is no token: the library would panic, or abort this process."""
    if not isinstance(model, dict) or not isinstance(model.get("merges"), list):
        return
    vocab, prefix = model.get("vocab"), model.get("continuing_subword_prefix") or ""
    known, cut = vocab if isinstance(vocab, dict) else {}, len(str(prefix).encode("utf-8", "surrogatepass"))
    for merge in model["merges"]:
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            continue  # the library reports the error
        left, right = pair
        rest = right.encode("utf-8", "surrogatepass")[cut:].decode("utf-8", "replace")
        if not {left, right, left + rest} <= known.keys():
            raise InputError(f"{path} merges {left[:40]!r} and {right[:40]!r}, and not all three are tokens of it.")


def _check_growth(path: Path, normalizer: object) -> None:
    """Refuse normalizers that write far more text than they read."""
    grows, stack = 1, [normalizer]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack += node
        elif isinstance(node, dict):
            grows *= max([1, *(len(str(node.get(key) or "")) for key in ("content", "prepend"))])
            stack += [child for child in node.values() if isinstance(child, dict | list)]
        if grows > MOST_GROWTH:
            raise InputError(f"{path} has normalizers that would make a text more than {MOST_GROWTH} times as long.")


def _ids_in(content: object) -> Iterator[int]:
    if not isinstance(content, dict):
        return
    model, added = content.get("model"), content.get("added_tokens")
    vocab = model.get("vocab") if isinstance(model, dict) else content
    if isinstance(vocab, dict):
        yield from (i for i in vocab.values() if isinstance(i, int))
    for token in added if isinstance(added, list) else ():
        if isinstance(token, dict) and isinstance(token.get("id"), int):
            yield token["id"]


def load_vocabulary(files: Files, size: int) -> ModelVocabulary | None:
    """Read a model's vocabulary; None where there is no tokenizer file, or none whose tokens are certain.

    Of a GGUF file its own tokens are read; of others `tokenizer.json`, or else `vocab.json` with `merges.txt`, or
    `vocab.txt`, or SentencePiece's model. `size` is the number of rows of E: ids for which the tokenizer has no token
    get a placeholder, tokens beyond are left out.
    """
    if files.is_gguf:
        return _certain(files, _read_gguf(files), size)
    for names, read in READERS:
        paths = [path for path in map(files.fetch, names) if path is not None]
        for path in paths:
            check_ids(path, size) if path.suffix == ".json" else check_size(path)
        if len(paths) == len(names):
            return _certain(files, read(paths, files), size)
    return None


def _certain(files: Files, found: Tokens | None, size: int) -> ModelVocabulary | None:
    """Return a vocabulary whose tokens are those of the model's own tokenizer, as far as that can be asked."""
    if found is None:
        return None
    place = f"The tokenizer of {files.origin.place}"
    if found.guessed and (at := _first_difference(files, found, size)) is not None:
        notices.say_once(
            f"{place} is read by transformers with other tokens (id {at}) than its files give here: tokens have no "
            "names. Save it again as tokenizer.json: AutoTokenizer.from_pretrained(...).save_pretrained(...)."
        )
        return None
    beyond = sum(i >= size for i in found.tokens)
    if beyond:
        notices.say_once(f"{place} has {beyond} tokens beyond the {size} rows of the embedding; they are left out.")
    return assemble(found.tokens, size, found.merges)


def _first_difference(files: Files, found: Tokens, size: int) -> int | None:
    """Return the first of some ids whose token isn't that of transformers; None without one, or a tokenizer."""
    own = own_tokenizer(files)
    if own is None:
        return None
    known = sorted(i for i in found.tokens if i < size)
    asked = sorted({*known[:: max(1, len(known) // COMPARED)], *known[-COMPARED // 2 :]})
    for i, string in zip(asked, strings(own, asked), strict=True):
        spelled = None if string is None else {found.spelling.read(string).text, string.encode()}
        if spelled is None or found.tokens[i].text not in spelled:
            return i
    return None


@cache
def _byte_of_character() -> dict[str, int]:
    """Return the byte that each character stands for in byte-level tokenizers (GPT-2's `bytes_to_unicode`, inverted).

    Visible Latin-1 characters stand for themselves, those from U+0100 on for the other bytes in order.
    """
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in visible]
    return {chr(b): b for b in visible} | {chr(0x100 + i): b for i, b in enumerate(others)}


def _read_tokenizer(paths: Sequence[Path], files: Files) -> Tokens:
    """Read tokenizer.json; the library knows its versions and checks it, and writes it out in the newest."""
    from tokenizers import Tokenizer

    text = reading(lambda: Tokenizer.from_str(paths[0].read_text("utf-8")).to_str(), paths, files)
    return _of_tokenizer(text, _added_later(files))


def _of_tokenizer(text: str, later: Mapping[int, tuple[str, bool]]) -> Tokens:
    content = json.loads(text)
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
    return Tokens(_with(later, tokens, spelling), spelling, tuple(_merges(model.get("merges", ()), ids, spelling)))


def _read_sentencepiece(paths: Sequence[Path], files: Files) -> Tokens | None:
    """Read SentencePiece's model as transformers converts it, with the ids that the model's own class gives."""
    text = as_json(own_tokenizer(files))
    if text is None:
        notices.say_once(
            f"The tokenizer of {files.origin.place} is SentencePiece's {paths[0].name} alone, and transformers "
            "doesn't open it: tokens have no names."
        )
        return None
    return _of_tokenizer(text, {})


def _with(later: Mapping[int, tuple[str, bool]], tokens: dict[int, Token], spelling: Spelling) -> dict[int, Token]:
    """Return tokens with those that were added later, which change none that is there but to flag it as special."""
    for i, (content, special) in later.items():
        if i not in tokens:
            tokens[i] = spelling.read_added(content, special)
        elif special and tokens[i].text == content.encode():
            tokens[i] = replace(tokens[i], special=True)
    return tokens


def _added_later(files: Files) -> dict[int, tuple[str, bool]]:
    """Return what `added_tokens.json` and `tokenizer_config.json` add: id -> content, and whether it is special."""
    found: dict[int, tuple[str, bool]] = {}
    for content, i in _object(files, ADDED_TOKENS).items():
        if isinstance(i, int):
            found[i] = content, True
    decoder = _object(files, TOKENIZER_CONFIG).get("added_tokens_decoder")
    for key, entry in decoder.items() if isinstance(decoder, dict) else ():
        if key.isdecimal() and len(key) < MOST_DIGITS and isinstance(entry, dict):
            text = entry.get("content")
            if isinstance(text, str):
                found[int(key)] = text, entry.get("special") is True
    return found


def _object(files: Files, name: str) -> dict[str, Any]:
    path = files.fetch(name)
    if path is None:
        return {}
    check_size(path)
    content = reading(lambda: json.loads(path.read_text("utf-8")), [path], files)
    if not isinstance(content, dict):
        raise InputError(f"{name} of {files.origin.place} must hold a JSON object.")
    return content


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
    if isinstance(node, dict):
        if isinstance(node.get("type"), str):
            yield node["type"]
        for child in node.values():
            yield from _types(child)
    elif isinstance(node, list):
        for child in node:
            yield from _types(child)


def _guessed_spelling(ids: Mapping[str, int]) -> Spelling:
    byte_level = all(c in ids for c in _byte_of_character())
    return Spelling(
        byte_level=byte_level,
        word_end=WORD_END if any(s.endswith(WORD_END) and s != WORD_END for s in ids) else "",
        space=SPACE_MARKER if not byte_level and any(s.startswith(SPACE_MARKER) for s in ids) else "",
        byte_tokens=all(f"<0x{byte:02X}>" in ids for byte in range(0x100)),
    )


def _read_byte_pairs(paths: Sequence[Path], files: Files) -> Tokens:
    from tokenizers.models import BPE

    ids, merges = reading(lambda: BPE.read_file(*map(str, paths)), paths, files)
    spelling = _guessed_spelling(ids)
    tokens = _with(_added_later(files), _as_tokens(ids, spelling, _named_special(files)), spelling)
    return Tokens(tokens, spelling, tuple(_merges(merges, ids, spelling)), guessed=True)


def _read_word_pieces(paths: Sequence[Path], files: Files) -> Tokens | None:
    from tokenizers.models import WordPiece

    ids = reading(lambda: WordPiece.read_file(str(paths[0])), paths, files)
    if why := _why_no_word_pieces(ids, files):
        notices.say_once(f"The tokenizer of {files.origin.place}: vocab.txt {why}; tokens have no names.")
        return None
    spelling = Spelling(continuation="##")
    tokens = _with(_added_later(files), _as_tokens(ids, spelling, _named_special(files)), spelling)
    return Tokens(tokens, spelling, guessed=True)


def _why_no_word_pieces(ids: Mapping[str, int], files: Files) -> str:
    said = _object(files, TOKENIZER_CONFIG).get("tokenizer_class")
    if isinstance(said, str) and not WORD_PIECE_CLASS.fullmatch(said):
        return f"is of {said[:60]}, which the atlas doesn't read"
    if files.has("bpe.codes"):
        return "lies beside bpe.codes, by which it isn't WordPiece's"
    counted = sum(bool(WITH_COUNT.search(string)) for string in ids)
    if counted > len(ids) / 2:
        return "has counts behind its words, which WordPiece's has not"
    if not UNKNOWN_WORD & ids.keys() and not any(string.startswith("##") for string in ids):
        return "has neither [UNK] nor pieces with ##, by which WordPiece's is known"
    return ""


READERS: tuple[tuple[tuple[str, ...], Callable[[Sequence[Path], Files], Tokens | None]], ...] = (
    ((TOKENIZER,), _read_tokenizer),
    (("vocab.json", "merges.txt"), _read_byte_pairs),
    (("vocab.txt",), _read_word_pieces),
    *(((name,), _read_sentencepiece) for name in SENTENCEPIECE),
)


SPELLED_IN_GGUF = {
    "gpt2": Spelling(byte_level=True),
    "llama": Spelling(space=SPACE_MARKER, byte_tokens=True),
}


def _read_gguf(files: Files) -> Tokens | None:
    """Read the tokens in a GGUF file; None where it has none, or spells them in a way that isn't known here."""
    said = files.settings()
    kind, strings, types, merges = (said.get(IN_GGUF + key) for key in ("model", "tokens", "token_type", "merges"))
    spelling = SPELLED_IN_GGUF.get(str(kind))
    if strings is None or spelling is None:
        if strings is not None:
            notices.say_once(f"{files.origin.place} has tokens of the kind {str(kind)[:40]!r}: they have no names.")
        return None
    types = [0] * len(strings) if types is None else types
    if not _are(strings, str) or not _are(types, int) or not _are(merges or [], str) or len(types) != len(strings):
        raise InputError(f"The tokenizer in {files.origin.place} can't be read: its lists don't fit together.")
    literal = {UNKNOWN, CONTROL, USER_DEFINED} if spelling.byte_level else {UNKNOWN, CONTROL}
    tokens = {
        i: spelling.read_added(string, type_ != USER_DEFINED) if type_ in literal else spelling.read(string)
        for i, (string, type_) in enumerate(zip(strings, types, strict=True))
    }
    pairs = ((left, right) for left, _, right in (merge.partition(" ") for merge in merges or ()))
    ids = {string: i for i, string in enumerate(strings)}
    return Tokens(tokens, spelling, tuple(_merges(pairs, ids, spelling)))


def _are(values: object, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


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
    content = _object(files, SPECIAL_TOKENS)
    entries = [e for value in content.values() for e in (value if isinstance(value, list) else [value])]
    names = (e.get("content") if isinstance(e, dict) else e for e in entries)
    return USUAL_SPECIAL | {name for name in names if isinstance(name, str)}


def reading(read: Callable[[], Content], paths: Sequence[Path], files: Files) -> Content:
    """Return what is read. Raises InputError: whatever the tokenizers library raises, its panics included."""
    try:
        return read()
    except BaseException as error:  # the tokenizers library raises nothing more specific, and panics
        raise_unless_panic(error)
        names = " and ".join(path.name for path in paths)
        place = files.origin.place
        raise InputError(f"The tokenizer of {place} can't be read from {names}: {first_line(error)}.") from error
