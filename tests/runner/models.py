"""Small random models of several kinds, as transformers makes and writes them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from generators.base.architecture import Architecture
from generators.base.runs import Windows

N, D, V, LAYERS, HEADS = 40, 32, 60, 3, 4


@dataclass(frozen=True)
class Kind:
    model_type: str
    causal: bool
    tensor: str | None  # of the position embedding
    settings: dict[str, Any]
    d_embedding: int | None = None


BERT = {"hidden_size": D, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 2 * D}
BERT |= {"max_position_embeddings": N, "vocab_size": V}
ALBERT = {**BERT, "embedding_size": D // 2}
GPT = {"n_embd": D, "n_layer": LAYERS, "n_head": HEADS, "n_positions": N, "vocab_size": V, "bos_token_id": 1}
MPT = {"d_model": D, "n_layers": LAYERS, "n_heads": HEADS, "max_seq_len": N, "vocab_size": V}
KINDS = {
    "gpt2": Kind("gpt2", True, "wpe.weight", GPT),
    "bert": Kind("bert", False, "embeddings.position_embeddings.weight", BERT),
    "albert": Kind("albert", False, "embeddings.position_embeddings.weight", ALBERT, D // 2),
    "llama": Kind("llama", True, None, {**BERT, "num_key_value_heads": 2}),
    "gpt_neox": Kind("gpt_neox", True, None, BERT),
    "bloom": Kind("bloom", True, None, {"hidden_size": D, "n_layer": LAYERS, "n_head": HEADS, "vocab_size": V}),
    "mpt": Kind("mpt", True, None, MPT),
    "falcon": Kind("falcon", True, None, {**BERT, "alibi": True, "multi_query": False, "parallel_attn": False}),
}


def architecture(kind: Kind, **changed: Any) -> Architecture:
    sizes = {"n_layer": LAYERS, "n_head": HEADS, "d_model": D, "n_ctx": N, "vocab_size": V, "d_head": D // HEADS}
    sizes |= {"d_embedding": kind.d_embedding}
    ways = {"family": kind.model_type, "norm_eps": 1e-5, "causal": kind.causal, "post_norm": not kind.causal}
    return Architecture(**{**sizes, **ways, **changed})


def write_model(folder: Path, kind: Kind, *, head: bool = True) -> Path:
    """Write a random model with its tokenizer; weights are large enough for positions to matter."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind.model_type, **kind.settings)
    if not head:
        model = transformers.AutoModel.from_config(config)
    elif kind.causal:
        model = transformers.AutoModelForCausalLM.from_config(config)
    else:
        model = transformers.AutoModelForMaskedLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    write_tokenizer(folder, kind)
    return folder


def write_tokenizer(folder: Path, kind: Kind) -> None:
    """Write a tokenizer of single characters; an encoder's puts [CLS] and [SEP] around a text."""
    special = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    known = special + [chr(code) for code in range(ord("a"), ord("z") + 1)]
    tokenizer = Tokenizer(models.WordLevel({token: i for i, token in enumerate(known)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    if not kind.causal:
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    tokenizer.enable_truncation(16)
    tokenizer.save(str(folder / "tokenizer.json"))


def random_ids(count: int, length: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(4, V, (count, length)).astype(np.int32)


def by_stage(shown: Callable[..., Any], ids: np.ndarray, **options: Any) -> dict[int, np.ndarray]:
    """Return what `run.hidden_states`, `run.attention` and others show of each stage or layer, all windows joined."""
    parts: dict[int, list[np.ndarray]] = {}
    shown(ids, lambda stage, _, values: parts.setdefault(stage, []).append(values.copy()), **options)
    return {stage: np.concatenate(parts[stage]) for stage in sorted(parts)}


def joined(shown: Callable[..., Any], ids: np.ndarray) -> np.ndarray:
    """Return what `run.logits` and others show of windows, all joined."""
    parts: list[np.ndarray] = []
    shown(ids, lambda _, values: parts.append(np.asarray(values).copy()))
    return np.concatenate(parts)


def last_states(run: Any, ids: np.ndarray) -> np.ndarray:
    return joined(run.states_on_device, ids)


def as_windows(ids: np.ndarray) -> Windows:
    return Windows(ids, (0, ids.shape[1]), np.arange(len(ids)), mask_id=3)
