"""A GGUF file gives the same model as its original within rounding, or a sentence that says why not."""

import hashlib
from pathlib import Path

import gguf
import numpy as np
import pytest

from generators.base.errors import InputError
from generators.checkpoint.checkpoint import Checkpoint
from generators.checkpoint.registry import Registry
from generators.checkpoint.sources import Places, files, in_folder
from generators.checkpoint.sources.formats import check_layout
from generators.checkpoint.sources.gguf_files import IN_BLOCKS, Gguf
from generators.checkpoint.sources.gguf_models import of_gguf
from generators.checkpoint.typed import find_model
from generators.compute.plan import open_model, prepare
from tests.checkpoint import other_software as other
from tests.checkpoint.test_formats import model_of, opened
from tests.checkpoints import config_of, read_model, tensors_of, write_json


def as_llama(folder: Path, **changed: object) -> Checkpoint:
    return read_model(folder, {**other.LLAMA_CONFIG, **changed}, other.llama_tensors())


@pytest.mark.parametrize(
    ("write", "config", "originals"),
    [
        (other.write_llama_gguf, other.LLAMA_CONFIG, other.llama_tensors()),
        (other.write_gemma3_gguf, other.GEMMA3_CONFIG, other.gemma3_tensors()),
        (other.write_gpt2_gguf, config_of("gpt2"), tensors_of("gpt2")),
    ],
)
def test_a_gguf_file_is_its_original_and_is_handed_to_transformers_as_that(tmp_path, write, config, originals):
    wanted = read_model(tmp_path / "original", config, originals)
    write(tmp_path / "model.gguf", "F32")
    read = opened(tmp_path / "model.gguf")
    assert set(read) == set(wanted)
    assert read.architecture == wanted.architecture
    for role in wanted:
        np.testing.assert_array_equal(read[role], wanted[role], err_msg=role)
    handed = dict(in_folder(tmp_path).as_transformers())
    named = {name.removeprefix("model."): tensor for name, tensor in originals.items()}
    assert set(handed) == set(named)
    for name, tensor in named.items():
        np.testing.assert_allclose(handed[name], tensor, rtol=0, atol=1e-6, err_msg=name)


def test_keys_differ_where_a_converter_changed_tensors(tmp_path):
    wanted = read_model(tmp_path / "original", other.GEMMA3_CONFIG, other.gemma3_tensors())
    other.write_gemma3_gguf(tmp_path / "model.gguf")
    assert opened(tmp_path / "model.gguf").layout("final_norm.gain") != wanted.layout("final_norm.gain")


@pytest.mark.parametrize(("kind", "relative"), [("F16", 2**-11), ("BF16", 2**-8), ("Q8_0", None)])
def test_a_rounded_gguf_file_is_its_original_within_rounding(tmp_path, kind, relative):
    wanted = as_llama(tmp_path / "original")
    other.write_llama_gguf(tmp_path / "model.gguf", kind)
    read = opened(tmp_path / "model.gguf")
    for role in wanted:
        right, stored = wanted[role], read[role]
        if relative is None:  # a block of 32 is rounded to whole numbers of 1/127 of its largest
            step = np.abs(right).max() / 127
            assert np.abs(stored - right).max() <= 0.51 * step + 2**-11 * np.abs(right).max(), role
        else:
            np.testing.assert_allclose(stored, right, rtol=relative, atol=1e-7, err_msg=role)
    record = read.record("blocks.1.attn.q")
    assert (record.name, record.dtype, record.shape) == ("blk.1.attn_q.weight", kind, (64, 64))


def test_a_tensor_of_a_gguf_file_is_read_in_parts_and_its_digest_is_that_of_its_bytes(tmp_path, monkeypatch):
    other.write_llama_gguf(tmp_path / "model.gguf", "Q8_0")
    reader = gguf.GGUFReader(tmp_path / "model.gguf")
    stored = {tensor.name: np.asarray(tensor.data).tobytes() for tensor in reader.tensors}
    whole = {role: opened(tmp_path / "model.gguf")[role] for role in ("token_embedding", "blocks.0.mlp.out")}
    monkeypatch.setattr(files, "NUMBERS_AT_ONCE", 200)
    read = opened(tmp_path / "model.gguf")
    for role, tensor in whole.items():
        np.testing.assert_array_equal(read[role], tensor)
        record = read.record(role)
        assert record.sha256 == hashlib.sha256(stored[record.name]).hexdigest()


