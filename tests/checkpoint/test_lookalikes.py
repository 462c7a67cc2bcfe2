"""A model of one type by the table of another: read rightly or refused. Weights are made here, or by transformers."""

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from generators.base.errors import InputError
from generators.checkpoint.checkpoint import Checkpoint, open_checkpoint
from generators.checkpoint.families import families
from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import Places, in_folder
from generators.compute.plan import open_model, prepare
from generators.findings import FINDINGS
from generators.site.view import titled
from tests.checkpoint import lookalikes
from tests.checkpoint.lookalikes import NO_TYPE, Outcome, known_types, language_models, outcome, row
from tests.checkpoint.oracle import conditions
from tests.checkpoint.oracle.cases import OracleCase
from tests.checkpoint.oracle.model import build
from tests.checkpoints import Sizes, config_of, read_model, tensors_of_llama, write_checkpoint

LLAMA = {
    **config_of("llama", Sizes(n_layer=2, n_head=2, d_model=8, n_ctx=16, vocab_size=11)),
    **dict.fromkeys(("attention_bias", "mlp_bias", "tie_word_embeddings"), False),
    "model_type": "my-own",
    "architectures": ["MineForCausalLM"],
    "num_key_value_heads": 2,
    "intermediate_size": 12,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "bos_token_id": 1,
}


LLAMA_TENSORS = tensors_of_llama(d=8, f=12, vocab_size=11)


def opened(
    folder: Path, family: str | None, config: Any = None, more: Any = (), without: tuple[str, ...] = ()
) -> Checkpoint:
    tensors = {name: tensor for name, tensor in LLAMA_TENSORS.items() if not name.endswith(without or ("-",))}
    return read_model(
        folder, {**LLAMA, **(config or {})}, tensors | {name: np.ones(8, np.float32) for name in more}, family
    )


def test_a_model_of_which_the_table_knows_everything_is_read_and_empty_blocks_are_absent(tmp_path):
    checkpoint = opened(tmp_path, "llama")
    assert [role for role in checkpoint if checkpoint.missing_for(role)] == []
    assert checkpoint["blocks.1.mlp.gate"].shape == (8, 12)
    second = tuple(name for name in LLAMA_TENSORS if ".layers.1." in name)
    checkpoint = opened(tmp_path, "llama", without=second)
    assert "blocks.0.attn.q" in checkpoint
    assert "blocks.1.attn.q" not in checkpoint
    others = tuple(name for name in LLAMA_TENSORS if "embed_tokens" not in name)
    assert list(opened(tmp_path, "llama", without=others)) == ["token_embedding"]


COMPUTED = ("model.layers.0.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq", "score.weight")


@pytest.mark.parametrize("name", COMPUTED)
def test_what_the_software_computes_or_puts_on_top_changes_nothing(tmp_path, name):
    assert opened(tmp_path, "llama", more=[name])


BLOCK = "model.layers.1"
UNKNOWN = (
    f"{BLOCK}.self_attn.q_norm.weight",
    "model.layers.0.self_attn.q_proj.bias",
    "model.layers.0.self_attn.sinks",
    "model.layers.0.mlp.act_fn.alpha_p",
    "model.layers.0.mlp.experts.0.up_proj.weight",
    "model.layers.2.input_layernorm.weight",
    "model.embed_norm.weight",
)
LACKED = ("input_layernorm", "post_attention_layernorm", "self_attn.k_proj", "mlp.gate_proj")
SETTINGS = {"embedding_multiplier": 3.0, "normalize_before": True, "residual_gain": 0.5, "clip_qkv": 4.0}
DEEPER = {"config": {"num_hidden_layers": 4}}
REFUSED = [
    *(("llama", {"more": [name]}, f"holds {name}, which the table of the family 'llama'") for name in UNKNOWN),
    *(
        ("llama", {"without": (f"layers.1.{part}.weight",)}, f"lacks layers.1.{part}.weight .*of another family")
        for part in LACKED
    ),
    *(("llama", {"config": {key: value}}, f"config.json sets {key} to") for key, value in SETTINGS.items()),
    # What nothing in the file shows is not assumed.
    ("gemma", DEEPER, "family 'gemma' add 1 to the gains.*shows that this model does"),
    ("smollm3", DEEPER, "family 'smollm3' rotate in some layers only.*shows that this model does"),
    ("cohere", DEEPER, "family 'cohere' rotate neighboring.*shows that this model does"),
]


