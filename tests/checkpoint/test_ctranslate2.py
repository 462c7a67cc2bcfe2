"""A model.bin of CTranslate2 gives the same Whisper as its original, or a sentence that says why not."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from generators.base.errors import InputError
from generators.checkpoint.checkpoint import Checkpoint, open_checkpoint
from generators.checkpoint.registry import Registry
from generators.checkpoint.sources import in_folder, locate
from generators.checkpoint.typed import find_model
from tests.checkpoint import other_software as other
from tests.checkpoints import write_json

HALVES = ("encoder", "decoder")


def opened(folder: Path, half: str) -> Checkpoint:
    return open_checkpoint(in_folder(folder, stack=half))


@pytest.mark.parametrize("half", HALVES)
def test_whisper_is_its_original_in_both_halves(tmp_path, half):
    write_json(tmp_path / "config.json", other.WHISPER_CONFIG)
    save_file(other.whisper_tensors(), tmp_path / "model.safetensors")
    other.write_ctranslate2(tmp_path / "ct2" / "model.bin")
    write_json(tmp_path / "ct2" / "config.json", {"alignment_heads": [[1, 1]]})  # CTranslate2's own
    wanted, read = opened(tmp_path, half), opened(tmp_path / "ct2", half)
    assert set(read) == set(wanted)
    for role in wanted:
        np.testing.assert_array_equal(read[role], wanted[role], err_msg=role)
        assert read.missing_for(role) == []
    for field in ("n_layer", "n_head", "n_ctx", "vocab_size", "d_model", "tied", "causal", "positions"):
        assert getattr(read.architecture, field) == getattr(wanted.architecture, field)
    record = read.record("blocks.1.attn.k")
    stored = other.whisper_in_ct2(other.whisper_tensors())[record.name]
    assert record.name == f"{half}/layer_1/self_attention/linear_0/weight"
    assert record.sha256 == hashlib.sha256(stored.tobytes()).hexdigest()


def test_an_output_matrix_of_its_own_is_the_unembedding(tmp_path):
    output = {"decoder/projection/weight": np.ones((30, 16), np.float32)}
    other.write_ctranslate2(tmp_path / "model.bin", other.whisper_in_ct2(other.whisper_tensors()) | output, {})
    read = opened(tmp_path, "decoder")
    assert not read.architecture.tied
    assert (read["unembedding"] == 1).all()


def test_the_file_is_named_as_its_folder_and_its_halves_by_their_endings(tmp_path):
    other.write_ctranslate2(tmp_path / "tiny" / "model.bin")
    model = find_model(f"{tmp_path}/tiny/model.bin--decoder", Registry(models=()))
    assert model.name == "tiny--decoder"
    assert open_checkpoint(locate(model, (), None)).architecture.n_ctx == 9
    with pytest.raises(InputError, match="name one by its ending, --encoder or --decoder"):
        open_checkpoint(in_folder(tmp_path / "tiny"))


WHISPER = other.whisper_in_ct2(other.whisper_tensors())
GAMMA, HEADS = "decoder/layer_0/ffn/layer_norm/gamma", "decoder/num_heads"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"spec": "TransformerSpec"}, "of the kind 'TransformerSpec', and the atlas reads WhisperSpec"),
        ({"version": 5}, "is of version 5 of CTranslate2's format, and the atlas reads version 6"),
        ({"tensors": {**WHISPER, f"{GAMMA}\0": WHISPER[GAMMA]}}, "it holds .*gamma twice"),
        *(
            ({"aliases": alias}, "stands for another")
            for alias in ({GAMMA: GAMMA.replace("0", "1")}, {"x": "nowhere"})
        ),
        *(({"tensors": WHISPER | {HEADS: np.float32(n)}}, f"bin gives {n} as") for n in (4.5, np.nan, np.inf)),
        ({"tensors": {k: v.astype(np.int8) for k, v in WHISPER.items()}}, "is I8; the atlas reads F64, F32, F16"),
    ],
    ids=str,
)
def test_what_is_not_read_says_why(tmp_path, changed, sentence):
    other.write_ctranslate2(tmp_path / "model.bin", **changed)
    with pytest.raises(InputError, match=sentence):
        opened(tmp_path, "decoder")["token_embedding"]


def test_damage_is_a_sentence(tmp_path):
    path = tmp_path / "model.bin"
    other.write_ctranslate2(path)
    content = path.read_bytes()
    for length in (len(content) - 2, len(content) // 2, 40, 24):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match="isn't a whole model of CTranslate2"):
            opened(tmp_path, "decoder")
