"""`--family` on a model of another type: read where the table certainly fits it, refused otherwise.

A type that has a table of its own is read by no other. Of any other type, the table must know every setting and every
tensor, and find all that it expects in each block that is there.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from math import isclose
from typing import Any

from generators.base.architecture import Architecture
from generators.base.errors import InputError
from generators.checkpoint.families import families
from generators.checkpoint.reading import understood
from generators.checkpoint.roles import Family
from generators.checkpoint.sources import Files

# Tensors that no table names and that change nothing a table says: masks and angles, which the software computes,
# and what stands on top of the last layer.
COMPUTED = re.compile(
    r"(^|\.)((attn|attention)\.(bias|masked_bias)|position_ids|token_type_ids|(original_)?inv_freq|(cos|sin)_cached|"
    r"rope\.freqs|rope_freqs\.weight)$"
)
ON_TOP = re.compile(
    r"^(lm_head|cls|([a-z_]+\.)?pooler|score|classifier|qa_outputs|generator_lm_head|generator_predictions|"
    r"discriminator_predictions|vocab_transform|vocab_layer_norm|vocab_projector|predictions|final_logits_bias|"
    r"head|decoder\.bias|v_head|value_head|reward_head|multiple_choice_head|seq_relationship|mlm|logit_scale|logit_bias|"
    r"(text|visual)_projection)\b"
)
# DeBERTa's convolution takes the place of its first block's norm.
CONVOLVED = re.compile(r"\.encoder\.conv\.|\.layer\.0\.output\.LayerNorm\.")
EXPERTS = re.compile(r"\.experts\.")
# What quantized models have instead of a matrix: GPTQ and AWQ, bitsandbytes, 8-bit floats, compressed tensors.
PACKED = re.compile(
    r"\.(qweight|qzeros|scales|g_idx|SCB|weight_format|weight\.[\w.]+|input_scale|"
    r"weight_(scale(_inv)?|packed|shape|zero_point|g_idx))$"
)
READ_BY_ALL = "blocks.*.mlp.in"


def check(files: Files, config: Mapping[str, Any], family: Family, architecture: Architecture) -> None:
    """Check that a table, as `understood` gives it, reads a file rightly though it isn't that of the file's type."""
    kind = config.get("model_type")
    if kind in family.model_types:
        return
    if any(kind in table.model_types for table in families()):
        raise InputError(f"The model is of type {kind!r}, which has a table of its own: leave out --family.")
    check_assumed(config, files.origin.place, family, architecture)
    understood(config, next(table for table in families() if table.name == family.name), strictly=True)
    names = as_matrices(files.names(), packed=bool(config.get("quantization_config")))
    check_tensors(names, files.origin.place, family, architecture)


def check_assumed(config: Mapping[str, Any], place: str, family: Family, architecture: Architecture) -> None:
    if assumed := _assumed(config, family, architecture):
        raise InputError(
            f"Models of the family {family.name!r} {assumed}. Nothing in {place} shows that this model does, so it "
            "is not read."
        )


def _assumed(config: Mapping[str, Any], family: Family, a: Architecture) -> str:
    """Return what a table says of a model that neither its config nor its tensors show; empty without such a thing.

    The class that config.json names shows whether a model predicts the next word or one that was left out.
    """
    classes = str(config.get("architectures"))
    if not a.causal and "CausalLM" in classes:
        return "see the words that follow"
    if a.causal and "MaskedLM" in classes:
        return "see no word that follows"
    slots = dict(family.roles(a.n_layer)).values()
    if any(slot.plus for slot in slots):
        return "add 1 to the gains of their norms"
    if any(slot.formula for slot in slots):
        return "compute their positions by a formula"
    if a.slopes and not config.get("alibi"):
        return "lower scores with distance (ALiBi)"
    if any(turns is not None and turns.adjacent for turns in a.rotary):
        return "rotate neighboring channels together"
    if any(turns is None for turns in a.rotary):
        return "rotate in some layers only"
    if isclose(a.embedding_scale, a.d_model**0.5) and not config.get("scale_embedding"):
        return "multiply embeddings by the square root of their width"
    return "don't scale attention scores" if a.score_scale == 1 else ""


def check_tensors(names: Collection[str], place: str, family: Family, architecture: Architecture) -> None:
    slots = dict(family.in_file(names, architecture.n_layer))
    if unknown := unknown_tensors(names, family, architecture):
        raise InputError(
            f"{place} holds {unknown[0]}, which the table of the family {family.name!r} does not know: the model is "
            "of another family, so it is not read."
        )
    blocks = {_block(role) for role, slot in slots.items() if slot is not None} - {""}
    for role, slot in family.roles(architecture.n_layer):
        expected = blocks and _block(role) in {*blocks, ""} and not role.startswith("unembedding")
        if expected and slots[role] is None:
            raise InputError(
                f"{place} lacks {slot.tensor} ({role}), which models of the family {family.name!r} have: the model "
                "is of another family, so it is not read."
            )


def as_matrices(names: Iterable[str], *, packed: bool) -> set[str]:
    """Return names of tensors, with that of a matrix in place of what quantized models have instead of it."""
    return {PACKED.sub(".weight", name) if packed else name for name in names}


def unknown_tensors(names: Collection[str], family: Family, architecture: Architecture) -> list[str]:
    """Return the tensors that a table doesn't know and that may change what it describes, in order."""
    slots = [slot for _, slot in family.roles(architecture.n_layer)]
    slots += [s.in_layer(architecture.n_layer) for s in family.block_slots.values() if "{j}" in s.tensor]
    slots += [slot.through for slot in family.slots.values() if slot.through is not None]
    known = {name for slot in slots for name in family.spellings(slot.tensor)}
    harmless = [COMPUTED, ON_TOP]
    if READ_BY_ALL in family.without:
        harmless.append(EXPERTS)
    if family.name == "deberta-v2":
        harmless.append(CONVOLVED)
    return [n for n in sorted(names) if n not in known and not any(pattern.search(n) for pattern in harmless)]


def _block(role: str) -> str:
    return role.split(".")[1] if role.startswith("blocks.") else ""
