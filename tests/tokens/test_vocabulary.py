"""Vocabularies: what every token is, shown so that it can be seen and told from every other one."""

import json
import re
import unicodedata
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from generators.base.errors import InputError
from generators.checkpoint.registry import Model, PackageSource
from generators.checkpoint.sources import Files, Hub, in_folder, locate
from generators.tokens.readable import readable_form
from generators.tokens.tokenizer_files import load_vocabulary
from generators.tokens.vocabulary import GROUPS, PAIR_GROUPS, ModelVocabulary, Token, assemble

GPT2_SIZE = 50257
MINILM_SIZE = 30522
UNUSED = 994

# What a token must not do to a page, or hide from a reader; also bytes that aren't text.
HOSTILE = (
    *("<script>alert(1)</script>", "</bdi></td></table><img src=x onerror=alert(1)>", "<!-- -->]]>"),
    *("&lt;&amp;&#0;&nbsp", "{{ 7 * 7 }}{% raw %}{# #}", "| a | b |", "`code` ```"),
    *("[link](javascript:alert(1))", "**bold** _it_ # $x$ ~~ ![]() \\( \\)", "=1+1", "\"'", " ", "  ", "\t"),
    *("\n", "\r\n", "\0", "\x1b[31m", "\x7f", "\x85", "\u2028\u2029", "\u00a0\u3000\u2009", "\u202eevil\u202c"),
    *("\u2066\u2069\u200f\u061c", "\u200b\u200c\u200d\u2060\ufeff\u00ad", "e\u0301", "\u0301"),
    *("a" + "\u0336" * 50, "\u0e33\u0e49", "\u1112\u1161\u11ab", "\u3164\uffa0\u2800\ufffc", "👩\u200d👩\u200d👧"),
    *("❤\ufe0f", "שלום", " العربية", "\u0915\u0940", "\ud7a3\u2126\u212b\uf900"),
    *("\ue000\U000f0000\U0010ffff\u0378", "\U000e0041\U000e007f", "\\", "\\x80", "\\u{0301}", "␠␊␀", "[id 5]"),
    *("##a", "a</w>", b"\xed\xa0\x80", b"\xff\xfe\xc0\x80", b"\xe2\x80", b"\x80abc", b"\xf4\x90\x80\x80"),
)
HOSTILE_BYTES = tuple(t if isinstance(t, bytes) else t.encode() for t in HOSTILE)
MULTILINGUAL = (
    'Naïve "café"\r\n\n\n\tconst x = {};   // 北京 東京 🤷🏽\u200d♂️ привет שלום עולם नमस्ते\u00a0\x00\x1b '
    + "".join(map(chr, range(0x20, 0x250)))
)


def in_package(package: str) -> Files:
    return locate(Model(name="minilm", title="minilm", sources=(PackageSource(package=package),)), [], Hub())


@cache
def vocabulary_in(folder: Path) -> ModelVocabulary:
    return load_vocabulary(in_folder(folder), GPT2_SIZE)


@pytest.fixture
def gpt2(gpt2_weights: Path) -> ModelVocabulary:
    return vocabulary_in(gpt2_weights)


@pytest.fixture(scope="module")
def minilm_vocabulary(minilm: str) -> ModelVocabulary:
    return load_vocabulary(in_package(minilm), MINILM_SIZE)


def bytes_of(readable: str) -> bytes:
    """Undo `readable_form`: a second statement of how it is written."""
    pictures = {chr(0x2400 + code): chr(code) for code in range(0x21)} | {"␡": "\x7f"}
    raw = bytearray()
    for part in re.findall(r"\\\\|\\x[0-9A-F]{2}|\\u\{[0-9A-F]{4,6}\}|[^\\]+", readable):
        if part.startswith("\\x"):
            raw += bytes.fromhex(part[2:])
        elif part.startswith("\\u"):
            raw += chr(int(part[3:-1], 16)).encode()
        else:
            raw += b"\\" if part == "\\\\" else "".join(pictures.get(c, c) for c in part).encode()
    return bytes(raw)


def assert_visible(form: str) -> None:
    """Check that everything in a readable form can be seen and stays as it is when a text is normalised."""
    assert not any(unicodedata.category(c)[0] in "CMZ" for c in {*form})
    assert unicodedata.is_normalized("NFC", form)


