"""`make large`: seconds and memory of each finding, and how they grow with tokens, layers and context."""

import math
import shutil
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer

from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import Places
from generators.compute.jobs import measure
from generators.compute.plan import open_model, plan
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from tests.checkpoints import Sizes, write_checkpoint
from tests.nulls import today, write_record
from tests.synthetic import realistic_embedding, winding_positions
from tests.torture.processes import GIBI, MEBI, in_child, most_memory

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
SECONDS, BYTES = 600, 4 * GIBI  # at which a finding is ended
TOKENIZER = ROOT / "models" / "stdlib-gpt2"
BASE = Sizes(n_layer=3, n_head=4, d_model=128, n_ctx=128, vocab_size=4096)
# How many times as much of what; the first is what the others are compared with.
SHAPES = {
    "base": (1, BASE),
    "tokens": (8, replace(BASE, vocab_size=8 * BASE.vocab_size)),
    "layers": (4, replace(BASE, n_layer=4 * BASE.n_layer)),
    "context": (8, replace(BASE, n_ctx=8 * BASE.n_ctx)),
}
BY_NAME = {finding.name: finding for finding in FINDINGS}


def written(folder: Path, sizes: Sizes) -> Path:
    """Write a made-up model with tokens and positions like real ones, a tokenizer, and token counts."""
    rng = np.random.default_rng(0)
    tables = {
        "wte.weight": realistic_embedding(sizes.vocab_size, sizes.d_model, rng),
        "wpe.weight": winding_positions(sizes.n_ctx, sizes.d_model, rng),
    }
    write_checkpoint(folder, sizes=sizes, changed=tables, config={"bos_token_id": 0})
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(TOKENIZER / name, folder)
    np.save(folder / "token_counts.npy", np.arange(sizes.vocab_size, dtype=np.int64)[::-1])
    return folder


def measured(folder: Path, name: str) -> dict[str, Any]:
    """Measure one finding of a model in this process; return how that ended and what it took."""
    finding = BY_NAME[name]
    if RUN in finding.needs:
        import transformers.models.gpt2.modeling_gpt2  # noqa: F401  importing it is no cost of the finding
    begun = time.process_time()
    model = Model(name="large", title="Large", sources=(FolderSource(folder=folder),), frequency="counts")
    opened = open_model(model, Places())
    planned = plan(finding, opened)
    status = (
        planned.status if planned.key is None else measure(planned, opened, folder, lambda done: None).record.status
    )
    return {"status": status, "seconds": round(time.process_time() - begun, 2), "mib": round(most_memory() / MEBI)}


def growth(seconds: dict[str, float]) -> str:
    """Return the seconds of every shape, and the power of tokens, layers or context that they grow with."""
    base, *others = seconds.items()
    powers = [
        f"{name} x {SHAPES[name][0]} {took:.1f} s (power {math.log(took / base[1], SHAPES[name][0]):.1f})"
        for name, took in others
    ]
    return ", ".join([f"{base[1]:.1f} s", *powers])


def large(shape: list[str] = typer.Option(list(SHAPES)), only: list[str] = [], write: bool = False) -> None:  # noqa: B006, B008
    """What each finding takes, and how that grows with the model; --write keeps it in results/large.json."""
    found: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in only or BY_NAME}
    with tempfile.TemporaryDirectory() as place:
        folders = {name: written(Path(place) / name, SHAPES[name][1]) for name in shape}
        for finding, of_shapes in found.items():
            for name, folder in folders.items():
                ended = in_child(partial(measured, folder, finding), SECONDS, BYTES)
                of_shapes[name] = ended.gave or {"status": ended.said or "broke", "seconds": float(SECONDS), "mib": 0}
            seconds = {name: took["seconds"] for name, took in of_shapes.items() if took["status"] == "computed"}
            print(f"{finding}: {growth(seconds) if len(seconds) == len(shape) else of_shapes}", flush=True)
    if write:
        write_record(
            RESULTS / "large.json",
            {**today(), "factors": {name: SHAPES[name][0] for name in shape}, "findings": found},
        )
    if any(took["mib"] == 0 for of_shapes in found.values() for took in of_shapes.values()):
        raise typer.Exit(1)
