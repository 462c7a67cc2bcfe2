"""The atlas's own model: its corpus, that its files belong together, its card, and what the atlas finds in it.

How it is trained is tested in test_training.py, which needs PyTorch.
"""

import hashlib
import json
import lzma
import math
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from generators.findings import FINDINGS
from models.training import corpus
from models.training.stdlib_gpt2.card import FOLDER, card_of

TOKENIZER = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
# Other versions of the library, counted with this tokenizer, correlate at 0.88 to 0.90; other orders at about 0.
LIKE_ANOTHER_LIBRARY = 0.8
MOST_BYTES = 6_000_000  # of its files in git
FILES = {
    "abc.py": "import os\nprint('abc')\n",
    "ast.py": "def parse(source):\n    return source\n",
    "json/__init__.py": "from .decoder import loads\n",
    "json/decoder.py": "# naïve\nloads = eval\n",
    "test/test_abc.py": "zyzzyva = zyzzyva\n" * 20,
    "encodings/ascii.py": "codec = 'ascii'\n",
    "_sysconfigdata_linux.py": "prefix = '/here'\n",
    "config-3.11/python-config.py": "prefix = '/here'\n",
    "site-packages/other.py": "other = True\n",
    "__pycache__/abc.py": "cached = True\n",
    "notes.txt": "no module",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    return folder


@pytest.fixture
def library(tmp_path) -> Path:
    write(tmp_path, FILES)
    (tmp_path / "test" / "latin.py").write_bytes(b"# \xe9\n")  # not UTF-8
    return tmp_path


def test_the_tokenizer_sees_what_the_model_does_not(library):
    found = corpus.read_library(library)
    assert set(found.trained) | set(found.held_out) == {"abc.py", "ast.py", "json/__init__.py", "json/decoder.py"}
    assert set(found.tokenizer_only) == {"test/test_abc.py", "encodings/ascii.py"}
    assert list(found.everything) == sorted(name for name in FILES if name.startswith(("a", "j", "t", "e")))
    assert all(text == FILES[name] for name, text in found.everything.items())


def test_about_one_file_in_25_is_held_out_by_its_path_alone(tmp_path):
    write(tmp_path, {f"m{i}.py": f"{i}\n" for i in range(1000)} | {"test/a.py": "1\n"})
    held_out = set(corpus.read_library(tmp_path).held_out)
    assert 20 <= len(held_out) <= 60
    for name in sorted(held_out)[:10]:
        (tmp_path / name).write_text("changed\n")
    assert set(corpus.read_library(tmp_path).held_out) == held_out


def test_the_digest_is_of_paths_and_texts(library):
    before = corpus.read_library(library).sha256
    (library / "notes.txt").write_text("changed")
    (library / "site-packages" / "other.py").write_text("changed")
    assert corpus.read_library(library).sha256 == before
    (library / "ast.py").rename(library / "asts.py")
    renamed = corpus.read_library(library).sha256
    (library / "asts.py").write_text("changed")
    assert len({before, renamed, corpus.read_library(library).sha256}) == 3


@pytest.mark.parametrize("only", ["abc.py", "test/test_abc.py", "notes.txt"])
def test_a_library_without_modules_or_tests_is_refused(tmp_path, only):
    write(tmp_path, {only: "x = 1\n"})
    with pytest.raises(FileNotFoundError, match=r"is not a whole standard library: .* test/ "):
        corpus.read_library(tmp_path)


def test_tokens_of_a_little_library_are_counted_and_a_marker_in_a_text_ends_nothing(library):
    found = corpus.read_library(library)
    tokenizer = corpus.train_tokenizer(found.everything)
    assert tokenizer.token_to_id(corpus.END_OF_TEXT) == 0
    ids = corpus.encode(found.trained, tokenizer)
    counts = corpus.token_counts(ids)
    assert (counts.dtype, counts.shape) == (np.int64, (corpus.N_VOCAB,))
    assert (counts.sum(), counts[0]) == (len(ids), len(found.trained))
    parts = "".join(tokenizer.decode([i], skip_special_tokens=False) for i in ids[ids != 0] if i > 256)
    assert "zyzzyva" not in parts
    whole = tokenizer.decode(ids.tolist(), skip_special_tokens=False)
    assert whole == "".join(text + corpus.END_OF_TEXT for text in found.trained.values())
    frequent = tokenizer.encode("zyzzyva").ids
    assert max(frequent) > 256  # the tokenizer learned it where the model doesn't look
    assert counts[max(frequent)] == 0
    ids = corpus.encode({"a.py": f"x = '{corpus.END_OF_TEXT}'\n", "b.py": "y\n"}, tokenizer)
    assert np.flatnonzero(ids == 0).tolist() == [len(ids) - 1 - len(tokenizer.encode("y\n").ids) - 1, len(ids) - 1]


def test_xz_is_given_what_it_knows():
    text = "".join(chr(c) for c in np.random.default_rng(0).integers(33, 127, 4000))
    alone, packed = corpus.xz_bits_per_byte(text), lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    assert alone == pytest.approx(8 * len(packed) / 4000, rel=0.01)
    assert corpus.xz_bits_per_byte(text, "other " + text) < 0.1 * alone


@pytest.fixture(scope="module")
def record() -> dict:
    return json.loads((FOLDER / "training.json").read_text())


@pytest.fixture(scope="module")
def counts() -> np.ndarray:
    return np.load(FOLDER / "token_counts.npy", allow_pickle=False)


def test_the_files_belong_together(record, counts):
    config = json.loads((FOLDER / "config.json").read_text())
    assert counts.dtype == np.int64
    assert counts.shape == (config["vocab_size"],) == (record["vocab_size"],) == (TOKENIZER.get_vocab_size(),)
    assert hashlib.sha256(counts.tobytes()).hexdigest() == record["token_counts_sha256"]
    assert counts.sum() == record["corpus"]["trained_tokens"]
    assert (counts == 0).sum() == record["never_seen_tokens"]
    sizes = {"n_layer": "n_layer", "n_head": "n_head", "d_model": "n_embd", "n_ctx": "n_positions"}
    assert {key: record["recipe"][key] for key in sizes} == {key: config[name] for key, name in sizes.items()}
    assert config["activation_function"] == "gelu_new"
    assert corpus.END_OF_TEXT in json.loads((FOLDER / "tokenizer_config.json").read_text()).values()


def test_it_was_trained_as_the_recipe_says_and_measured(record):
    assert record["losses"][-1][0] == record["held_out_losses"][-1][0] == record["recipe"]["steps"]
    loss = record["held_out_loss"]
    assert record["held_out_losses"][-1][1] == pytest.approx(loss, abs=0.01)  # float16 costs little
    bits = loss * (record["corpus"]["held_out_tokens"] - 1) / math.log(2)
    assert record["held_out_bits_per_byte"] == pytest.approx(bits / record["corpus"]["held_out_bytes"])
    assert 0 < record["xz_bits_per_byte_after_training_text"] < record["xz_bits_per_byte"] < 8


def test_the_counts_are_those_of_the_library(record, counts):
    """Exactly, where this Python's library is the one it was; elsewhere, as nearly as another version can say."""
    folder = Path(sysconfig.get_path("stdlib"))
    try:
        library = corpus.read_library(folder)
    except FileNotFoundError:  # an installation without test/
        library = None
    if library is not None and library.sha256 == record["corpus"]["sha256"]:
        assert {part: len(getattr(library, part)) for part in record["corpus"]["files"]} == record["corpus"]["files"]
        assert sorted(library.held_out) == record["corpus"]["held_out_files"]
        assert corpus.token_counts(corpus.encode(library.trained, TOKENIZER)).tolist() == counts.tolist()
        return
    modules = {path.name: path.read_text("utf-8") for path in sorted(folder.glob("[a-z]*.py"))}
    here = np.log1p(corpus.token_counts(corpus.encode(modules, TOKENIZER)))
    assert np.corrcoef(here, np.log1p(counts))[0, 1] >= LIKE_ANOTHER_LIBRARY


def test_nothing_in_a_continuation_ends_its_block(record):
    assert "````python\n" in card_of({**record, "continuation": "x = '```'\n"})


def test_every_finding_is_computed_but_that_on_rotations_from_exact_counts(stdlib_gpt2, record):
    assert set(stdlib_gpt2.findings) == {finding.name for finding in FINDINGS}
    others = {name: found.status for name, found in stdlib_gpt2.findings.items() if found.status != "computed"}
    assert others == dict.fromkeys(("rotary_use", "rotation_check"), "not_applicable")
    first = stdlib_gpt2.findings["frequency"].metrics["sources"][0]
    assert (first["source"], first["coverage"], first["proxy"]) == ("counts", 1.0, False)
    outliers = stdlib_gpt2.findings["outliers"]
    known = outliers.metrics["known_unused"]
    assert known["count"] == record["never_seen_tokens"] == len(outliers.tables["known_unused"].rows)
    assert known["in_clump"] >= 0.95 * known["count"]


@pytest.mark.parametrize("folder", [FOLDER, FOLDER.parent / "stdlib-family"])
def test_git_takes_all_of_its_files(folder):
    paths = [path for path in folder.rglob("*") if path.is_file()]
    assert folder != FOLDER or sum(path.stat().st_size for path in paths) <= MOST_BYTES
    command = ["git", "check-ignore", "--no-index", *map(str, paths)]
    assert subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout == ""