@pytest.mark.parametrize(("family", "changed", "said"), REFUSED)
def test_what_the_table_does_not_know_or_expects_in_vain_is_refused(tmp_path, family, changed, said):
    with pytest.raises(InputError, match=said):
        opened(tmp_path, family, **changed)


@pytest.mark.parametrize("family", [None, "llama"])
def test_a_model_of_the_table_s_own_type_may_lack_or_hold_anything(tmp_path, family):
    changed = {"without": (f"{BLOCK}.self_attn.k_proj.weight",), "more": ["model.layers.0.self_attn.q_proj.bias"]}
    checkpoint = opened(tmp_path, family, {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}, **changed)
    assert "1 tensor in the file is not used by this architecture" in (checkpoint.note or "")
    assert not {"blocks.1.attn.k", "blocks.0.attn.q.bias"} & set(checkpoint)


def test_a_number_that_the_file_does_not_give_is_not_assumed(tmp_path):
    write_checkpoint(tmp_path, config={"model_type": "my-own"})
    assert open_checkpoint(in_folder(tmp_path), "gpt2")
    silent = {key: value for key, value in LLAMA.items() if key != "rms_norm_eps"}
    with pytest.raises(InputError, match=r"gives no rms_norm_eps\. Models of the family 'llama' then have"):
        read_model(tmp_path, silent, LLAMA_TENSORS, "llama")


def test_a_causal_model_is_not_read_as_one_that_sees_both_sides(tmp_path):
    write_checkpoint(tmp_path, "bert", config={"model_type": "my-own"})
    assert not open_checkpoint(in_folder(tmp_path), "bert").architecture.causal
    write_checkpoint(tmp_path, "bert", config={"model_type": "my-own", "architectures": ["MineForCausalLM"]})
    with pytest.raises(InputError, match="Models of the family 'bert' see the words that follow"):
        open_checkpoint(in_folder(tmp_path), "bert")


def test_a_type_with_a_table_is_read_by_no_other(tmp_path):
    with pytest.raises(InputError, match="type 'gpt2', which has a table of its own: leave out --family"):
        open_checkpoint(in_folder(write_checkpoint(tmp_path, config=config_of("gpt2"))), "gptj")


def test_tensors_of_quantized_matrices_are_known(tmp_path):
    stems = [name.removesuffix(".weight") for name in LLAMA_TENSORS if "_proj" in name]
    packed = {f"{stem}.{part}" for stem in stems for part in ("qweight", "qzeros", "scales", "g_idx")}
    changed = {"more": sorted(packed), "without": ("_proj.weight",)}
    checkpoint = opened(tmp_path, "llama", {"quantization_config": {"bits": 4}}, **changed)
    assert "blocks.0.ln1.gain" in checkpoint
    assert "blocks.0.attn.q" not in checkpoint
    with pytest.raises(InputError, match=r"holds model\.layers\.0\.mlp\.down_proj\.g_idx"):
        opened(tmp_path, "llama", **changed)


def test_what_is_published():
    wrong = {"gemma": "positions: 4.7", NO_TYPE: "no"}
    found = Outcome("cwm", "read", ["llama"], wrong, refused={"bert": "a sentence"})
    kept = {"alone": "read", "tables": 3, "right": ["llama"], "wrong": wrong}
    assert row(found) == {"model_type": "cwm", **kept}
    there = json.loads(lookalikes.RESULTS.read_text("utf-8"))["rows"]
    assert not any(row["wrong"] for row in there)
    assert len({row["model_type"] for row in there if row["tables"]}) >= 80
    assert sum(len(row["right"]) for row in there) < sum(row["tables"] for row in there)
    assert sum(row["alone"] is not None for row in there) >= 100


# Types that were once read wrongly as Llama, and others by other tables.
AS_LLAMA = (
    *("aria_text", "bitnet", "diffllama", "ernie4_5_moe", "flint", "hunyuan_v1_dense", "hunyuan_v1_moe", "jais2"),
    *("kolibri1", "minimax_m2", "olmoe", "phimoe", "qwen2_moe"),
)
CAME = (
    *((kind, "llama", "refused") for kind in AS_LLAMA),
    ("cwm", "gemma", "refused"),
    ("ministral", "smollm3", "refused"),
    ("ministral", "granite", "refused"),
    ("cwm", "llama", "right"),
    ("ministral", "mistral", "right"),
    ("gpt-sw3", "gpt2", "right"),
)


