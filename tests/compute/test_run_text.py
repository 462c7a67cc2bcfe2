"""No model is run without a tokenizer, nor on text that its tokenizer doesn't know."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import transformers

from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.families import families
from generators.checkpoint.sources import Files, Hub, Places, in_folder, locate
from generators.compute import run_text, running
from generators.compute.plan import open_model, plan
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from generators.runner import CannotRunError, texts
from generators.runner import run as runs
from generators.runner.own_samples import NAME as OWN_SAMPLES
from generators.runner.texts import HELD_OUT, encode, read_language_reference
from tests.checkpoint.oracle.cases import CASES, OracleCase
from tests.checkpoint.oracle.model import build
from tests.checkpoints import SMALL, write_checkpoint
from tests.compute.harness import at_hub, opened_in
from tests.runner.models import KINDS, write_tokenizer

SEE = {family.name for family in families() if "token_embedding" in family.without}  # images
TYPES = {case.type: case for case in reversed(CASES) if case.stack is None and case.family not in SEE}
BESIDE = {"normalizer.json", "entity_vocab.json", "tokenizer_config.json"}  # names of files that hold no vocabulary
LETTERS = [chr(code) for code in range(33, 127)]


def write_pairs(folder: Path, tokens: Iterable[str] = (*LETTERS, "Ġ", "Ċ")) -> None:
    """Write a tokenizer of single characters as GPT-2's older files have it."""
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")


def write_words(folder: Path, tokens: list[str]) -> None:
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *tokens]))


@pytest.mark.parametrize("case", TYPES.values(), ids=lambda case: case.type)
def test_without_a_tokenizer_no_run_is_made(case, tmp_path):
    build(case).save_pretrained(tmp_path)
    model = opened_in(tmp_path)
    architecture = model.checkpoint.architecture
    asked = [f for f in FINDINGS if RUN in f.needs and (f.unless is None or f.unless(architecture) is None)]
    planned = {finding.name: plan(finding, model) for finding in asked}
    assert {found.reason for found in planned.values()} == {run_text.NO_TOKENIZER}
    assert {found.key for found in planned.values()} == {None}


def test_the_names_are_those_that_transformers_looks_for():
    sources = (Path(transformers.__file__).parent / "models").glob("*/tokenization_*.py")
    fast = [text for path in sources if "(TokenizersBackend)" in (text := path.read_text("utf-8"))]
    listed = re.findall(r"VOCAB_FILES_NAMES = \{(.*?)\}", "".join(fast), re.DOTALL)
    names = {name for each in listed for name in re.findall(r': "([^"]+)"', each)}
    assert len(fast) > 20
    assert names - BESIDE <= {run_text.TOKENIZER, *run_text.OLDER}
    assert {"spiece.model", "spm.model", "sentencepiece.bpe.model", "tokenizer.model"} <= names


@pytest.mark.parametrize(
    ("there", "read"),
    [
        (("tokenizer.json", "vocab.json", "merges.txt"), {"tokenizer.json"}),
        (("vocab.json", "merges.txt", "added_tokens.json"), {"vocab.json", "merges.txt", "added_tokens.json"}),
        (("vocab.json",), set()),
        (("merges.txt", "tokenizer_config.json", "special_tokens_map.json"), set()),
        (("vocab.txt",), {"vocab.txt"}),
        (("spm.model",), {"spm.model"}),
    ],
)
def test_a_tokenizer_is_a_whole_vocabulary(tmp_path, there, read):
    for name in there:
        (tmp_path / name).write_text("{}")
    assert set(run_text.tokenizer_files(in_folder(tmp_path))) == read


def test_older_files_are_in_the_key_where_they_are_read_and_only_there(tmp_path):
    write_checkpoint(tmp_path)
    write_pairs(tmp_path)
    older = opened_in(tmp_path).depends_on(RUN)["files"]
    assert {"vocab.json", "merges.txt"} <= set(older)
    write_tokenizer(tmp_path, KINDS["gpt2"])
    newer, ids = opened_in(tmp_path).depends_on(RUN), encode(tmp_path, "abc")
    (tmp_path / "vocab.json").unlink()
    (tmp_path / "merges.txt").write_text("other")
    assert opened_in(tmp_path).depends_on(RUN) == newer
    assert encode(tmp_path, "abc") == ids


def refused(folder: Path) -> str:
    with pytest.raises(CannotRunError) as refusal:
        _ = opened_in(folder).run
    return str(refusal.value)


def test_text_that_is_mostly_unknown_or_of_few_tokens_is_refused(tmp_path):
    words = sorted(set(re.findall(r"\b[a-z]{2,}\b", read_language_reference())))
    write_words(write_checkpoint(tmp_path / "bert", "bert"), words[::10])
    assert re.search(r"\b[5-9]\d% of the tokens of the text are unknown", refused(tmp_path / "bert"))
    write_pairs(write_checkpoint(tmp_path / "gpt2"), LETTERS[:40])
    assert "makes the text into only" in refused(tmp_path / "gpt2")


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_files_of_another_tokenizer_are_no_tokenizer(tmp_path, family):
    """Transformers looks for the files of the type's own tokenizer, and makes an empty one without them."""
    write_checkpoint(tmp_path, family)
    if family == "bert":
        write_pairs(tmp_path)
    else:
        write_words(tmp_path, LETTERS)
    assert re.search("unknown to its tokenizer|different tokens", refused(tmp_path))


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_text_that_is_known_is_not(tmp_path, family):
    write_checkpoint(tmp_path, family)
    continued = [f"##{letter}" for letter in LETTERS]
    if family == "bert":
        write_words(tmp_path, [*LETTERS, *continued])
    else:
        write_pairs(tmp_path)
    assert len(run_text.checked_text(tmp_path, 10_000).ids) > 10_000


