"""A checkpoint hands out the right tensor for every role, the right way round, and reads no other."""

import hashlib

import numpy as np
import pytest

from generators.base import notices
from generators.base.errors import InputError
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.sources import Files, in_folder
from generators.checkpoint.sources.safetensors_files import Safetensors
from tests.checkpoints import DTYPES, SMALL, WEIGHTS, config_of, raw_bytes, tensors_of, write_checkpoint, write_json

D = SMALL.d_model


def whole(tensor):
    return tensor


def transposed(tensor):
    return tensor.T


def third(index):
    return lambda tensor: tensor[..., index * D : (index + 1) * D]


def gpt_block(i):
    """Return {role: (tensor, how it is handed out)} that GPT-1 and GPT-2 share; norms apart."""
    fused, block = f"h.{i}.attn.c_attn", f"blocks.{i}"
    return {
        **{f"{block}.attn.{name}": (f"{fused}.weight", third(k)) for k, name in enumerate("qkv")},
        **{f"{block}.attn.{name}.bias": (f"{fused}.bias", third(k)) for k, name in enumerate("qkv")},
        **with_bias(f"{block}.attn.o", f"h.{i}.attn.c_proj", transposed),
        **with_bias(f"{block}.mlp.in", f"h.{i}.mlp.c_fc", whole),
        **with_bias(f"{block}.mlp.out", f"h.{i}.mlp.c_proj", transposed),
    }


def with_bias(role, tensor, laid_out):
    return {role: (f"{tensor}.weight", laid_out), f"{role}.bias": (f"{tensor}.bias", whole)}


def bert_block(i):
    block, ours = f"encoder.layer.{i}", f"blocks.{i}"
    names = {"q": "query", "k": "key", "v": "value"}
    found = [with_bias(f"{ours}.attn.{r}", f"{block}.attention.self.{n}", transposed) for r, n in names.items()]
    found += [with_bias(f"{ours}.attn.o", f"{block}.attention.output.dense", whole)]
    found += [with_bias(f"{ours}.mlp.in", f"{block}.intermediate.dense", transposed)]
    found += [with_bias(f"{ours}.mlp.out", f"{block}.output.dense", whole)]
    return {role: tensor for part in found for role, tensor in part.items()}


def norms(**tensors):
    """Return the roles of norms given as blocks_0_ln1="tensor without its ending"."""
    roles = {}
    for role, tensor in tensors.items():
        roles[f"{role.replace('_', '.')}.gain"] = (f"{tensor}.weight", whole)
        roles[f"{role.replace('_', '.')}.bias"] = (f"{tensor}.bias", whole)
    return roles


EXPECTED = {
    "gpt2": {
        "position_embedding": ("wpe.weight", whole),
        "token_embedding": ("wte.weight", whole),
        "final_norm.gain": ("ln_f.weight", whole),
        "final_norm.bias": ("ln_f.bias", whole),
        **norms(blocks_0_ln1="h.0.ln_1", blocks_0_ln2="h.0.ln_2", blocks_1_ln1="h.1.ln_1", blocks_1_ln2="h.1.ln_2"),
        **gpt_block(0),
        **gpt_block(1),
    },
    # Post-norm: attention i reads what the norm after MLP i-1 puts out; the first reads the bare embedding.
    "openai-gpt": {
        "position_embedding": ("positions_embed.weight", whole),
        "token_embedding": ("tokens_embed.weight", whole),
        **norms(blocks_0_ln2="h.0.ln_1", blocks_1_ln1="h.0.ln_2", blocks_1_ln2="h.1.ln_1"),
        **gpt_block(0),
        **gpt_block(1),
    },
    # Post-norm too, but the first attention reads the embeddings' own norm.
    "bert": {
        "position_embedding": ("embeddings.position_embeddings.weight", whole),
        "token_embedding": ("embeddings.word_embeddings.weight", whole),
        "token_type_embedding": ("embeddings.token_type_embeddings.weight", whole),
        **norms(
            blocks_0_ln1="embeddings.LayerNorm",
            blocks_0_ln2="encoder.layer.0.attention.output.LayerNorm",
            blocks_1_ln1="encoder.layer.0.output.LayerNorm",
            blocks_1_ln2="encoder.layer.1.attention.output.LayerNorm",
        ),
        **bert_block(0),
        **bert_block(1),
    },
}
FAMILIES = tuple(EXPECTED)
PREFIXES = {"gpt2": "transformer.", "openai-gpt": "transformer.", "bert": "bert."}


