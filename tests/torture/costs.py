"""`make large`: seconds and memory of findings where tables are long."""

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer

from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import Places
from generators.compute.jobs import measure
from generators.compute.plan import open_model, plan, prepare
from generators.compute.running import RunSettings
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from tests.checkpoints import Sizes, write_checkpoint
from tests.nulls import today, write_record
from tests.synthetic import realistic_embedding, winding_positions
from tests.torture.processes import GIBI, MEBI, in_child, most_memory

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
SECONDS, BYTES = 60, 2 * GIBI  # that a finding may take; it is ended at four times as much
SHAPES = {
    "GPT-2": Sizes(n_layer=12, n_head=12, d_model=768, n_ctx=1024, vocab_size=50257),
    "65,536 positions x 32": Sizes(n_layer=2, n_head=2, d_model=32, n_ctx=65_536, vocab_size=1000),
    "1,000 layers x 8": Sizes(n_layer=1000, n_head=2, d_model=8, n_ctx=64, vocab_size=1000),
    "1,000 layers x 16": Sizes(n_layer=1000, n_head=2, d_model=16, n_ctx=64, vocab_size=1000),
    "1,000,000 tokens x 64": Sizes(n_layer=2, n_head=2, d_model=64, n_ctx=256, vocab_size=1_000_000),
}
READING = "reading"  # every tensor, to plan all findings
ON_WEIGHTS = {finding.name: finding for finding in FINDINGS if RUN not in finding.needs}
DASK_SETTINGS = ROOT / "docs" / "dask.yaml"  # what is recommended where workers share their cores with the work


def written(folder: Path, sizes: Sizes) -> Path:
    """Write a made-up model with tokens and positions like real ones, a vocabulary, and token counts."""
    rng = np.random.default_rng(0)
    changed = {"wte.weight": realistic_embedding(sizes.vocab_size, sizes.d_model, rng)}
    if sizes.d_model > 12:  # each of 4 waves takes 3 channels
        changed["wpe.weight"] = winding_positions(sizes.n_ctx, sizes.d_model, rng)
    write_checkpoint(folder, sizes=sizes, changed=changed)
    (folder / "vocab.txt").write_text("\n".join(f"{'##' * (i % 3 == 0)}w{i}" for i in range(sizes.vocab_size)))
    np.save(folder / "token_counts.npy", np.arange(sizes.vocab_size, dtype=np.int64)[::-1])
    return folder


def measured(folder: Path, name: str) -> dict[str, Any]:
    """Measure one finding of a model in this process; return how that ended and what it took."""
    source, settings = FolderSource(folder=folder), RunSettings(skip=True)
    model = Model(name="large", title="Large", sources=(source,), frequency="counts")
    opened, status = open_model(model, Places(), settings), "computed"
    if name == READING:
        prepare(opened, list(ON_WEIGHTS.values()), lambda line: None)
    else:
        planned = plan(ON_WEIGHTS[name], opened)
        opened.checkpoint.let_go()  # reading counts, as time and as memory
        missing = planned.key is None
        status = "missing" if missing else measure(planned, opened, folder, lambda done: None).record.status
    return {"status": status, "seconds": round(time.process_time(), 2), "mib": round(most_memory() / MEBI)}


def large(shape: list[str] = typer.Option(list(SHAPES)), only: list[str] = [], write: bool = False) -> None:  # noqa: B006, B008
    """What each finding takes of models with long tables; --write keeps it in results/large.json."""
    found: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in shape}
    is_too_much = False
    for name in shape:
        print(name, flush=True)
        with tempfile.TemporaryDirectory() as place:
            folder = written(Path(place), SHAPES[name])
            for what in only or (READING, *ON_WEIGHTS):
                ended = in_child(partial(measured, folder, what), 4 * SECONDS, 5 * BYTES)
                took = ended.gave or {"status": "broke", "seconds": 4.0 * SECONDS, "mib": 0}
                found[name][what] = took
                is_too_much |= took["status"] == "broke" or took["seconds"] > SECONDS or took["mib"] * MEBI > BYTES
                print(f"  {what:<18} {took} {ended.said}", flush=True)
    if write:
        limits = {"seconds": SECONDS, "bytes": BYTES}
        write_record(RESULTS / "large.json", {**today(), "limits": limits, "shapes": found})
    if is_too_much:
        raise typer.Exit(1)
