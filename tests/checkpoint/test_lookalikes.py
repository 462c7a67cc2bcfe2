"""A model of one type by the table of another: read rightly or refused. Weights are made here, or by transformers.

A pair of a type and a table (`--family`) is *refused* with a sentence, *right* where all that the oracle compares
agrees with the model as transformers runs it, and wrong otherwise.
"""

import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from generators.base.errors import AtlasError, InputError
from generators.checkpoint.checkpoint import Checkpoint, open_checkpoint
from generators.checkpoint.families import families, has_table
from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import Places, in_folder
from generators.compute.plan import open_model, prepare
from generators.findings import FINDINGS
from generators.site.view import titled
from tests.checkpoint.oracle import conditions
from tests.checkpoint.oracle.cases import OracleCase
from tests.checkpoint.oracle.comparison import TOLERANCE, ModelOracle
from tests.checkpoint.oracle.model import build, untrained
from tests.checkpoint.oracle.table import not_seen, table_row
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


# Types that transformers has and no table

MOST_NUMBERS = 20_000_000  # of a small model; a type that stays larger has sizes that the small config doesn't name
LAYERS = 7
USUAL_HEAD = 8  # 32 channels of the stream, 4 heads
LAYER_KEYS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers", "decoder_layers")
NO_TABLE = "(none)"
KNOWN_TYPES = frozenset(kind for family in families() for kind in family.model_types)


def deeper(kind: str) -> OracleCase:
    """Return a case with more layers, as some tables treat every fourth or sixth in another way.

    Its heads share the stream's width: other widths would have tables refuse a model by its shapes.
    """
    from transformers import CONFIG_MAPPING

    known = CONFIG_MAPPING[kind]().to_dict()
    config = {key: LAYERS for key in LAYER_KEYS if key in known}
    return OracleCase(NO_TABLE, kind, config=config | ({"head_dim": USUAL_HEAD} if known.get("head_dim") else {}))


def saved(kind: str, folder: Path) -> tuple[OracleCase, Any] | None:
    """Save a small model, with more layers if it can be so; None if its type can't be made small."""
    import torch

    for attempt in (deeper, lambda kind: OracleCase(NO_TABLE, kind)):
        with suppress(Exception):  # whatever a config of such sizes makes transformers raise
            case = attempt(kind)
            with torch.device("meta"):
                size = sum(parameter.numel() for parameter in untrained(case).parameters())
            if size <= MOST_NUMBERS:
                model = build(case)
                model.save_pretrained(folder)
                return case, model
    return None


def by_tables(kind: str, tables: list[str], folder: Path) -> dict[str, str]:
    """Return what comes of a type of model by each table; empty if it can't be made small."""
    made, found = saved(kind, folder), {}
    for table in tables if made else ():
        try:
            dict(open_checkpoint(in_folder(folder), table))  # every tensor can be read, or it is refused
        except InputError:
            found[table] = "refused"
            continue
        found[table] = differs(replace(made[0], family=table, model_type=made[0].type), table) or "right"
    return found


def differs(case: OracleCase, table: str) -> str:
    """Return what differs from the model or can't be compared; empty where all agrees."""
    try:
        oracle = ModelOracle(case, lambda folder: open_checkpoint(in_folder(folder), table))
        found = oracle.compare()
        seen = table_row(case, found, oracle)
    except Exception as error:  # the oracle can't follow such a model: what isn't shown to be right isn't right
        return f"can't be compared: {type(error).__name__} {error}"
    off = {what: worst for what, worst in found.items() if worst > TOLERANCE}
    unseen = not_seen(case, seen, oracle)
    return f"differs: {off}" if off else f"not compared: {', '.join(unseen)}" if unseen else ""


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
def test_what_was_once_read_wrongly_is_refused_and_what_fits_is_read_rightly(tmp_path, kind, table, came):
    assert by_tables(kind, [table], tmp_path) == {table: came}


@pytest.mark.oracle
def test_ten_types_by_chance_are_read_wrongly_by_no_table(tmp_path):
    from transformers.models.auto import modeling_auto as auto

    mappings = ("CAUSAL_LM", "MASKED_LM", "SEQ_TO_SEQ_CAUSAL_LM")
    kinds = {kind for name in mappings for kind in getattr(auto, f"MODEL_FOR_{name}_MAPPING_NAMES")} - KNOWN_TYPES
    tables = [table.name for table in families()]
    found = [by_tables(kind, tables, tmp_path / kind) for kind in random.Random(0).sample(sorted(kinds), 10)]
    came = [one for by_table in found for one in by_table.values()]
    assert {*came} <= {"right", "refused"}
    assert came.count("refused") > 0.9 * len(came) and len(came) > 4 * len(tables)


@pytest.mark.oracle
def test_a_wrong_reading_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("generators.checkpoint.lookalikes.check", lambda *args: None)
    monkeypatch.setattr("generators.checkpoint.unread.sentences", lambda *args: [])
    assert by_tables("diffllama", ["llama"], tmp_path)["llama"].startswith("differs")


READ = ("mamba", "rwkv", "funnel", "big_bird", "convbert", "nystromformer", "llava", "owlvit")
ALONE = {**dict.fromkeys(READ, True), **dict.fromkeys(("hubert", "xlnet"), False)}


@pytest.mark.oracle
@pytest.mark.parametrize("kind", sorted(ALONE.keys() - KNOWN_TYPES))
def test_of_a_type_without_a_table_the_token_side_is_right_or_refused(kind, tmp_path):
    _, model = saved(kind, tmp_path)
    small = Model(name="small", title="small", sources=(FolderSource(folder=tmp_path),))
    if not ALONE[kind]:
        with pytest.raises(AtlasError, match=r"\.$"):
            open_model(small, Places())
        return
    opened = open_model(small, Places())
    assert not has_table(opened.checkpoint.family)
    assert list(opened.checkpoint) == ["token_embedding"]
    assert any(np.array_equal(opened.checkpoint["token_embedding"], E.detach().float()) for E in embeddings(model))


def embeddings(model: Any) -> list[Any]:
    """Return what transformers calls the token embedding; where it calls nothing so, those of all parts."""
    import torch

    with suppress(NotImplementedError, AttributeError):
        named = model.get_input_embeddings().weight
        if named.ndim == 2:
            return [named]
    return [part.weight for part in model.modules() if isinstance(part, torch.nn.Embedding)]


# Output matrices beside tied ones


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