def byte_level(text: bytes) -> str:
    """Write bytes as GPT-2's tokenizer does, by the definition in its encoder.py."""
    stored = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    codes, n = dict(zip(stored, stored, strict=True)), 0
    for b in range(256):
        if b not in codes:
            codes[b] = 256 + n
            n += 1
    return "".join(chr(codes[b]) for b in text)


def write_tokenizer(folder: Path, model: dict, **parts: object) -> Files:
    empty = dict.fromkeys(("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"))
    content = {"version": "1.0", **empty, "added_tokens": [], "model": model, **parts}
    (folder / "tokenizer.json").write_text(json.dumps(content), "utf-8")
    return in_folder(folder)


def numbered(strings) -> dict[str, int]:
    return {string: i for i, string in enumerate(strings)}


def bpe(strings, merges=(), **more) -> dict:
    return {"type": "BPE", "vocab": numbered(strings), "merges": list(merges), **more}


def added(i: int, content: str, special: bool = True) -> dict:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": i, "content": content, "special": special, **flags}


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def a_vocabulary(*raw_bytes: bytes, marked: bool = False) -> ModelVocabulary:
    tokens = [Token(text, readable_form(text), marked or text.startswith(b" ")) for text in raw_bytes]
    return assemble(dict(enumerate(tokens)), len(tokens))


@pytest.mark.parametrize(
    "raw, shown",
    [
        (b" the\n\n\t\0\x1b\x7f\\n", r"␠the␊␊␉␀␛␡\\n"),
        ("龍".encode() + b"\xe5\xe2\x80\xed\xa0\x80", r"龍\xE5\xE2\x80\xED\xA0\x80"),
        ("\x85e\u0301\u00a0\u200b\u202e".encode(), r"\u{0085}e\u{0301}\u{00A0}\u{200B}\u{202E}"),
        ("␠\U000e0041\u212b".encode(), r"\u{2420}\u{E0041}\u{212B}"),
        ("👩\u200d👧".encode(), r"👩\u{200D}👧"),
        ("éשלום\ufffd".encode(), "éשלום\ufffd"),
        (b"", ""),
    ],
)
def test_readable_form(raw, shown):
    assert readable_form(raw) == shown


def test_every_character_and_any_bytes_can_be_seen_and_read_back():
    everything = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000).encode()
    form = readable_form(everything)
    assert_visible(form)
    assert bytes_of(form) == everything
    rng = np.random.default_rng(0)
    samples = [rng.integers(0, 256, n).astype(np.uint8).tobytes() for n in range(400)]
    cut = [text[:end] + text[end + 1 :] for text in HOSTILE_BYTES for end in range(len(text))]
    for raw in (*samples, *cut, *HOSTILE_BYTES):
        form = readable_form(raw)
        assert_visible(form)
        assert bytes_of(form) == raw


def test_all_of_gpt2(gpt2):
    assert len({*gpt2.readable}) == len(gpt2.raw_bytes) == GPT2_SIZE
    assert [bytes_of(form) for form in gpt2.readable] == [*gpt2.raw_bytes]
    known = {0: "!", 198: "␊", 220: "␠", 262: "␠the", 628: "␊␊", 50256: "<|endoftext|>"}
    assert {i: gpt2.readable[i] for i in known} == known
    assert np.flatnonzero(gpt2.special).tolist() == [50256]
    assert gpt2.marks_space.tolist() == [text.startswith(b" ") for text in gpt2.raw_bytes]
    assert sum(len(text) == 1 for text in gpt2.raw_bytes) == 256


def test_groups_of_gpt2(gpt2):
    of = dict(zip(gpt2.readable, gpt2.groups, strict=True))
    assert {*gpt2.groups} <= {name for name, _ in GROUPS}
    for name, examples in {
        "special": ["<|endoftext|>"],
        "byte": [r"\x80", r"␠\xE2\x80"],
        "control": ["␠", "␊", "␀", r"\u{200B}"],
        "digits": ["7", "␠2015"],
        "letters": ["A", "␠the", "é"],
        "other script": ["の", "␠α"],
        "punctuation": ["!", "␠£", '=\\\\"'],
        "mixed": ["'s"],
    }.items():
        assert [of[token] for token in examples] == [name] * len(examples), name


