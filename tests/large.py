"""`make large`: what each finding takes of models with long tables, of positions, layers or tokens.

Each finding is measured in a process of its own that may take `SECONDS` of the processor and `BYTES` of memory.
`results/large.json` keeps seconds and peak memory.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import numpy as np

from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import Places
from generators.compute.jobs import measure
from generators.compute.plan import open_model, plan, prepare
from generators.compute.running import RunSettings
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from tests.benchmark import realistic_embedding, winding_positions
from tests.checkpoints import Sizes, write_checkpoint
from tests.nulls import today, write_record
from tests.processes import in_fork, in_status

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "large.json"
SECONDS, BYTES = 60, 2 * 2**30
MEBI = 2**20
SHAPES = {
    "65,536 positions x 32": Sizes(n_layer=2, n_head=2, d_model=32, n_ctx=65_536, vocab_size=1000),
    "1,000 layers x 8": Sizes(n_layer=1000, n_head=2, d_model=8, n_ctx=64, vocab_size=1000),
    "1,000 layers x 16": Sizes(n_layer=1000, n_head=2, d_model=16, n_ctx=64, vocab_size=1000),
    "1,000,000 tokens x 64": Sizes(n_layer=2, n_head=2, d_model=64, n_ctx=256, vocab_size=1_000_000),
}
WHOLE = "reading"  # every tensor, to plan all findings


@dataclass(frozen=True)
class Taken:
    """What measuring took: seconds of the processor, bytes at the peak, and how it ended."""

    seconds: float
    bytes: int
    status: str

    @property
    def is_too_much(self) -> bool:
        """Return whether it broke or took more than it may."""
        return self.status == "broke" or self.seconds > SECONDS or self.bytes > BYTES


def written(place: Path, sizes: Sizes) -> Path:
    """Write a made-up model with tokens and positions like real ones, a vocabulary, and token counts."""
    rng = np.random.default_rng(0)
    E = realistic_embedding(sizes.vocab_size, sizes.d_model, rng)
    P = winding_positions(sizes.n_ctx, sizes.d_model, rng) if sizes.d_model > 12 else None
    changed = {"wte.weight": E, **({} if P is None else {"wpe.weight": P})}
    folder = write_checkpoint(place / "model", sizes=sizes, changed=changed)
    words = [f"{'##' * (i % 3 == 0)}w{i}" for i in range(sizes.vocab_size)]
    (folder / "vocab.txt").write_text("\n".join(words))
    np.save(folder / "token_counts.npy", np.arange(sizes.vocab_size, dtype=np.int64)[::-1])
    return folder


def taken(act: Callable[[], str]) -> Taken:
    """Return what an act takes in a process of its own; more seconds than it may have end it."""

    def limited() -> tuple[float, int, str]:
        resource.setrlimit(resource.RLIMIT_CPU, (4 * SECONDS, 4 * SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_DATA, (6 * BYTES, 6 * BYTES))
        begin = time.process_time()
        try:
            status = act()
        except BaseException:
            status = "broke"
            traceback.print_exc()
        return time.process_time() - begin, in_status("VmHWM") or 0, status

    told, _ = in_fork(limited)
    return Taken(*told) if told else Taken(4.0 * SECONDS, 0, "broke")


def of_shape(sizes: Sizes, only: list[str]) -> dict[str, Taken]:
    """Return what reading a model of these sizes takes, and measuring each finding of it that doesn't run it."""
    findings = [each for each in FINDINGS if RUN not in each.needs]
    settings = RunSettings(skip=True)
    with tempfile.TemporaryDirectory() as place:
        model = Model(
            name="large",
            title="Large",
            sources=(FolderSource(folder=written(Path(place), sizes)),),
            frequency="counts",
        )

        def read() -> str:
            prepare(open_model(model, Places(), settings), findings, lambda line: None)
            return "computed"

        def measured(finding: Any) -> Callable[[], str]:
            def act() -> str:
                opened = open_model(model, Places(), settings)
                planned = plan(finding, opened)
                if planned.key is None:
                    return "missing"
                opened.checkpoint.let_go()
                return measure(planned, opened, Path(place), lambda done: None).record.status

            return act

        acts = {WHOLE: read, **{each.name: measured(each) for each in findings}}
        found = {}
        for name, act in acts.items():
            if not only or name in only:
                found[name] = taken(act)
                print(f"  {name:<18} {line(found[name])}", flush=True)
        return found


def line(what: Taken) -> str:
    """Return what something took, as it is printed."""
    return f"{what.status:<16}{what.seconds:6.1f} s {what.bytes / MEBI:7.0f} MiB{' TOO MUCH' * what.is_too_much}"


def as_record(found: Mapping[str, Mapping[str, Taken]]) -> dict[str, Any]:
    """Return the figures as they are kept."""
    shapes = {
        shape: {
            name: {"status": what.status, "seconds": round(what.seconds, 1), "mib": round(what.bytes / MEBI)}
            for name, what in taken.items()
        }
        for shape, taken in found.items()
    }
    return {**today(), "limits": {"seconds": SECONDS, "bytes": BYTES}, "shapes": shapes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", action="append", choices=SHAPES)
    parser.add_argument("--only", action="append", default=[], help="a finding")
    parser.add_argument("--write", action="store_true", help="keep the figures in results/large.json")
    chosen = parser.parse_args()
    found = {}
    for shape in chosen.shape or SHAPES:
        print(shape, flush=True)
        found[shape] = of_shape(SHAPES[shape], chosen.only)
    if chosen.write:
        write_record(RESULTS, as_record(found))
    sys.exit(1 if any(what.is_too_much for taken in found.values() for what in taken.values()) else 0)


if __name__ == "__main__":
    main()
