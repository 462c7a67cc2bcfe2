"""The weights of small models as other software stores them, written down by its own rules."""

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from tests.checkpoints import SMALL, Array, Sizes, config_of, tensors_of, tensors_of_llama

CONV1D = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")


def nanogpt_of(tensors: Mapping[str, Array], *, bias: bool = True) -> dict[str, Array]:
    """Return GPT-2's tensors as nanoGPT's model has them: Linear in place of Conv1D."""
    named = {
        f"transformer.{name}": tensor.T.copy() if name.endswith(CONV1D) else tensor
        for name, tensor in tensors.items()
        if bias or not name.endswith(".bias")
    }
    return {**named, "lm_head.weight": named["transformer.wte.weight"]}


def write_nanogpt(folder: Path, tensors: Mapping[str, Array], prefix: str = "", **args: Any) -> Path:
    """Write ckpt.pt as nanoGPT's train.py does, with the state of its optimizer."""
    shape = {"n_layer": SMALL.n_layer, "n_head": SMALL.n_head, "n_embd": SMALL.d_model, "block_size": SMALL.n_ctx}
    folder.mkdir(parents=True, exist_ok=True)
    model = {prefix + name: torch.tensor(tensor) for name, tensor in tensors.items()}
    checkpoint = {
        "model": model,
        "optimizer": {"state": {0: {"exp_avg": torch.zeros(3)}}, "param_groups": [{"lr": 1e-3}]},
        "model_args": {**shape, "bias": True, "vocab_size": SMALL.vocab_size, "dropout": 0.0, **args},
        "iter_num": 2000,
        "best_val_loss": torch.tensor(1.5),
        "config": {"dataset": "openwebtext"},
    }
    torch.save(checkpoint, folder / "ckpt.pt")
    return folder


# What GPT-2 calls a part of a name -> what TransformerLens does.
IN_LENS = {
    "wte.weight": "embed.W_E",
    "wpe.weight": "pos_embed.W_pos",
    "h.": "blocks.",
    **{f"ln_{k}.{kind}": f"ln{k}.{kind[0]}" for k in "12" for kind in ("weight", "bias")},
    **{f"ln_f.{kind}": f"ln_final.{kind[0]}" for kind in ("weight", "bias")},
    **{f"attn.c_proj.{kind}": f"attn.{theirs}_O" for kind, theirs in (("weight", "W"), ("bias", "b"))},
    **{f"mlp.c_fc.{kind}": f"mlp.{theirs}_in" for kind, theirs in (("weight", "W"), ("bias", "b"))},
    **{f"mlp.c_proj.{kind}": f"mlp.{theirs}_out" for kind, theirs in (("weight", "W"), ("bias", "b"))},
}


def renamed(tensors: Mapping[str, Array], parts: Mapping[str, str]) -> dict[str, Array]:
    out = {}
    for name, tensor in tensors.items():
        for theirs, own in parts.items():
            name = name.replace(theirs, own)
        out[name] = tensor
    return out