@pytest.mark.parametrize("kind", IN_BLOCKS)
def test_blocks_of_every_type_mean_what_the_package_says_row_by_row(tmp_path, kind):
    as_type = gguf.GGMLQuantizationType[kind]
    stored = np.random.default_rng(0).integers(0, 256, (5, 3 * gguf.GGML_QUANT_SIZES[as_type][1]), np.uint8)
    with other.gguf_writer(tmp_path / "model.gguf") as writer:
        writer.add_tensor("t", stored, raw_dtype=as_type)
    with np.errstate(all="ignore"):
        wanted = gguf.quants.dequantize(stored, as_type)
    form, path = Gguf(), tmp_path / "model.gguf"
    header = form.header(path, "t")
    assert (header.dtype, header.shape) == (kind, wanted.shape)
    with np.errstate(all="ignore"):
        for rows in (..., slice(1, 3), slice(4, 5)):
            read = form.numbers(header, form.rows(path, "t", rows))
            assert read.dtype == np.float32
            assert read.tobytes() == wanted[rows].tobytes()


def test_every_type_of_blocks_that_the_package_knows_is_read():
    known = {kind.name for kind in gguf.quants._type_traits}
    assert set(IN_BLOCKS) == known - {"BF16"}


def test_one_row_of_blocks_is_refused(tmp_path):
    with other.gguf_writer(tmp_path / "model.gguf") as writer:
        writer.add_tensor("t", np.zeros(18, np.uint8), raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    with pytest.raises(InputError, match=r"t in model\.gguf is one row of Q4_0"):
        Gguf().rows(tmp_path / "model.gguf", "t", ...)


def test_long_lists_of_metadata_are_read_at_once_and_cut_ones_are_refused(tmp_path):
    path = tmp_path / "model.gguf"
    words, scores = [f"wörd {i}" for i in range(5000)], [i / 4 for i in range(5000)]
    with other.gguf_writer(path) as writer:
        writer.add_array("words", words)
        writer.add_array("scores", scores)
    said = Gguf().settings(path)
    assert (said["words"], said["scores"]) == (words, scores)
    many = bytearray(path.read_bytes())
    many[16:24] = (10**6).to_bytes(8, "little")
    (tmp_path / "many.gguf").write_bytes(many)
    with pytest.raises(InputError, match="its metadata has 1000000 keys"):
        Gguf().settings(tmp_path / "many.gguf")
    content = path.read_bytes()
    for length in (len(content) // 4, len(content) - 400):  # among the words, and among the scores
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match="isn't a whole GGUF file"):
            Gguf().settings(path)


def test_the_rotations_of_llama_3_are_those_that_the_factors_give(tmp_path):
    rule = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    rule["original_max_position_embeddings"] = 8192
    wanted = as_llama(tmp_path / "a", rope_theta=500000.0, rope_scaling=rule).architecture.rotary[0]
    plain = 2 * np.pi * 500000.0 ** (np.arange(8) / 8)
    factors = (np.array(wanted.periods) / plain).astype(np.float32)

    def scaled_by(factors):
        extra = {"rope_freqs.weight": factors}
        other.write_llama_gguf(tmp_path / "b.gguf", **{"rope.freq_base": 500000.0, "extra": extra})
        return opened(tmp_path / "b.gguf").architecture.rotary[0]

    np.testing.assert_allclose(scaled_by(factors).periods, wanted.periods, rtol=1e-6)
    with pytest.raises(InputError, match="scaled by a rule of its own"):
        scaled_by(factors * np.linspace(1, 2, 8, dtype=np.float32))


@pytest.mark.parametrize(("kind", "bits"), [("F16", None), ("Q8_0", 8), ("Q4_1", 4)])
def test_a_quantized_copy_is_said_to_be_one_in_its_record(tmp_path, kind, bits):
    other.write_llama_gguf(tmp_path / "model.gguf", kind)
    note = prepare(open_model(model_of(tmp_path), Places()), []).record.notes
    said = (
        f"A quantized copy, with {bits} bits per weight (tensors: 16 {kind}, 5 F32). All its numbers carry rounding."
    )
    assert note == (said if bits else None)


@pytest.mark.parametrize(("layers", "scalar"), [(26, 256), (62, 5376 // 32)])
def test_scores_of_the_largest_gemma_3_are_scaled_by_its_width(layers, scalar):
    said = {"block_count": layers, "embedding_length": 5376, "attention.head_count": 32, "attention.key_length": 256}
    said |= {"context_length": 8, "attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 1e6}
    named = {f"gemma3.{key}": value for key, value in said.items()} | {"general.architecture": "gemma3"}
    assert of_gguf(named, {}, lambda name: np.zeros(0), "it").config["query_pre_attn_scalar"] == scalar


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"arch": "mamba"}, "architecture 'mamba'. The atlas reads GGUF files of llama, qwen2, qwen3, gpt2"),
        ({"extra": {"odd.weight": np.ones((2, 2))}}, "has tensors of the type F64"),
        ({"expert_count": 8}, "several MLPs per layer"),
        ({"rope.scaling.type": "yarn"}, "rotations are scaled by 'yarn'"),
        ({"rope.dimension_count": 8}, "heads are turned in part"),
        ({"attention.sliding_window": 16}, "attention.sliding_window"),
    ],
    ids=str,
)
def test_gguf_files_that_are_not_read_say_why(tmp_path, changed, sentence):
    other.write_llama_gguf(tmp_path / "model.gguf", **changed)
    with pytest.raises(InputError, match=sentence):
        opened(tmp_path)


def shards(folder: Path, **changed: object) -> list[Path]:
    folder.mkdir()
    other.write_llama_gguf(folder / "tiny.gguf", "Q8_0", split=7, **changed)
    return sorted(folder.iterdir())


def test_shards_are_read_as_the_whole_file_by_whichever_name(tmp_path):
    other.write_llama_gguf(tmp_path / "whole.gguf", "Q8_0")
    wanted, paths = opened(tmp_path / "whole.gguf"), shards(tmp_path / "split")
    assert find_model(str(paths[1]), Registry(models=())).name == "tiny"
    for path in (tmp_path / "split", *paths):
        read = opened(path)
        assert read.architecture == wanted.architecture
        assert [read.content(role) for role in read] == [wanted.content(role) for role in wanted]
    write_json(tmp_path / "split" / "config.json", {"model_type": "bert"})  # llama.cpp doesn't read it either
    assert opened(tmp_path / "split").architecture == wanted.architecture
    paths[1].unlink()
    for path in (tmp_path / "split", paths[2]):
        with pytest.raises(InputError, match="holds 2 of 3 shards: number 2 is missing"):
            opened(path)


def test_shards_of_two_models_are_refused(tmp_path):
    paths, others = shards(tmp_path / "split"), shards(tmp_path / "other", without=("lm_head.weight",))
    others[2].replace(paths[2])
    with pytest.raises(InputError, match="has 20 tensors, and its first file says 21"):
        opened(tmp_path / "split")


def test_an_adapter_is_refused_with_the_command_that_merges_it(tmp_path):
    with other.gguf_writer(tmp_path / "my-lora.gguf") as writer:
        writer.add_type("adapter")
        writer.add_tensor("blk.0.attn_q.weight.lora_a", np.ones((2, 4), np.float32))
    with pytest.raises(InputError, match=r"is a LoRA adapter in GGUF .* `llama-export-lora -m BASE"):
        opened(tmp_path / "my-lora.gguf")


def test_of_several_quantizations_one_is_named_and_what_lets_a_model_see_is_none(tmp_path):
    for kind in ("Q4_0", "Q8_0"):
        other.write_llama_gguf(tmp_path / f"tiny-{kind}.gguf", kind)
    with pytest.raises(InputError, match=r"several files of weights \(tiny-Q4_0.gguf, tiny-Q8_0.gguf\): name one"):
        opened(tmp_path)
    (tmp_path / "tiny-Q8_0.gguf").rename(tmp_path / "mmproj-tiny.gguf")
    assert opened(tmp_path).record("blocks.0.attn.q").dtype == "Q4_0"


# Where a file says that its tensors are


@pytest.mark.parametrize(
    ("spans", "sentence"),
    [
        ({"a": (64, 96), "b": (64, 96)}, "inside a"),
        ({"a": (64, 100), "b": (96, 128)}, "inside a"),
        ({"a": (32, 64)}, "inside the header"),
        ({"a": (64, 300)}, "cut off"),
        ({"a": (96, 64)}, "cut off"),
        ({"a": (64, 96), "b": (100, 110)}, "no multiple of 32"),
        ({"a": (64, 96), "b": (128, 130)}, "belong to no tensor"),
        ({"a": (128, 130)}, "belong to no tensor"),
    ],
)
def test_a_layout_that_can_t_be_is_refused(spans, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_layout(spans, begin=64, size=256, align=32, gap=31)


def test_a_layout_that_can_be_is_none_of_these():
    check_layout({"b": (96, 100), "a": (64, 90), "none": (64, 64)}, begin=64, size=256, align=32, gap=31)
    check_layout({"far": (200, 256)}, begin=64, size=256, gap=None)


@pytest.mark.parametrize("offset", [0, 2**64 - 32, 2**40, 33], ids=["overlaps", "wraps", "beyond", "between"])
def test_a_gguf_file_whose_offsets_lie_is_refused(tmp_path, offset):
    path = tmp_path / "model.gguf"
    other.write_llama_gguf(path, "F32")
    field = next(t for t in gguf.GGUFReader(path).tensors if t.name == "blk.1.attn_q.weight").field
    where = int(field.offset + sum(part.nbytes for part in field.parts[:-1]))
    data = bytearray(path.read_bytes())
    data[where : where + 8] = offset.to_bytes(8, "little")
    path.write_bytes(data)
    with pytest.raises(InputError, match="isn't a whole GGUF file"):
        opened(path)
