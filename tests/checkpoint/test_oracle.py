"""Every family's table agrees with what PyTorch and transformers compute; a wrong table can't pass."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from generators.base.architecture import Architecture
from generators.base.errors import InputError
from generators.checkpoint.checkpoint import Checkpoint
from generators.checkpoint.families import families
from generators.checkpoint.reading import understood
from generators.checkpoint.roles import Slot, changed, fused, norm, part_of
from generators.checkpoint.sources import in_folder
from tests.checkpoint.oracle.__main__ import RESULTS
from tests.checkpoint.oracle.cases import CASES
from tests.checkpoint.oracle.comparison import TOLERANCE, ModelOracle
from tests.checkpoint.oracle.table import not_seen, table_row

OF_OTHER_SOFTWARE = {"nanogpt", "transformer_lens"}  # compared in test_formats.py


def test_every_family_and_every_type_of_model_has_an_oracle_and_all_agree():
    listed = {(family.name, kind) for family in families() for kind in family.model_types}
    listed = {(name, kind) for name, kind in listed if name not in OF_OTHER_SOFTWARE}
    assert listed == {(case.family, case.type) for case in CASES}
    report = json.loads(RESULTS.read_text("utf-8"))
    rows = [(row["family"], row["model_type"], row["variant"]) for row in report["rows"]]
    assert rows == [(case.family, case.type, case.note or None) for case in CASES]
    assert max(row["largest_difference"] for row in report["rows"]) <= TOLERANCE


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_table_agrees_with_the_model_and_finds_all_of_it(case):
    oracle = ModelOracle(case)
    roles = dict(oracle.family.roles(oracle.architecture.n_layer))
    assert {role for role in roles if role not in oracle.roles} <= {"unembedding"}
    assert [role for role in oracle.opened if oracle.opened.missing_for(role)] == []
    found = oracle.compare()
    assert {what: off for what, off in found.items() if off > TOLERANCE} == {}
    row = table_row(case, found, oracle)
    assert not_seen(case, row, oracle) == []
    assert row["ln1"] or "blocks.0.ln1.gain" not in oracle.roles
    if oracle.architecture.positions in ("learned", "formula", "relative", "alibi") and case.scores and case.eager:
        assert row["kernel"]


GATE_UP = "layers.{i}.mlp.gate_up_proj"
LN1, LN2 = "layers.{i}.input_layernorm", "layers.{i}.post_attention_layernorm"
# What is wrong -> the case, the slots of blocks that are wrong, and the numbers.
WRONG: dict[str, tuple[str, Mapping[str, Slot], Mapping[str, Any]]] = {
    "NeoX's heads one block after another": ("gpt_neox", fused("layers.{i}.attention.query_key_value", "a a a"), {}),
    "CodeGen in the usual order": ("codegen", fused("h.{i}.attn.qkv_proj", "a a a", bias=False, groups=4), {}),
    "Phi-3's gate as what it lets through": (
        "phi3",
        {**part_of("mlp.gate", GATE_UP, "f f", 1), **part_of("mlp.in", GATE_UP, "f f", 0)},
        {},
    ),
    "Gemma's gain as it is stored": ("gemma", norm("ln1", LN1, bias=False), {}),
    "Nemotron's gain as it is stored": ("nemotron", norm("ln1", LN1), {}),
    "Gemma 2's second norm by its old name": ("gemma2", norm("ln2", LN2, bias=False, plus=1), {}),
    "NeoX with one norm for both": ("gpt_neox", norm("ln2", LN1), {}),
    "GPT-2 transposed": ("gpt2", fused("h.{i}.attn.c_attn", "a a a", stored="in out", order="kqv"), {}),
    "GPT-Neo scaled": ("gpt_neo", {}, {"score_scale": None}),
    "GPT-Neo without windows": ("gpt_neo", {}, {"windows": ()}),
    "Cohere turned by halves": ("cohere", {}, {"halves": True}),
    "BLOOM without slopes": ("bloom", {}, {"slopes": ()}),
    "T5 scaled": ("t5--encoder", {}, {"score_scale": None}),
    "BERT with all in sight": ("bert (decoder)", {}, {"causal": False}),
    "DeBERTa without the norm of its convolution": ("deberta-v2 (convolution)", {}, {"unconvolved": True}),
    "RoBERTa from the first row": ("roberta", {}, {"unskipped": True}),
    "ViT with its class as a position": ("vit", {}, {"unskipped": True}),
    "ViT MAE with its class as a position": ("vit_mae", {}, {"unskipped": True}),
    "GLM turned by halves": ("glm", {}, {"halves": True}),
    "OLMo 3 without windows": ("olmo3", {}, {"windows": ()}),
    "EuroBERT with only what came before in sight": ("eurobert", {}, {"causal": True}),
    "Gemma 3 with a cap": ("gemma3_text (cap)", {}, {"score_cap": 0.5}),
    "Llama's embeddings scaled": ("llama", {}, {"embedding_scale": 2.0}),
}


@pytest.mark.oracle
@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_table_does_not_pass(fault):
    name, slots, numbers = WRONG[fault]
    case = next(case for case in CASES if case.name == name)

    def open_it(folder):
        files = in_folder(folder, stack=case.stack)
        family = next(family for family in families() if family.name == case.family)
        family, architecture = understood(files.config(), family)
        family, fields = changed(family, block_slots=slots), dict(numbers)
        if fields.pop("halves", False):
            fields["rotary"] = tuple(replace(turn, adjacent=False) for turn in architecture.rotary)
        if fields.pop("unconvolved", False):
            family = changed(family, second_block_slots={})
        if fields.pop("unskipped", False):
            table = family.slots["position_embedding"]
            fields["n_ctx"] = architecture.n_ctx + table.skip
            family = changed(family, slots={"position_embedding": replace(table, skip=0)})
        return Checkpoint(files, family, replace(architecture, **fields))

    found = ModelOracle(case, open_it).compare()
    assert max(found.values()) > 30 * TOLERANCE, found


@pytest.mark.oracle
@pytest.mark.parametrize("case", [case for case in CASES if not case.note], ids=lambda case: case.name)
def test_silence_in_a_config_is_read_as_the_software_reads_it(case):
    from transformers import CONFIG_MAPPING

    kind = CONFIG_MAPPING[case.type]
    family = next(family for family in families() if family.name == case.family)
    full = kind(**({"pad_token_id": 1, "vocab_size": 33} if case.type == "esm" else {})).to_dict()
    place = full[family.at] if family.at else full
    if family.name.startswith("gemma3"):
        place.pop("rope_parameters")  # read as older files write it
    read_in_full = _with_heads(understood(full, family)[1])
    differing = {}
    for key in list(place):
        stripped = {name: value for name, value in place.items() if name != key}
        config = {**full, family.at: stripped} if family.at else stripped
        try:
            read = _with_heads(understood(config, family)[1])
        except InputError:
            continue
        is_scaled = key == "rope_parameters" and kind().to_dict()[key].get("rope_type") != "default"
        if read != read_in_full and not is_scaled and (case.type, key) != ("esm", "pad_token_id"):
            differing[key] = [name for name, value in vars(read_in_full).items() if vars(read)[name] != value]
    assert differing == {}


def _with_heads(architecture: Architecture) -> Architecture:
    """Return an architecture in which as many heads of keys as of queries are said, not left unsaid."""
    return replace(architecture, n_kv_head=architecture.n_kv_head or architecture.n_head)