def opened(folder):
    return open_checkpoint(in_folder(folder))


@pytest.fixture
def tensors_read(monkeypatch):
    names = []
    read = Safetensors.rows

    def recording(self, path, name, rows):
        names.append(name)
        return read(self, path, name, rows)

    monkeypatch.setattr(Safetensors, "rows", recording)
    return names


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("prefixed", [False, True], ids=["bare", "prefixed"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_role_is_the_right_tensor_stream_side_first(tmp_path, family, prefixed, shards):
    prefix = PREFIXES[family] if prefixed else ""
    checkpoint = opened(write_checkpoint(tmp_path, family, prefix=prefix, shards=shards))
    tensors = tensors_of(family)
    assert set(checkpoint) == set(EXPECTED[family])
    for role, (name, laid_out) in EXPECTED[family].items():
        np.testing.assert_array_equal(checkpoint[role], laid_out(tensors[name]), err_msg=role, strict=True)
        assert checkpoint.record(role).name == prefix + name


LABELS = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16"}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_records_are_of_the_bytes_in_the_file_and_values_are_those_widened(tmp_path, family, dtype):
    checkpoint = opened(write_checkpoint(tmp_path, family, dtype=dtype))
    tensors = tensors_of(family)
    for role, (name, _) in EXPECTED[family].items():
        record = checkpoint.record(role)
        assert record.sha256 == hashlib.sha256(raw_bytes(tmp_path / WEIGHTS, name)).hexdigest()
        assert (record.shape, record.dtype) == (tensors[name].shape, LABELS[dtype])
    width = np.float64 if dtype == "float64" else np.float32
    stored = tensors[EXPECTED[family]["position_embedding"][0]].astype(DTYPES[dtype])
    np.testing.assert_array_equal(checkpoint["position_embedding"], stored.astype(width), strict=True)


def test_opening_reads_no_tensor_a_role_only_its_own_and_a_fused_one_is_read_once(tmp_path, tensors_read):
    checkpoint = opened(write_checkpoint(tmp_path))
    assert tensors_read == []
    _ = checkpoint["position_embedding"]
    assert tensors_read == ["wpe.weight"]
    for name in "qkv":
        checkpoint.record(f"blocks.0.attn.{name}")
        _ = checkpoint[f"blocks.0.attn.{name}"]
    assert tensors_read == ["wpe.weight", "h.0.attn.c_attn.weight"]


def test_only_the_shard_that_is_asked_for_is_fetched(tmp_path):
    folder = in_folder(write_checkpoint(tmp_path, shards=3))
    fetched = []

    def fetch(name):
        fetched.append(name)
        return folder.fetch(name)

    checkpoint = open_checkpoint(Files(folder.origin, fetch))
    assert not [name for name in fetched if "-of-" in name]
    _ = checkpoint["token_embedding"]
    assert {name for name in fetched if "-of-" in name} == {"model-00001-of-00003.safetensors"}


def test_of_shards_those_that_are_there_are_read_and_that_is_said(tmp_path):
    (write_checkpoint(tmp_path, shards=3) / "model-00003-of-00003.safetensors").unlink()
    said: list[str] = []
    notices.forget()
    with notices.heard_by(said.append):
        checkpoint = opened(tmp_path)
    np.testing.assert_array_equal(checkpoint["token_embedding"], tensors_of("gpt2")["wte.weight"])
    assert "final_norm.gain" not in checkpoint
    assert ["holds 2 of 3 shards" in line for line in said] == [True]


def test_a_harmed_shard_matters_only_when_asked_for(tmp_path):
    last = write_checkpoint(tmp_path, shards=3) / "model-00003-of-00003.safetensors"
    last.write_bytes(last.read_bytes()[:-5])
    checkpoint = opened(tmp_path)
    np.testing.assert_array_equal(checkpoint["token_embedding"], tensors_of("gpt2")["wte.weight"])
    with pytest.raises(InputError, match=r"model-00003-of-00003\.safetensors"):
        _ = checkpoint["final_norm.gain"]


def test_nan_matters_only_in_the_tensor_asked_for(tmp_path):
    broken = np.full((SMALL.vocab_size, D), np.nan, np.float32)
    checkpoint = opened(write_checkpoint(tmp_path, changed={"wte.weight": broken}))
    assert np.isfinite(checkpoint["position_embedding"]).all()
    with pytest.raises(InputError, match=r"wte\.weight .* holds NaN or infinity"):
        _ = checkpoint["token_embedding"]


def test_a_partial_checkpoint_has_the_roles_that_it_has(tmp_path):
    checkpoint = opened(write_checkpoint(tmp_path, without=("wte.weight", "h.1.mlp.c_fc.weight")))
    assert set(EXPECTED["gpt2"]) - set(checkpoint) == {"token_embedding", "blocks.1.mlp.in"}
    assert len(checkpoint) == len(EXPECTED["gpt2"]) - 2
    assert "token_embedding" not in checkpoint
    assert checkpoint.get("token_embedding") is None
    with pytest.raises(KeyError):
        _ = checkpoint["token_embedding"]
    assert checkpoint.lacking("blocks.1.mlp.in") == "h.1.mlp.c_fc.weight (blocks.1.mlp.in)"


def test_tensors_of_another_family_are_refused_by_name(tmp_path):
    write_checkpoint(tmp_path, "bert")
    write_json(tmp_path / "config.json", config_of("gpt2"))
    with pytest.raises(InputError, match=r"family 'gpt2'; it begins with embeddings\.LayerNorm\.bias"):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("wpe.weight", (SMALL.n_ctx, D + 1)),
        ("wpe.weight", (SMALL.n_ctx - 1, D)),
        ("wpe.weight", (SMALL.n_ctx, D, 1)),
        ("h.0.attn.c_attn.weight", (D, 2 * D)),
        ("h.0.attn.c_attn.weight", (D, 3 * D - 1)),
        ("h.0.attn.c_attn.bias", (3 * D, 1)),
        ("h.0.mlp.c_fc.weight", (D + 1, 4 * D)),
        ("h.0.ln_1.weight", ()),
        ("h.0.ln_1.weight", (0,)),
    ],
)
def test_a_wrong_shape_is_a_sentence_with_both_shapes(tmp_path, name, shape):
    checkpoint = opened(write_checkpoint(tmp_path, changed={name: np.zeros(shape, np.float32)}))
    role = next(role for role, (tensor, _) in EXPECTED["gpt2"].items() if tensor == name)
    with pytest.raises(InputError, match=r"where config\.json asks for") as error:
        _ = checkpoint[role]
    assert name in str(error.value)
    assert (" x ".join(map(str, shape)) or "a single number") in str(error.value)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.bool_])
