"""Cut small pieces of published checkpoints, as their formats store them.

Run as `python -m tests.checkpoint.slices.cut REAL`, where REAL is what `make real-models` laid out. All three may be
passed on: SmolLM2 under Apache 2.0, Whisper and rxnfp under MIT. Bytes of what stays are those of the original.
"""

import sys
from pathlib import Path

import gguf
import numpy as np
import torch

from generators.checkpoint.sources.ctranslate2_files import NUMBERS, CTranslate2
from tests.checkpoint.other_software import write_ctranslate2

HERE = Path(__file__).parent
ROWS = 96  # of each matrix
TOKENS = "tokenizer.ggml.tokens"
OF_GGUF = ("token_embd.weight", "blk.0.attn_norm.weight", "blk.0.attn_k.weight", "output_norm.weight")
OF_WHISPER = (
    "decoder/embeddings/weight",
    "decoder/position_encodings/encodings",
    "decoder/layer_0/self_attention/layer_norm/gamma",
)
OF_RXNFP = ("bert.embeddings.position_embeddings.weight", "bert.embeddings.LayerNorm.weight")


def cut_gguf(path: Path) -> None:
    """Keep rows of blocks as they are packed, the settings of the model, and as many tokens as rows."""
    read = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(HERE / "smollm2.gguf", "llama")
    for name, field in read.fields.items():
        if name.startswith("llama.") and not name.endswith(("block_count", "vocab_size")):
            writer.add_key_value(name, field.contents(), field.types[0])
    writer.add_block_count(1)
    writer.add_vocab_size(ROWS)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(read.fields[TOKENS].contents()[:ROWS])
    for tensor in read.tensors:
        if tensor.name in OF_GGUF:
            writer.add_tensor(
                tensor.name, tensor.data[:ROWS] if tensor.data.ndim > 1 else tensor.data, raw_dtype=tensor.tensor_type
            )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def cut_ctranslate2(path: Path) -> None:
    """Keep rows of three tensors, and the settings, which stand among the tensors as single numbers."""
    read = CTranslate2()
    whole = read.contents(path)
    kept = {name: np.array(value, np.float32) for name, value in whole.settings[NUMBERS].items()}
    for name in OF_WHISPER:
        shape = whole.tensors[name].shape
        kept[name] = read.rows(path, name, slice(0, min(ROWS, shape[0]) if len(shape) > 1 else shape[0]))
    write_ctranslate2(HERE / "whisper.bin", kept, aliases={})


def cut_pickle(path: Path) -> None:
    whole = torch.load(path, weights_only=True)
    torch.save({name: whole[name][: 2 * ROWS].clone() for name in OF_RXNFP}, HERE / "rxnfp.pt")


if __name__ == "__main__":
    real = Path(sys.argv[1])
    cut_gguf(next((real / "smollm2-135m-instruct").glob("*.gguf")))
    cut_ctranslate2(real / "whisper-base" / "model.bin")
    cut_pickle(real / "rxnfp-pretrained" / "pytorch_model.bin")