def test_texts_of_an_encoding_are_the_text(gpt2, gpt2_weights):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(gpt2_weights / "tokenizer.json"))
    for text in (MULTILINGUAL, *(t for t in HOSTILE if isinstance(t, str))):
        assert b"".join(gpt2.raw_bytes[i] for i in tokenizer.encode(text).ids) == text.encode()


def test_all_of_minilm(minilm_vocabulary):
    v = minilm_vocabulary
    assert len({*v.readable}) == len(v.raw_bytes) == MINILM_SIZE
    continued = np.array([form.startswith("##") and len(form) > 2 for form in v.readable])
    assert (v.marks_space == ~continued).all()
    for form, text, inside in zip(v.readable, v.raw_bytes, continued, strict=True):
        assert bytes_of(form.removeprefix("##") if inside else form) == text
    assert {v.readable[i] for i in np.flatnonzero(v.special)} == {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    assert sum(form.startswith("[unused") for form in v.readable) == UNUSED
    assert v.readable[1996] == "the" and v.raw_bytes[2075] == b"ing" and v.readable[2075] == "##ing"


def test_ids_beyond_the_tokenizer(gpt2_weights, gpt2):
    longer = load_vocabulary(in_folder(gpt2_weights), GPT2_SIZE + 47)
    assert longer.readable[:GPT2_SIZE] == gpt2.readable
    assert longer.readable[GPT2_SIZE] == "[id 50257]"
    assert {*longer.groups[GPT2_SIZE:]} == {"unassigned"}
    assert longer.special[GPT2_SIZE:].all() and not longer.marks_space[GPT2_SIZE:].any()
    assert longer.containing(GPT2_SIZE, 5) == ()
    assert len({*longer.readable}) == GPT2_SIZE + 47
    shorter = load_vocabulary(in_folder(gpt2_weights), 300)
    assert shorter.raw_bytes == gpt2.raw_bytes[:300]
    assert shorter.merges.max() < 300


def said_by(v: ModelVocabulary) -> tuple[object, ...]:
    return v.raw_bytes, v.readable, v.groups, v.marks_space.tolist(), v.special.tolist(), v.merges.tolist()


def test_older_files_say_the_same(gpt2_weights, gpt2, minilm, tmp_path):
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / name).write_bytes((gpt2_weights / name).read_bytes())
    old = load_vocabulary(in_folder(tmp_path), GPT2_SIZE)
    assert said_by(old) == said_by(gpt2)

    pieces = in_package(minilm)
    only_text = Files(pieces.origin, lambda name: pieces.fetch(name) if name == "vocab.txt" else None)
    new = load_vocabulary(pieces, MINILM_SIZE)
    old = load_vocabulary(only_text, MINILM_SIZE)
    assert said_by(old) == said_by(new)


def test_special_tokens_are_read_beside_older_files(tmp_path):
    (tmp_path / "vocab.txt").write_text("a\n<weird>\n[PAD]\n##b\nalso\n", "utf-8")
    names = {"bos_token": {"content": "<weird>"}, "additional_special_tokens": ["also", {"content": "absent"}, 3, []]}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(names))
    assert load_vocabulary(in_folder(tmp_path), 5).special.tolist() == [False, True, True, False, True]


def test_gpt1_marks_the_end_of_words(tmp_path):
    strings = ["<unk>", "t", "h", "e", "t</w>", "e</w>", "th", "the", "the</w>", "</w>", "\n</w>"]
    model = bpe(strings, [["t", "h"], ["th", "e"], ["th", "e</w>"]], end_of_word_suffix="</w>", unk_token="<unk>")
    v = load_vocabulary(write_tokenizer(tmp_path, model), len(strings))
    assert v.raw_bytes == (b"<unk>", b"t", b"h", b"e", b"t", b"e", b"th", b"the", b"the", b"</w>", b"\n")
    assert v.readable[7:] == ("the", "the</w>", "</w>", "␊</w>")
    assert v.marks_space.tolist() == [s.endswith("</w>") and s != "</w>" for s in strings]
    assert v.special.tolist() == [True] + [False] * 10
    assert v.containing(1, 9) == (6, 7, 8)
    assert v.containing(5, 9) == (8,)
    assert v.pair_group(8, 7) == "leading space"

    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.json").write_text(json.dumps(numbered(strings)))
    (tmp_path / "merges.txt").write_text("#version: 0.2\nt h\nth e\nth e</w>\n")
    assert said_by(load_vocabulary(in_folder(tmp_path), len(strings))) == said_by(v)