def write_array(save, content) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with path.open("wb") as file:  # whatever its name ends with
            save(file, content)

    return write


def npy(header: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


BEGINS = "{'descr': '<u2', 'fortran_order': False, 'shape': "
DAMAGED = {
    "objects": write_array(np.save, np.array([{}], object)),
    "several": write_array(np.savez, np.arange(4, dtype=np.uint16)),
    "empty": lambda path: path.write_bytes(b""),
    "too many": lambda path: path.write_bytes(npy(BEGINS + "(99999999999999,)}")),
    "deep": lambda path: path.write_bytes(npy(BEGINS + "(" * 900)),
}


@pytest.mark.parametrize("write", DAMAGED.values(), ids=DAMAGED)
def test_a_carried_text_that_is_no_array_is_a_sentence(tmp_path, write):
    write_checkpoint(tmp_path)
    write(tmp_path / HELD_OUT)
    assert re.fullmatch(rf"The model can't be run: {HELD_OUT} can't be read \(.+\)\.", refused(tmp_path))


@pytest.mark.parametrize(("around", "said"), [(2**31 + 5, "the id 2147483653"), (300, "beyond the vocabulary of")])
def test_tokens_around_the_text_that_the_model_lacks_are_a_sentence(tmp_path, around, said):
    write_checkpoint(tmp_path)
    write_tokenizer(tmp_path, KINDS["gpt2"])
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text())
    as_it_is = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    content["added_tokens"].append({"id": around, "content": "<begin>", "special": True, **as_it_is})
    text, other = ({"Sequence": {"id": name, "type_id": i}} for i, name in enumerate("AB"))
    content["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<begin>", "type_id": 0}}, text],
        "pair": [text, other],
        "special_tokens": {"<begin>": {"id": "<begin>", "ids": [around], "tokens": ["<begin>"]}},
    }
    path.write_text(json.dumps(content))
    assert re.search(said, refused(tmp_path))


def test_the_text_is_tokenized_once(tmp_path, monkeypatch):
    sizes = replace(SMALL, vocab_size=len(LETTERS) + 2)
    write_pairs(write_checkpoint(tmp_path, "gpt2", sizes=sizes, config={"bos_token_id": 0}))
    opened, real = [], texts._tokenizer
    monkeypatch.setattr(texts, "_tokenizer", lambda folder: opened.append(folder) or real(folder))
    read, choose = [], runs.known_text
    monkeypatch.setattr(runs, "known_text", lambda run, text: read.append(text) or choose(run, text))
    run = opened_in(tmp_path).run
    assert run.text is run.text
    assert run.text.name == OWN_SAMPLES, "random weights can't read it, so they write what they are run on"
    [shipped] = read
    assert len(shipped.ids) > 10_000
    assert len(opened) == 2  # for the text, and for a letter that no vocabulary holds
    assert run.encode("abc") == run.encode("abc") == encode(tmp_path, "abc")
    assert len(opened) == 4  # once by the model, once by the test


def files_at_hub() -> Files:
    return locate(at_hub(), (), Hub())


def test_a_tokenizer_is_known_by_its_name_and_not_fetched_for_it(fake):
    folder = write_checkpoint(fake.repository("owner/tiny"))
    write_pairs(folder)
    files = files_at_hub()
    fake.asked.clear()
    assert set(run_text.tokenizer_files(files)) == {"vocab.json", "merges.txt"}
    assert fake.asked == []


def test_a_tokenizer_that_cannot_be_downloaded_is_not_taken_for_an_empty_one(fake):
    write_pairs(write_checkpoint(fake.repository("owner/tiny")))
    files = files_at_hub()
    (fake.repository("owner/tiny") / "merges.txt").unlink()
    with pytest.raises(CannotRunError, match=r"merges\.txt, .*couldn't be downloaded") as refusal:
        running.opened_model(files, open_checkpoint(files), "cpu")
    assert running.may_pass(str(refusal.value))


def test_a_sentencepiece_model_is_fetched_and_used(fake, tmp_path):
    (tmp_path / "text").write_text(read_language_reference())
    sentencepiece.SentencePieceTrainer.train(
        input=str(tmp_path / "text"), model_prefix=str(tmp_path / "tokenizer"), vocab_size=300, model_type="bpe"
    )
    folder = fake.repository("owner/tiny")
    build(OracleCase("llama", config={"vocab_size": 300})).save_pretrained(folder)
    (folder / "tokenizer.model").write_bytes((tmp_path / "tokenizer.model").read_bytes())
    assert run_text.libraries(files_at_hub()) == ("sentencepiece", "protobuf")
    model = open_model(at_hub(), Places(hub=Hub()))
    assert model.why_no_run is None
    assert "tokenizer.model" in model.depends_on(RUN)["files"]
    assert len(set(model.run.windows(40, 0).ids.ravel())) > run_text.FEWEST_TOKENS