@pytest.mark.oracle
@pytest.mark.parametrize(("kind", "table", "came"), CAME)
def test_what_was_once_read_wrongly_is_refused_and_what_fits_is_read_rightly(kind, table, came):
    assert list(getattr(outcome(kind, [table]), came)) == [table]


READ = ("mamba", "rwkv", "funnel", "big_bird", "convbert", "nystromformer", "llava", "owlvit")
ALONE = {**dict.fromkeys(READ, "read"), **dict.fromkeys(("hubert", "xlnet"), "refused")}


@pytest.mark.oracle
@pytest.mark.parametrize("kind", sorted(ALONE.keys() - known_types()))
def test_of_a_type_without_a_table_the_token_side_is_right_or_refused(kind):
    found = outcome(kind, [])
    assert (found.alone, found.wrong) == (ALONE[kind], {})


@pytest.mark.oracle
def test_ten_types_by_chance_are_read_wrongly_by_no_table():
    drawn = random.Random(0).sample(sorted(language_models() - known_types()), 10)
    found = [one for kind in drawn if (one := outcome(kind, [table.name for table in families()])) is not None]
    assert {one.model_type: one.wrong for one in found if one.wrong} == {}
    assert sum(len(one.refused) for one in found) > 0.9 * len(found) * len(families()) > 4 * len(families())


@pytest.mark.oracle
def test_a_wrong_reading_is_found(monkeypatch):
    monkeypatch.setattr("generators.checkpoint.lookalikes.check", lambda *args: None)
    monkeypatch.setattr("generators.checkpoint.unread.sentences", lambda *args: [])
    assert list(outcome("diffllama", ["llama"]).wrong) == ["llama"]


def test_a_result_is_of_the_output_matrix_in_the_file_and_the_page_says_so(tmp_path):
    zero_layer = next(finding for finding in FINDINGS if finding.name == "zero_layer")
    write_checkpoint(tmp_path, changed={"lm_head.weight": np.full((50, 24), 0.5, np.float32)})
    model = Model(name="own", title="Own", notes="Small.", sources=(FolderSource(folder=tmp_path),))
    planned = prepare(open_model(model, Places()), [zero_layer])
    assert planned.plans[0].tensors["unembedding"].name == "lm_head.weight"
    said = planned.record.notes or ""
    assert said.startswith("Small. config.json says, or leaves unsaid,")
    published = SimpleNamespace(model=SimpleNamespace(title="Own", notes=said))
    assert titled(published, model, [], []).notes == said
    assert titled(published, model.model_copy(update={"notes": "Changed."}), [], []).notes == "Changed."


def test_what_it_costs_is_said_without_reading_output_matrices(tmp_path, monkeypatch):
    write_checkpoint(tmp_path, changed={"lm_head.weight": np.ones((50, 24), np.float32)})
    files = in_folder(tmp_path)
    monkeypatch.setattr(type(files), "parts", lambda self, name: pytest.fail(f"{name} is read"))
    assert open_checkpoint(files, compare=False).architecture.tied


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("output", "tie"),
    [(np.add, None), (np.add, True), (lambda E, _: E, None), (lambda E, _: E.astype(np.float64), None)],
    ids=["other", "other-though-tied", "same", "same-widened"],
)
def test_transformers_and_the_atlas_take_the_output_matrix_in_the_file_where_it_differs(tmp_path, output, tie):
    from transformers import AutoModelForCausalLM

    build(OracleCase("gpt2")).save_pretrained(tmp_path)
    conditions.change_config(tmp_path, tie_word_embeddings=tie)
    tensors = load_file(tmp_path / "model.safetensors")
    stored = output(tensors["transformer.wte.weight"], np.float32(1))
    save_file({**tensors, "lm_head.weight": stored}, tmp_path / "model.safetensors", metadata={"format": "pt"})
    used = AutoModelForCausalLM.from_pretrained(tmp_path, dtype="float32").get_output_embeddings().weight
    checkpoint = open_checkpoint(in_folder(tmp_path))
    differs = output is np.add
    assert checkpoint.architecture.tied is not differs
    assert ("lm_head.weight in its file is another matrix" in (checkpoint.note or "")) == differs
    np.testing.assert_array_equal(checkpoint["unembedding" if differs else "token_embedding"], used.detach().numpy())
