"""Other software's files give the same model as transformers' own, or a sentence that says what they are."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, models

from generators.base.errors import InputError, WeightsUnavailableError
from generators.base.notices import forget
from generators.checkpoint.checkpoint import Checkpoint, open_checkpoint
from generators.checkpoint.positions import rotary
from generators.checkpoint.registry import FolderSource, HubSource, Model
from generators.checkpoint.sources import Hub, Places, in_folder, locate
from generators.compute import run_text
from generators.compute.plan import open_model, plan
from generators.findings import FINDINGS
from generators.maths.distances import turned
from tests.checkpoint import other_software as other
from tests.checkpoints import SMALL, WEIGHTS, Sizes, read_model, tensors_of, write_checkpoint, write_json

GPT2 = tensors_of("gpt2")
LAYERS = range(SMALL.n_layer)


@pytest.fixture(autouse=True)
def said(lines):
    """Return what is said meanwhile, once more than before."""
    forget()
    return lines


def model_of(path: Path) -> Model:
    return Model(name="tiny", title="tiny", sources=(FolderSource(folder=path),))


def opened(path: Path) -> Checkpoint:
    return open_checkpoint(locate(model_of(path), (), None))


def as_gpt2(folder: Path, tensors=GPT2) -> Checkpoint:
    return opened(write_checkpoint(folder, changed=tensors))


def assert_same(read: Checkpoint, wanted: Checkpoint, *, without: tuple[str, ...] = ()) -> None:
    assert {role for role in wanted if not role.endswith(without or ("-",))} <= set(read)
    for role in set(read) & set(wanted):
        np.testing.assert_array_equal(read[role], wanted[role], err_msg=role)
    for field in ("n_layer", "n_head", "d_model", "n_ctx", "vocab_size", "d_head", "norm_eps", "causal", "positions"):
        assert getattr(read.architecture, field) == getattr(wanted.architecture, field)


# Prefixes of wrappers


def test_two_copies_of_the_weights_are_not_mixed(tmp_path, said):
    copy = {f"module.{name}": tensor + 1 for name, tensor in GPT2.items()}
    read = opened(write_checkpoint(tmp_path, changed=copy, without=["ln_f.weight"]))
    np.testing.assert_array_equal(read["token_embedding"], GPT2["wte.weight"])
    assert "final_norm.gain" not in read
    assert ["27 tensors in the file are not used by this architecture: module." in line for line in said] == [True]


# nanoGPT


@pytest.mark.parametrize("prefix", ["", "_orig_mod.", "module.", "_orig_mod.module."])
@pytest.mark.parametrize("bias", [True, False], ids=["biases", "no-biases"])
def test_nanogpt_is_read_as_the_same_weights_saved_as_gpt2(tmp_path, prefix, bias):
    same = {name: t if bias or not name.endswith(".bias") else np.zeros_like(t) for name, t in GPT2.items()}
    folder = other.write_nanogpt(tmp_path / "out", other.nanogpt_of(GPT2, bias=bias), prefix, bias=bias)
    wanted = as_gpt2(tmp_path / "gpt2", same)
    for path in (folder, folder / "ckpt.pt"):
        read = opened(path)
        assert_same(read, wanted, without=() if bias else (".bias",))
        assert all(read.missing_for(role) == [] for role in read)
        assert read.architecture.tied
        name = f"{prefix.replace('_orig_mod.', '')}transformer.h.0.attn.c_attn.weight"
        assert read.record("blocks.0.attn.q").name == name
    stored = GPT2["h.0.attn.c_attn.weight"].T.tobytes()
    assert read.record("blocks.0.attn.q").sha256 == hashlib.sha256(stored).hexdigest()


def test_a_changed_nanogpt_and_one_with_more_than_weights_are_refused(tmp_path):
    other.write_nanogpt(tmp_path, other.nanogpt_of(GPT2), use_rmsnorm=True)
    with pytest.raises(InputError, match="a changed nanoGPT: its model_args set use_rmsnorm to True"):
        opened(tmp_path)
    torch.save({"model": {"a": torch.ones(2)}, "args": Path("there")}, tmp_path / "ckpt.pt")
    with pytest.raises(InputError, match=r"ckpt\.pt is not opened: .* Save the model's state_dict\(\) alone"):
        opened(tmp_path)


def test_tokens_of_nanogpt_have_names_where_a_tokenizer_lies_beside(tmp_path, said):
    sizes = Sizes(vocab_size=50304, d_model=8, n_ctx=8, n_layer=1)
    tensors = other.nanogpt_of(tensors_of("gpt2", sizes))
    args = {"vocab_size": 50304, "n_embd": 8, "block_size": 8, "n_layer": 1}
    other.write_nanogpt(tmp_path, tensors, **args)
    assert open_model(model_of(tmp_path), Places()).vocabulary is None
    assert "which stores no tokenizer" in said[0]
    tokenizer = Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    tokenizer.save(str(tmp_path / "tokenizer.json"))  # fewer tokens than rows: nanoGPT adds rows up to 64 times some
    vocabulary = open_model(model_of(tmp_path), Places()).vocabulary
    assert len(vocabulary.readable) == 50304
    assert vocabulary.raw_bytes[2] == b"ab"


# Mistral


def write_mistral(folder: Path, **changed: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tensors = other.renamed(other.turning_neighbors(other.llama_tensors()), other.IN_MISTRAL)
    save_file(tensors, folder / "consolidated.safetensors")
    write_json(folder / "params.json", {**other.MISTRAL_PARAMS, **changed})
    return folder


def test_mistrals_own_files_are_read_as_the_same_weights_saved_by_transformers(tmp_path):
    config = {**other.LLAMA_CONFIG, "model_type": "mistral", "sliding_window": 8, "max_position_embeddings": 128}
    wanted = read_model(tmp_path / "original", config, other.llama_tensors())
    folder = write_mistral(tmp_path / "own", sliding_window=8, max_seq_len=128)
    for path in (folder, folder / "consolidated.safetensors"):
        read = opened(path)
        assert_same(read, wanted)
        assert set(read) == set(wanted)
        assert (read.architecture.rotary, read.architecture.windows) == (
            wanted.architecture.rotary,
            wanted.architecture.windows,
        )
    assert read.record("blocks.0.attn.q").name == "layers.0.attention.wq.weight"


def test_what_mistral_turns_as_complex_numbers_transformers_turns_in_halves():
    rows = np.random.default_rng(0).standard_normal((5, 64), np.float32)
    scores = []
    for tensors, adjacent in ((other.llama_tensors(), False), (other.turning_neighbors(other.llama_tensors()), True)):
        turn = rotary(16, 10000.0, 128, adjacent=adjacent)
        first_heads = [tensors[f"model.layers.0.self_attn.{name}_proj.weight"][:16] for name in "qk"]
        q, k = (turned((rows @ head.T)[None], turn)[0] for head in first_heads)
        scores.append(q @ k.T)
    np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("window", "base"), [(None, 1e6), (8, 1e4)])
def test_where_mistral_names_no_base_it_follows_from_the_window(tmp_path, window, base):
    folder = write_mistral(tmp_path, rope_theta=None, sliding_window=window)
    assert in_folder(folder).config()["rope_theta"] == base


@pytest.mark.parametrize(
    "changed", [{"moe": {"num_experts": 8}}, {"yarn": {"factor": 16}}, {"quantization": {"a": 1}}]
)
def test_what_mistral_sets_and_no_table_knows_is_refused(tmp_path, changed):
    with pytest.raises(InputError, match=f"whose params.json sets {next(iter(changed))} to"):
        opened(write_mistral(tmp_path, **changed))


# nanochat


def test_of_nanochat_the_token_embedding_is_read_and_the_rest_said(tmp_path):
    state = {f"transformer.h.{i}.attn.c_q.weight": torch.ones(8, 8) for i in range(3)}
    state |= {"transformer.wte.weight": torch.ones(64, 8).bfloat16(), "lm_head.weight": torch.ones(64, 8)}
    torch.save(state, tmp_path / "model_000650.pt")
    torch.save({"state": {}, "param_groups": [{"lr": 0.1}]}, tmp_path / "optim_000650_rank0.pt")
    write_json(tmp_path / "meta_000650.json", {"model_config": {"n_head": 2, "sequence_len": 32, "vocab_size": 60}})
    for path in (tmp_path, tmp_path / "model_000650.pt"):
        read = opened(path)
        assert list(read) == ["token_embedding"]
        assert (read.architecture.n_layer, read.architecture.n_head, read.architecture.n_ctx) == (3, 2, 32)
        assert "no table for models of type nanochat" in read.family.without["attn.q"]
    (tmp_path / "meta_000650.json").unlink()
    assert opened(tmp_path).architecture.vocab_size == 64


# TransformerLens


LENS = other.lens_of(GPT2)
WITHOUT_NORMS = {name: tensor for name, tensor in LENS.items() if ".ln" not in name and "ln_final" not in name}
OURS = ("unembedding", "unembedding.bias")  # GPT-2's is its token embedding


def write_lens(folder: Path, state: dict, cfg: dict | None, how: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if how == "safetensors":
        save_file(state, folder / WEIGHTS)
    else:
        tensors = {name: torch.tensor(tensor) for name, tensor in state.items()}
        torch.save(tensors, folder / "model.pth")
    if cfg is not None:
        write_json(folder / ("config.json" if how == "safetensors" else "cfg.json"), cfg)
    return folder


@pytest.mark.parametrize("how", ["safetensors", "beside"])
def test_transformer_lens_is_read_as_the_same_weights_saved_as_gpt2(tmp_path, how):
    read = opened(write_lens(tmp_path / "lens", LENS, other.cfg_of(), how))
    assert_same(read, as_gpt2(tmp_path / "gpt2"))
    assert all(read.missing_for(role) == [] for role in read)
    np.testing.assert_array_equal(read["unembedding"], GPT2["wte.weight"])
    record = read.record("blocks.1.attn.k")
    assert (record.name, record.shape) == ("blocks.1.attn.W_K", (2, 24, 12))
    assert record.sha256 == hashlib.sha256(LENS["blocks.1.attn.W_K"].tobytes()).hexdigest()


def test_folded_norms_are_said_and_gains_are_untested(tmp_path, said):
    folder = write_lens(tmp_path / "lens", WITHOUT_NORMS, other.cfg_of(normalization_type="LNPre"), "beside")
    read, plain = opened(folder), as_gpt2(tmp_path / "gpt2")
    assert [line for line in said if "has folded the gains and biases of layer norms" in line] == said[:1]
    for role in (f"blocks.{i}.{name}" for i in LAYERS for name in ("attn.q", "attn.v", "mlp.in")):
        np.testing.assert_array_equal(read[role], plain[role])
        assert read.missing_for(role) == []
    gains = next(finding for finding in FINDINGS if finding.name == "gains")
    planned = plan(gains, open_model(model_of(folder), Places()))
    assert planned.status == "not_applicable"
    assert "has folded this model's layer norms" in planned.reason


@pytest.mark.parametrize(
    ("setting", "read_as"),
    [
        ({"use_attn_scale": False}, ("score_scale", 1.0)),
        ({"attn_scale": 8.0}, ("score_scale", 0.125)),
        ({"attn_scale": -1.0}, ("score_scale", None)),
        ({"scale_attn_by_inverse_layer_idx": True}, ("scaled_by_layer", True)),
        ({"attention_dir": "bidirectional"}, ("causal", False)),
        ({"eps": 1e-6}, ("norm_eps", 1e-6)),
    ],
    ids=str,
)
def test_what_a_cfg_says_is_read(tmp_path, setting, read_as):
    read = opened(write_lens(tmp_path, LENS, other.cfg_of(**setting), "safetensors"))
    assert getattr(read.architecture, read_as[0]) == read_as[1]


W_Q = "blocks.0.attn.W_Q"
UNKNOWN = {
    "positional_embedding_type": "rotary",
    "use_local_attn": True,
    "attn_scores_soft_cap": 50.0,
    "parallel_attn_mlp": True,
}


@pytest.mark.parametrize(
    ("state", "cfg", "said"),
    [
        (LENS | {W_Q: LENS[W_Q].ravel()}, other.cfg_of(), f"{W_Q} in .* has the shape"),
        *((LENS, other.cfg_of(**{name: value}), name) for name, value in UNKNOWN.items()),
        (LENS, None, r"its cfg isn't beside it.*json\.dump\(model\.cfg"),
        (WITHOUT_NORMS, other.cfg_of(normalization_type=None), "None as normalization_type"),
    ],
)
def test_what_the_atlas_does_not_know_of_a_transformer_lens_model_is_refused(tmp_path, state, cfg, said):
    with pytest.raises(InputError, match=said):
        dict(opened(write_lens(tmp_path, state, cfg, "beside")))


def test_attention_alone_and_other_outputs_are_read(tmp_path):
    state = {name: tensor for name, tensor in LENS.items() if ".mlp." not in name and ".ln2." not in name}
    state["unembed.W_U"], state["unembed.b_U"] = np.ones((24, 7), np.float32), np.ones(7, np.float32)
    read = opened(write_lens(tmp_path, state, other.cfg_of(attn_only=True, d_vocab_out=7), "safetensors"))
    assert not [role for role in read if ".mlp." in role or "unembedding" in role]
    assert "attention alone" in read.family.without["blocks.*.mlp.in"]


def test_shared_heads_of_keys_are_read(tmp_path):
    state = {name: tensor for name, tensor in LENS.items() if not name.endswith(("_K", "_V"))}
    for i in LAYERS:
        for name in ("W_K", "W_V", "b_K", "b_V"):
            state[f"blocks.{i}.attn._{name}"] = LENS[f"blocks.{i}.attn.{name}"][:1]
    read = opened(write_lens(tmp_path, state, other.cfg_of(n_key_value_heads=1), "beside"))
    assert read.architecture.n_kv_head == 1
    np.testing.assert_array_equal(read["blocks.1.attn.k"], GPT2["h.1.attn.c_attn.weight"][:, 24:36])


# Which file


def test_shards_without_an_index_are_read_if_all_are_there(tmp_path):
    write_checkpoint(tmp_path / "a", shards=3)
    (tmp_path / "a" / f"{WEIGHTS}.index.json").unlink()
    assert_same(opened(tmp_path / "a"), as_gpt2(tmp_path / "b"))
    next((tmp_path / "a").glob("*-00002-*")).unlink()
    with pytest.raises(InputError, match="holds 2 of 3 shards: number 2 is missing"):
        opened(tmp_path / "a")


def test_a_tensor_in_two_shards_without_an_index_is_named(tmp_path):
    folder = write_checkpoint(tmp_path / "a", shards=2)
    (folder / f"{WEIGHTS}.index.json").unlink()
    first, second = sorted(folder.glob("model-*.safetensors"))
    save_file(load_file(first) | load_file(second), second)
    with pytest.raises(InputError, match="and no index"):
        opened(folder)


def test_of_several_files_one_must_be_named(tmp_path):
    folder = other.write_nanogpt(tmp_path, other.nanogpt_of(GPT2))
    (folder / "ckpt-1000.pt").write_bytes((folder / "ckpt.pt").read_bytes())
    torch.save({"state": {}}, folder / "optimizer.pt")
    with pytest.raises(InputError, match=r"several files of weights \(ckpt-1000\.pt, ckpt\.pt\): name one of them"):
        opened(folder)
    assert opened(folder / "ckpt-1000.pt")["token_embedding"].size


def test_any_name_will_do_where_the_content_says_what_a_file_is(tmp_path):
    write_checkpoint(tmp_path)
    (tmp_path / WEIGHTS).rename(tmp_path / "weights.bin")
    assert_same(opened(tmp_path), as_gpt2(tmp_path / "gpt2"))
    (tmp_path / "weights.bin").unlink()
    torch.save({name: torch.tensor(tensor) for name, tensor in GPT2.items()}, tmp_path / "epoch=3.ckpt")
    assert_same(opened(tmp_path / "epoch=3.ckpt"), as_gpt2(tmp_path / "gpt2"))


# What isn't read


def test_a_model_that_transformers_would_not_open_is_not_run(tmp_path):
    folder = other.write_nanogpt(write_checkpoint(tmp_path / "a"), other.nanogpt_of(GPT2))
    lens = write_lens(tmp_path / "b", LENS, other.cfg_of(), "safetensors")
    for path in (folder / "ckpt.pt", lens):
        assert "transformers doesn't open its file" in open_model(model_of(path), Places()).why_no_run
    assert open_model(model_of(folder), Places()).why_no_run == run_text.NO_TOKENIZER  # the other could be run


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["tiny.Q8_0.gguf"], "Download tiny.Q8_0.gguf and name the file: `hf download owner/other tiny.Q8_0.gguf`."),
        (["model.onnx"], "owner/other holds model.onnx, an ONNX graph"),
        (["adapter_model.safetensors", "adapter_config.json"], "is a LoRA adapter alone; its base is 'owner/base'"),
    ],
)
def test_a_repository_of_other_files_says_what_they_are(fake, names, sentence):
    folder = fake.repository("owner/other")
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps({"base_model_name_or_path": "owner/base"}))
    with pytest.raises(WeightsUnavailableError) as refusal:
        locate(Model(name="x", title="x", sources=(HubSource(hub="owner/other"),)), (), Hub())
    assert sentence in str(refusal.value)
