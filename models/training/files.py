"""A trained model's folder: weights in float16, config, tokenizer, token counts, and what its record says."""

import copy
import json
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.utils import parametrize
from transformers import AutoModelForCausalLM, PreTrainedModel

from models.training.corpus import END_OF_TEXT, TOKENIZER_ONLY, Encoded, LibraryFiles
from models.training.gpt2 import ACTIVATION_KEYS, GELU_NEW, GELU_NEW_FAST
from models.training.run import TrainingRun, versions

RECORD = "training.json"


def write_model(run: TrainingRun, text: Encoded, out: Path) -> PreTrainedModel:
    """Write the files that others load; return the model as they will have it, its rounded weights in float32."""
    out.mkdir(parents=True, exist_ok=True)
    model = plain(copy.deepcopy(run.model).to("cpu")).half()
    for key in ACTIVATION_KEYS:
        if getattr(model.config, key, None) == GELU_NEW_FAST:
            setattr(model.config, key, GELU_NEW)
    model.save_pretrained(out)
    (out / "model.safetensors").chmod(0o644)  # written for its owner alone
    text.tokenizer.save(str(out / "tokenizer.json"))
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": run.recipe.n_ctx,
        **dict.fromkeys(("bos_token", "eos_token", "pad_token", "unk_token"), END_OF_TEXT),
    }
    (out / "tokenizer_config.json").write_text(json.dumps(tokenizer_config, indent=1) + "\n")
    np.save(out / "token_counts.npy", text.counts)
    np.save(out / "held_out_tokens.npy", text.held_out.astype(np.uint16))
    return AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)


def plain(model: PreTrainedModel) -> PreTrainedModel:
    """Put what a parametrized tensor is computed from in its place: a table of rank three becomes a full table."""
    for module in model.modules():
        if parametrize.is_parametrized(module):
            for name in list(module.parametrizations):
                parametrize.remove_parametrizations(module, name, leave_parametrized=True)
    return model


def record_of(run: TrainingRun, corpus: LibraryFiles, text: Encoded, published: PreTrainedModel) -> dict[str, Any]:
    """Return what any model's record says: how it came about, and its losses in nats a token."""
    return {
        "recipe": asdict(run.recipe),
        "versions": versions(),
        "device": run.device,
        "corpus": {
            "sha256": corpus.sha256,
            "files": {part: len(getattr(corpus, part)) for part in ("trained", "held_out", "tokenizer_only")},
            "tokenizer_only_folders": list(TOKENIZER_ONLY),
            "held_out_files": sorted(corpus.held_out),
            "trained_tokens": len(text.trained),
            "held_out_tokens": len(text.held_out),
            "held_out_bytes": len("".join(corpus.held_out.values()).encode()),
        },
        "parameters": published.num_parameters(),
        "vocab_size": len(text.counts),
        "never_seen_tokens": int((text.counts == 0).sum()),
        "token_counts_sha256": sha256(text.counts.tobytes()).hexdigest(),
        "losses": run.losses,
        "held_out_losses": run.held_out,
    }


def write_record(record: dict[str, Any], out: Path) -> None:
    """Write the record, on which the model's card rests."""
    (out / RECORD).write_text(json.dumps(record, indent=1) + "\n")