def lens_of(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Return GPT-2's tensors as TransformerLens names and shapes them, nothing folded."""
    d, heads = SMALL.d_model, SMALL.n_head
    state = renamed(tensors, IN_LENS)
    state |= {"unembed.W_U": tensors["wte.weight"].T.copy(), "unembed.b_U": np.zeros(SMALL.vocab_size, np.float32)}
    for block in (f"blocks.{i}.attn" for i in range(SMALL.n_layer)):
        state[f"{block}.W_O"] = state[f"{block}.W_O"].reshape(heads, -1, d)
        weights, biases = (state.pop(f"{block}.c_attn.{kind}") for kind in ("weight", "bias"))
        for name, weight, bias in zip("QKV", np.split(weights, 3, axis=1), np.split(biases, 3), strict=True):
            state[f"{block}.W_{name}"] = np.ascontiguousarray(weight.reshape(d, heads, -1).swapaxes(0, 1))
            state[f"{block}.b_{name}"] = bias.reshape(heads, -1)
        state[f"{block}.mask"] = np.tril(np.ones((SMALL.n_ctx, SMALL.n_ctx), bool))
        state[f"{block}.IGNORE"] = np.array(-np.inf, np.float32)
    return state


def cfg_of(**other: Any) -> dict[str, Any]:
    c = SMALL.d_model // SMALL.n_head
    shape = {"n_layers": SMALL.n_layer, "d_model": SMALL.d_model, "n_ctx": SMALL.n_ctx, "d_head": c}
    shape |= {"n_heads": SMALL.n_head, "d_mlp": 4 * SMALL.d_model}
    attention = {"attn_scale": c**0.5, "use_attn_scale": True, "use_local_attn": False, "window_size": None}
    attention |= {"attention_dir": "causal", "attn_only": False, "scale_attn_by_inverse_layer_idx": False}
    return {
        **shape,
        **attention,
        **dict.fromkeys(("d_vocab", "d_vocab_out"), SMALL.vocab_size),
        **dict.fromkeys(("final_rms", "parallel_attn_mlp", "gated_mlp"), False),
        "act_fn": "gelu_new",
        "eps": 1e-5,
        "normalization_type": "LN",
        "initializer_range": 0.02,
        "positional_embedding_type": "standard",
        **other,
    }


# GGUF, as llama.cpp's convert_hf_to_gguf.py writes it

LLAMA_SIZES = Sizes(n_layer=2, n_head=4, d_model=64, n_ctx=128, vocab_size=40)
LLAMA_CONFIG = config_of("llama", LLAMA_SIZES, num_key_value_heads=2, intermediate_size=96, tie_word_embeddings=False)
LLAMA_CONFIG |= {"rms_norm_eps": 1e-5, "rope_theta": 10000.0}
GEMMA3_CONFIG = {
    **{key: value for key, value in LLAMA_CONFIG.items() if key not in ("tie_word_embeddings", "rope_theta")},
    "model_type": "gemma3_text",
    "num_hidden_layers": 7,
    "head_dim": 32,
    "sliding_window": 8,
    "rope_theta": 1e6,
    "query_pre_attn_scalar": 32,
}


def gemma3_tensors() -> dict[str, Array]:
    c = GEMMA3_CONFIG
    d, head = c["hidden_size"], c["head_dim"]
    a, b = head * c["num_attention_heads"], head * c["num_key_value_heads"]
    shapes = {"q_proj": (a, d), "o_proj": (d, a), "q_norm": (head,), "k_norm": (head,)}
    more = {f"self_attn.{name}": shape for name, shape in shapes.items()}
    more |= {f"{name}_feedforward_layernorm": (d,) for name in ("pre", "post")}
    tensors = tensors_of_llama(d, c["intermediate_size"], c["vocab_size"], c["num_hidden_layers"], b, more)
    return {name: tensor for name, tensor in tensors.items() if name != "lm_head.weight"}


def write_gemma3_gguf(path: Path, kind: str = "F32", **changed: Any) -> None:
    """Write a small Gemma 3; llama.cpp's converter adds the 1 to gains."""
    c = GEMMA3_CONFIG
    said = {
        **_said_in_gguf(c),
        **dict.fromkeys(("attention.key_length", "attention.value_length"), c["head_dim"]),
        "attention.sliding_window": c["sliding_window"],
    }
    tensors = {
        name: tensor + 1 if name.endswith("norm.weight") else tensor for name, tensor in gemma3_tensors().items()
    }
    write_gguf(path, "gemma3", tensors, said | changed, kind)


def llama_tensors() -> dict[str, Array]:
    c = LLAMA_CONFIG
    return tensors_of_llama(
        c["hidden_size"], c["intermediate_size"], c["vocab_size"], kv=16 * c["num_key_value_heads"]
    )


def turning_neighbors(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Return Llama's tensors with queries and keys in the order of llama.cpp (its `permute`) and of Mistral."""
    heads = {"q_proj": LLAMA_CONFIG["num_attention_heads"], "k_proj": LLAMA_CONFIG["num_key_value_heads"]}
    out = dict(tensors)
    for name, tensor in tensors.items():
        if (key := name.split(".")[-2]) in heads:
            halves = tensor.reshape(heads[key], 2, -1, tensor.shape[1])
            out[name] = np.ascontiguousarray(halves.swapaxes(1, 2).reshape(tensor.shape))
    return out


# Mistral's own files

IN_MISTRAL = {
    "model.layers": "layers",
    "model.embed_tokens": "tok_embeddings",
    "model.norm": "norm",
    "lm_head": "output",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
    **{f"self_attn.{name}_proj": f"attention.w{name}" for name in "qkvo"},
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.up_proj": "feed_forward.w3",
    "mlp.down_proj": "feed_forward.w2",
}
MISTRAL_PARAMS = {
    "dim": 64,
    "n_layers": 2,
    "head_dim": 16,
    "hidden_dim": 96,
    "n_heads": 4,
    "n_kv_heads": 2,
    "norm_eps": 1e-5,
    "vocab_size": 40,
    "rope_theta": 10000.0,
}


@contextmanager
def gguf_writer(path: Path, arch: str = "llama", split: int = 0) -> Iterator[Any]:
    """Yield a writer of a GGUF file, or of shards with `split` tensors each, written at the end."""
    writer = gguf.GGUFWriter(path, arch, split_max_tensors=split)
    yield writer
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_gguf(
    path: Path,
    arch: str,
    tensors: Mapping[str, Array],
    said: Mapping[str, Any],
    kind: str = "F16",
    extra: Mapping[str, Array] | None = None,
    kinds: Mapping[str, str] | None = None,
    split: int = 0,
) -> None:
    """Write a GGUF file: matrices of type `kind`, or as `kinds` says, vectors as F32."""
    known = gguf.MODEL_ARCH[arch.upper() if arch in ("gpt2", "gemma3") else "LLAMA"]
    names = gguf.get_tensor_name_map(known, said["block_count"])
    stored = {names.get_name(name, (".weight", ".bias")): tensor for name, tensor in tensors.items()}
    with gguf_writer(path, arch, split) as writer:
        for key, value in said.items():
            add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string, list: writer.add_array}
            add[type(value)](key if key.startswith("tokenizer.") else f"{arch}.{key}", value)
        for name, tensor in (stored | dict(extra or {})).items():
            if tensor.dtype == np.float64:
                writer.add_tensor(name, tensor)
                continue
            named = (kinds or {}).get(name, kind)
            as_type = getattr(gguf.GGMLQuantizationType, named if tensor.ndim == 2 else "F32")
            data = gguf.quants.quantize(np.ascontiguousarray(tensor), as_type)
            writer.add_tensor(name, data, raw_dtype=as_type)


def write_llama_gguf(
    path: Path,
    kind: str = "F16",
    without: tuple[str, ...] = (),
    arch: str = "llama",
    extra: Mapping[str, Array] | None = None,
    split: int = 0,
    **changed: Any,
) -> None:
    said = {**_said_in_gguf(LLAMA_CONFIG), "rope.dimension_count": 16, "vocab_size": LLAMA_CONFIG["vocab_size"]}
    tensors = {name: t for name, t in turning_neighbors(llama_tensors()).items() if name not in without}
    write_gguf(path, arch, tensors, said | changed, kind, extra, split=split)


# What llama.cpp calls a setting -> what configs call it.
IN_GGUF = {
    "block_count": ("num_hidden_layers", "n_layer"),
    "context_length": ("max_position_embeddings", "n_positions"),
    "embedding_length": ("hidden_size", "n_embd"),
    "feed_forward_length": ("intermediate_size", "n_inner"),
    "attention.head_count": ("num_attention_heads", "n_head"),
    "attention.head_count_kv": ("num_key_value_heads",),
    "attention.layer_norm_rms_epsilon": ("rms_norm_eps",),
    "attention.layer_norm_epsilon": ("layer_norm_epsilon",),
    "rope.freq_base": ("rope_theta",),
}


def _said_in_gguf(c: Mapping[str, Any]) -> dict[str, Any]:
    return {key: c[name] for key, names in IN_GGUF.items() for name in names if name in c}


def write_gpt2_gguf(
    path: Path,
    kind: str = "F32",
    sizes: Sizes = SMALL,
    tensors: Mapping[str, Array] | None = None,
    kinds: Mapping[str, str] | None = None,
    **more: Any,
) -> None:
    said = _said_in_gguf(config_of("gpt2", sizes, n_inner=4 * sizes.d_model)) | more
    of_model = tensors or tensors_of("gpt2", sizes)
    turned = {name: tensor.T.copy() if name.endswith(CONV1D) else tensor for name, tensor in of_model.items()}
    write_gguf(path, "gpt2", turned, said, kind, kinds=kinds)


# CTranslate2, as its converter writes Whisper

WHISPER_CONFIG = {
    "model_type": "whisper",
    "d_model": 16,
    "vocab_size": 30,
    **dict.fromkeys(("encoder_layers", "decoder_layers"), 2),
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 4,
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 24),
    "max_source_positions": 12,
    "max_target_positions": 9,
}
CT2_TYPES = {"float32": 0, "int8": 1, "int16": 2, "float16": 4}