SENTENCE_PIECES = ["<unk>", "<s>", *(f"<0x{b:02X}>" for b in range(256)), "▁", "A", "▁the", "the", "▁▁", "\n", "a▁b"]


@pytest.mark.parametrize("kind", ["BPE", "Unigram"])
def test_sentencepiece(kind, tmp_path):
    model = bpe(SENTENCE_PIECES, byte_fallback=True, unk_token="<unk>")
    if kind == "Unigram":
        scores = [[piece, -float(i)] for i, piece in enumerate(SENTENCE_PIECES)]
        model = {"type": kind, "unk_id": 0, "vocab": scores, "byte_fallback": True}
    specials = [added(0, "<unk>"), added(1, "<s>")]
    v = load_vocabulary(write_tokenizer(tmp_path, model, added_tokens=specials), len(SENTENCE_PIECES))
    assert v.raw_bytes[258:] == (b" ", b"A", b" the", b"the", b"  ", b"\n", b"a b")
    assert v.readable[258:] == ("␠", "A", "␠the", "the", "␠␠", "␊", "a␠b")
    assert v.marks_space[258:].tolist() == [True, False, True, False, True, False, False]
    assert v.special.tolist() == [True, True] + [False] * 263
    assert [v.raw_bytes[i][0] for i in range(2, 258)] == [*range(256)]
    assert (v.readable[2 + 0x0A], v.readable[2 + 0x41], v.readable[2 + 0xE2]) == (r"\x0A", r"\x41", r"\xE2")
    assert {*v.groups[2:258]} == {"byte"}
    assert len({*v.readable}) == len(SENTENCE_PIECES)
    assert v.pair_group(260, 261) == "leading space"
    assert v.pair_group(2 + 0x41, 259) == "byte or unprintable"


def test_clip_marks_ends_of_words_and_is_byte_level(tmp_path):
    strings = [byte_level("é".encode()), byte_level("é".encode()) + "</w>", "<|endoftext|>"]
    model = bpe(strings, end_of_word_suffix="</w>")
    files = write_tokenizer(tmp_path, model, pre_tokenizer=BYTE_LEVEL, added_tokens=[added(2, "<|endoftext|>")])
    v = load_vocabulary(files, 3)
    assert v.raw_bytes == ("é".encode(), "é".encode(), b"<|endoftext|>")
    assert v.readable == ("é", "é</w>", "<|endoftext|>")
    assert v.marks_space.tolist() == [False, True, False]


def test_hostile_tokens(tmp_path):
    strings = [byte_level(text) for text in HOSTILE_BYTES]
    files = write_tokenizer(tmp_path, bpe(strings), pre_tokenizer=BYTE_LEVEL, decoder=BYTE_LEVEL)
    v = load_vocabulary(files, len(strings))
    assert v.raw_bytes == HOSTILE_BYTES
    assert [bytes_of(form) for form in v.readable] == [*HOSTILE_BYTES]
    assert len({*v.readable}) == len(strings)
    for i in range(len(strings)):
        assert all(v.pair_group(i, j) in PAIR_GROUPS for j in range(len(strings)))


def test_hostile_word_pieces(tmp_path):
    words = [t for t in HOSTILE if isinstance(t, str)]
    strings = [*words, *(f"##{w}" for w in words if f"##{w}" not in words), "##", ""]
    model = {"type": "WordPiece", "vocab": numbered(strings), "unk_token": "[UNK]", "max_input_chars_per_word": 9}
    v = load_vocabulary(write_tokenizer(tmp_path, {**model, "continuing_subword_prefix": "##"}), len(strings))
    assert [bytes_of(form) for form in v.readable[:-1]] == [s.encode() for s in strings[:-1]]
    assert v.readable[-1] == f"[id {len(strings) - 1}]"
    assert len({*v.readable}) == len(strings)