def test_tensors_that_are_not_floating_are_refused(tmp_path, dtype):
    counts = np.ones((SMALL.n_ctx, D), dtype)
    checkpoint = opened(write_checkpoint(tmp_path, changed={"wpe.weight": counts}, dtype=None))
    with pytest.raises(InputError, match="the atlas reads F64, F32, F16, BF16"):
        _ = checkpoint["position_embedding"]


def test_a_family_can_be_named_where_the_config_does_not(tmp_path):
    write_checkpoint(tmp_path, "gpt2", config={"model_type": "my-own"})
    assert open_checkpoint(in_folder(tmp_path), "gpt2").architecture.family == "gpt2"


def test_a_tensor_by_two_of_its_names_must_be_one_tensor(tmp_path):
    same, other = tensors_of("gpt2")["wte.weight"], tensors_of("gpt2", seed=1)["wte.weight"]
    write_checkpoint(tmp_path / "same", changed={"transformer.wte.weight": same})
    assert opened(tmp_path / "same")["token_embedding"].shape == same.shape
    write_checkpoint(tmp_path / "other", changed={"transformer.wte.weight": other})
    with pytest.raises(InputError, match=r"wte\.weight and transformer\.wte\.weight.*differ"):
        opened(tmp_path / "other")


def test_the_header_of_a_file_is_parsed_once(tmp_path, monkeypatch):
    """Not once per tensor: of a thousand layers, that would take minutes."""
    import safetensors

    times, really = [], safetensors.safe_open
    monkeypatch.setattr(safetensors, "safe_open", lambda *args, **named: times.append(args) or really(*args, **named))
    checkpoint = opened(write_checkpoint(tmp_path))
    assert all(checkpoint[role].size for role in checkpoint)
    assert len(times) == 1