# What transformers calls the equal parts of a tensor -> what CTranslate2 calls it.
IN_CT2 = {
    "embed_tokens": "embeddings",
    "embed_positions": "position_encodings",
    **{name: name for name in ("conv1", "conv2", "layer_norm")},
    "self_attn_layer_norm": "self_attention/layer_norm",
    "self_attn.q_proj self_attn.k_proj self_attn.v_proj": "self_attention/linear_0",
    "self_attn.out_proj": "self_attention/linear_1",
    "encoder_attn_layer_norm": "attention/layer_norm",
    "encoder_attn.q_proj": "attention/linear_0",
    "encoder_attn.k_proj encoder_attn.v_proj": "attention/linear_1",
    "encoder_attn.out_proj": "attention/linear_2",
    "final_layer_norm": "ffn/layer_norm",
    "fc1": "ffn/linear_0",
    "fc2": "ffn/linear_1",
}
IN_NORMS = {"weight": "gamma", "bias": "beta"}


def whisper_tensors() -> dict[str, Array]:
    """Return the tensors of a small Whisper by transformers' names, without those that no table reads."""
    d, f = WHISPER_CONFIG["d_model"], WHISPER_CONFIG["encoder_ffn_dim"]
    shapes: dict[str, tuple[int, ...]] = {"model.decoder.embed_tokens": (WHISPER_CONFIG["vocab_size"], d)}
    for half, positions in (("encoder", "max_source_positions"), ("decoder", "max_target_positions")):
        shapes |= {f"model.{half}.embed_positions": (WHISPER_CONFIG[positions], d), f"model.{half}.layer_norm": (d,)}
        for i in range(2):
            layer = f"model.{half}.layers.{i}"
            shapes |= {f"{layer}.self_attn.{name}": (d, d) for name in ("q_proj", "k_proj", "v_proj", "out_proj")}
            shapes |= {f"{layer}.fc1": (f, d), f"{layer}.fc2": (d, f)}
            shapes |= {f"{layer}.{name}": (d,) for name in ("self_attn_layer_norm", "final_layer_norm")}
    draw = np.random.default_rng(0)
    tensors = {f"{name}.weight": draw.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    biased = [name for name in shapes if "embed" not in name and not name.endswith("k_proj")]
    return tensors | {f"{name}.bias": draw.standard_normal(shapes[name][0], np.float32) for name in biased}


def whisper_in_ct2(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Return the same by CTranslate2's names: queries, keys and values are one matrix, and all have biases."""
    out: dict[str, Array] = {}
    for half in ("encoder", "decoder"):
        out[f"{half}/num_heads"] = np.array(WHISPER_CONFIG[f"{half}_attention_heads"], np.int16)
        places = {f"model.{half}": half} | {f"model.{half}.layers.{i}": f"{half}/layer_{i}" for i in range(2)}
        for (theirs, ours), (names, here) in product(places.items(), IN_CT2.items()):
            for kind in ("weight", "bias"):
                parts = [tensors.get(f"{theirs}.{name}.{kind}") for name in names.split()]
                there = next((part for part in parts if part is not None), None)
                if there is not None:
                    stored = IN_NORMS[kind] if "norm" in here else "encodings" if "positions" in names else kind
                    whole = [np.zeros_like(there) if part is None else part for part in parts]
                    out[f"{ours}/{here}/{stored}"] = np.concatenate(whole)
    return out


def write_ctranslate2(
    path: Path,
    tensors: Mapping[str, Array] | None = None,
    aliases: Mapping[str, str] | None = None,
    spec: str = "WhisperSpec",
    version: int = 6,
) -> None:
    """Write a model.bin; a small Whisper whose output matrix is tied, unless it says otherwise."""
    stored = whisper_in_ct2(whisper_tensors()) if tensors is None else tensors
    names = {"decoder/projection/weight": "decoder/embeddings/weight"} if aliases is None else aliases

    def text(value: str) -> bytes:
        return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"

    out = [struct.pack("<I", version), text(spec), struct.pack("<II", 3, len(stored))]
    for name, tensor in stored.items():
        out += [text(name), struct.pack(f"<B{tensor.ndim}I", tensor.ndim, *tensor.shape)]
        out += [struct.pack("<BI", CT2_TYPES[tensor.dtype.name], tensor.nbytes), tensor.tobytes()]
    out += [struct.pack("<I", len(names)), *(text(alias) + text(name) for alias, name in names.items())]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(out))