def test_tokens_of_the_same_bytes_are_distinguished(tmp_path):
    more = [added(2, " the", special=False), added(3, "é")]
    model = bpe([byte_level(b" the"), byte_level("é".encode())])
    v = load_vocabulary(write_tokenizer(tmp_path, model, decoder=BYTE_LEVEL, added_tokens=more), 5)
    assert v.raw_bytes == (b" the", "é".encode(), b" the", "é".encode(), b"")
    assert v.readable == ("␠the", "é", "[id 2] ␠the", "[id 3] é", "[id 4]")
    assert v.special.tolist() == [False, False, False, True, True]


def test_containing_by_merges(gpt2):
    rng = np.random.default_rng(1)
    texts = gpt2.raw_bytes
    for i in [*range(10), *rng.choice(GPT2_SIZE, 40, replace=False).tolist()]:
        longer = gpt2.containing(i, 20)
        assert [*longer] == sorted(longer)
        assert all(texts[i] in texts[j] and len(texts[j]) > len(texts[i]) for j in longer)
    of = {form: i for i, form in enumerate(gpt2.readable)}
    gold = gpt2.containing(of["GoldMagikarp"], 5)
    assert [gpt2.readable[i] for i in gold] == ["␠SolidGoldMagikarp"]
    assert gpt2.containing(of["␠SolidGoldMagikarp"], 5) == ()
    assert len(gpt2.containing(of["e"], 7)) == 7
    assert {*gpt2.containing(of["q"], GPT2_SIZE)} >= {i for i, t in enumerate(texts) if b"q" in t and t != b"q"}


def test_containing_by_spelling_and_pairs_of_minilm(minilm_vocabulary):
    v = minilm_vocabulary
    of = {form: i for i, form in enumerate(v.readable)}
    assert {v.readable[i] for i in v.containing(of["magic"], 9)} == {"magical", "magician"}
    assert v.containing(of["magic"], 1) == (min(of["magical"], of["magician"]),)
    assert v.containing(of["[PAD]"], 9) == ()
    pairs = {("##s", "s"): "leading space", ("extensions", "extension"): "plural", ("[MASK]", "bert"): "other"}
    assert {pair: v.pair_group(of[pair[0]], of[pair[1]]) for pair in pairs} == pairs


@pytest.mark.parametrize(
    "u, v, group",
    [
        (b" the", b"the", "leading space"),
        (b" \x80", b"\x80", "leading space"),
        (b"\x80", b"cat", "byte or unprintable"),
        (b"cat", b"\n", "byte or unprintable"),
        ("\u200b".encode(), b"cat", "byte or unprintable"),
        (b" cats", b" cat", "plural"),
        (b" boxes", b"box", "plural"),
        (b"1s", b"1", "other"),
        (b" CAT", b"cat", "case"),
        (b"STRASSE", "straße".encode(), "case"),
        (b" 1999", b"2000", "digits"),
        (b"1", b"a", "other"),
        (b" cat", b" dog", "other"),
        (b" ", b"  ", "leading space"),
    ],
)
def test_pair_groups(u, v, group):
    assert a_vocabulary(u, v).pair_group(0, 1) == group


def test_no_tokenizer(tmp_path):
    assert load_vocabulary(in_folder(tmp_path), 10) is None
    (tmp_path / "vocab.json").write_text("{}")
    assert load_vocabulary(in_folder(tmp_path), 10) is None


def tokenizer_of(model: dict[str, object]) -> dict[str, bytes]:
    return {"tokenizer.json": json.dumps({"version": "1.0", "model": model}).encode()}


@pytest.mark.parametrize(
    "files",
    [
        *({"tokenizer.json": content} for content in (b"", b"{}", b"[1, 2", b"\xff\xfe", b"[" * 100_000)),
        tokenizer_of({"type": "Novel"}),
        tokenizer_of(bpe(["a"], [["a", "b"]])),
        tokenizer_of({**bpe([]), "vocab": {"a": -1}}),
        {"vocab.json": b"[]", "merges.txt": b""},
        {"vocab.json": b'{"a": 0}', "merges.txt": b"a b c\n"},
        {"vocab.txt": b"\xff\n"},
        *({"vocab.txt": b"[UNK]\na\n", "special_tokens_map.json": content} for content in (b"[]", b"{")),
    ],
)
def test_damaged_files_are_refused_in_a_sentence(files, tmp_path):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as error:
        load_vocabulary(in_folder(tmp_path), 10)
    assert re.search(r"(tokenizer|vocab|special).*\.$", str(error.value)) and "\n" not in str(error.value)
