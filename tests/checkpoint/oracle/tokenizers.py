"""Tokenizers as people have them: ids are called what transformers calls them, or have no names."""

import io
import json
import re
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from generators.base import notices
from generators.checkpoint.sources import in_folder
from generators.tokens.own_tokenizer import own_tokenizer, strings
from generators.tokens.tokenizer_files import load_vocabulary

ROWS = 320


def byte_pairs() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    text = ["the cat sat on the mat and the dog ran to the house of the man who had the hat " * 20]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"], show_progress=False
    )
    made.train_from_iterator(text, trainer)
    return made


def _put(folder: Path, **files: Any) -> None:
    for name, content in files.items():
        stem, _, ending = name.rpartition("_")
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{stem}.{ending}").write_text(text, "utf-8")


def of_tokenizers(folder: Path) -> None:
    byte_pairs().save(str(folder / "tokenizer.json"))
    _put(folder, tokenizer_config_json={"tokenizer_class": "PreTrainedTokenizerFast"})


def with_decoder(folder: Path) -> None:
    made = byte_pairs()
    made.save(str(folder / "tokenizer.json"))
    size = made.get_vocab_size()
    more = {str(size + i): {"content": f"<more{i}>", "special": i == 0} for i in range(2)}
    _put(folder, tokenizer_config_json={"tokenizer_class": "PreTrainedTokenizerFast", "added_tokens_decoder": more})


def of_older_files(folder: Path) -> None:
    byte_pairs().model.save(str(folder))
    _put(folder, tokenizer_config_json={"tokenizer_class": "GPT2Tokenizer"})


def with_added_tokens(folder: Path) -> None:
    made = byte_pairs()
    of_older_files(folder)
    size = made.get_vocab_size()
    _put(folder, added_tokens_json={"<|im_start|>": size, "<|im_end|>": size + 1, "<tool>": size + 2})
    _put(folder, special_tokens_map_json={"additional_special_tokens": ["<|im_start|>"]})


LETTERS = "abcdefghijklmnop"
PIECES = "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{c}" for c in LETTERS[:12])])
COUNTS = "\n".join(f"word{i} {1000 - i}" for i in range(200))


def of_sentencepiece(folder: Path) -> None:
    import sentencepiece

    model = io.BytesIO()
    text = ["the cat sat on the mat and the dog ran to the house of the man who had the hat"] * 40
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text), model_writer=model, vocab_size=60, hard_vocab_limit=False, minloglevel=2
    )
    (folder / "tokenizer.model").write_bytes(model.getvalue())


TOKENIZERS: dict[str, Callable[[Path], None]] = {
    "tokenizer.json": of_tokenizers,
    "tokens added by its config": with_decoder,
    "vocab.json and merges.txt": of_older_files,
    "added_tokens.json": with_added_tokens,
    "WordPiece": partial(_put, vocab_txt=PIECES, tokenizer_config_json={"tokenizer_class": "BertTokenizer"}),
    "words with counts": partial(_put, vocab_txt=COUNTS, bpe_codes="a b 12\n"),
    "a class of its own": partial(
        _put, vocab_txt=PIECES, tokenizer_config_json={"tokenizer_class": "BertJapaneseTokenizer"}
    ),
    "SentencePiece": of_sentencepiece,
}


def outcome_of_tokens(config: Any, kind: str) -> str:
    """Return "same" where 100 ids are called what transformers calls them, "no names", or what is wrong."""
    with tempfile.TemporaryDirectory() as name, notices.heard_by(lambda _: None):
        folder = Path(name)
        config.save_pretrained(folder)
        TOKENIZERS[kind](folder)
        files = in_folder(folder)
        vocabulary, own = load_vocabulary(files, ROWS), own_tokenizer(files)
        if vocabulary is None:
            return "no names"
        if own is None:
            return "same"  # transformers makes none of these files
        ids = list(range(0, ROWS, 3))
        for i, string in zip(ids, strings(own, ids), strict=True):
            if string is None and vocabulary.groups[i] == "unassigned":
                continue
            if string is None or not _is_called(vocabulary.raw_bytes[i], string, own):
                return f"silently different: {i} is {string!r}"
    return "same"


def _is_called(text: bytes, string: str, own: Any) -> bool:
    spelled = {string, string.removeprefix("##"), string.replace("▁", " ")}
    if (byte := re.fullmatch(r"<0x([0-9A-F]{2})>", string)) is not None:
        return text in (bytes.fromhex(byte[1]), string.encode())
    decoded = own.backend_tokenizer.decoder.decode([string]) if own.is_fast and own.backend_tokenizer.decoder else ""
    return text in {s.encode() for s in spelled} or text.decode("utf-8", "replace") == decoded
