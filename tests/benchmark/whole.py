"""The whole command on the real GPT-2 weights, and on a made-up vocabulary that is large."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from generators.checkpoint.checkpoint import Checkpoint
from generators.compute.plan import inputs
from tests.benchmark.made_up import ROWS
from tests.benchmark.one_model import of_weights, opened_in
from tests.benchmark.timing import ROOT, CannotMeasureError, processor_seconds_of

SEED = 0
COMMAND = """
import json, os
from generators.cli import main
from tests.process_memory import most_memory
try:
    main()
finally:
    print(json.dumps({"peak": most_memory(), "processor_seconds": sum(os.times()[:4])}))
"""
LARGE = 128_000, 4096  # tokens and channels: of a model of 8 billion parameters
LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": LARGE[1],
    "vocab_size": LARGE[0],
}
LLAMA |= {"num_hidden_layers": 1, "num_attention_heads": 32, "intermediate_size": 14336, "rms_norm_eps": 1e-5}
LLAMA |= {"max_position_embeddings": 8192, "rope_theta": 5e5, "tie_word_embeddings": True}


def gpt2_folder() -> Path:
    """Return where the GPT-2 checkpoint is.

    Raises:
        CannotMeasureError: it isn't here.
    """
    for part in os.environ.get("ATLAS_MODELS", "").split(os.pathsep):
        if (Path(part) / "gpt2" / "config.json").is_file():
            return Path(part) / "gpt2"
    raise CannotMeasureError("the GPT-2 weights are not here: name their parent folder in ATLAS_MODELS")


def command(place: Path, *arguments: str, **environment: str) -> dict[str, float]:
    """Run `atlas compute` in a folder, in a process of its own.

    Returns:
        Its seconds by the clock and by the processor, and its peak memory in bytes.
    """
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "compute", *arguments],
        cwd=place,
        env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    )
    return {"seconds": time.perf_counter() - begin, **json.loads(done.stdout.splitlines()[-1])}


def bytes_read(checkpoint: Checkpoint) -> int:
    """Return the size of all tensors that the findings read."""
    tensors = {checkpoint.record(role).name: checkpoint.record(role) for role in checkpoint}
    widths = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
    total = 0
    for tensor in tensors.values():
        elements = 1
        for size in tensor.shape:
            elements *= size
        total += elements * widths[tensor.dtype]
    return total


def gpt2_side() -> dict[str, Any]:
    """Time the command and every finding on the real GPT-2 weights, by the clock and by the processor."""
    folder = gpt2_folder()
    opened = opened_in(folder, frequency="wordfreq")
    with tempfile.TemporaryDirectory() as results:
        found = {
            what: command(folder, str(folder), "--results", results) for what in ("empty_store", "nothing_to_do")
        }
    seconds = {
        finding.name: processor_seconds_of(lambda f=finding: f.measure(inputs(f, opened)))[0]
        for finding in of_weights(opened)
    }
    return {**found, "bytes_read": bytes_read(opened.checkpoint), "findings": seconds}


def large_vocabulary() -> dict[str, Any]:
    """Tell the peak memory of computing all that is told of a large E, stored in bfloat16, by one command."""
    import ml_dtypes
    from safetensors.numpy import save_file

    rows, d = LARGE
    rng = np.random.default_rng(SEED)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "large")
        folder.mkdir()
        E = np.empty(LARGE, ml_dtypes.bfloat16)
        for begin in range(0, rows, ROWS):
            E[begin : begin + ROWS] = rng.standard_normal((min(ROWS, rows - begin), d), np.float32)
        save_file({"model.embed_tokens.weight": E}, folder / "model.safetensors")
        del E
        (folder / "config.json").write_text(json.dumps(LLAMA))
        found = command(folder, str(folder), "--results", place, "--skip-runs")
    return {"tokens": rows, "d_model": d, **found, "memory": found["peak"] / (4 * rows * d)}
