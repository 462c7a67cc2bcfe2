"""`make rounding`: which verdicts about a model's weights move when llama.cpp's rules round them to 8 and 4 bits.

stdlib-gpt2 is written as GGUF, in types that the package `gguf` can write (it reads the K types only), and measured
as any model is. Writes `results/rounding.json`, and prints it as a Markdown table.
"""

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import Places
from generators.compute.plan import inputs, open_model, plan
from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.findings.inputs import RUN
from generators.findings.judging import Claim
from tests.checkpoint.other_software import write_gpt2_gguf
from tests.checkpoints import GPT, Sizes
from tests.nulls import ROOT, today, write_record

NAME = "stdlib-gpt2"
FOLDER = ROOT / "models" / NAME
RESULTS = ROOT / "results" / "rounding.json"
# llama.cpp leaves the table of positions as it is, and gives the tied token embedding of a model this narrow 8 bits.
ITS_OWN = {"position_embd.weight": "F32", "token_embd.weight": "Q8_0"}
COPIES = {kind: (kind, ITS_OWN) for kind in ("Q8_0", "Q4_1", "Q4_0")} | {"Q4_0, embeddings too": ("Q4_0", {})}


def write_rounded(folder: Path, kind: str, kinds: dict[str, str]) -> Path:
    """Write stdlib-gpt2 as GGUF, with its tokens, and with its counts beside it."""
    config = json.loads((FOLDER / "config.json").read_text())
    model = json.loads((FOLDER / "tokenizer.json").read_text())["model"]
    ids = sorted(model["vocab"], key=model["vocab"].get)
    said = {
        "attention.layer_norm_epsilon": config["layer_norm_epsilon"],
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": ids,
        "tokenizer.ggml.token_type": [3 if i == config["eos_token_id"] else 1 for i in range(len(ids))],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in model["merges"]],
    }
    sizes = Sizes(*(config[name] for name in GPT))
    stored = load_file(FOLDER / "model.safetensors")
    tensors = {name.removeprefix("transformer."): t.astype(np.float32) for name, t in stored.items()}
    write_gpt2_gguf(folder / f"{NAME}.gguf", kind, sizes, tensors, kinds, **said)
    shutil.copy(FOLDER / "token_counts.npy", folder)
    return folder


def claims_of(folder: Path, findings: Sequence[Finding[Any]] = FINDINGS) -> list[Claim]:
    """Return every claim about the weights of the model in a folder, judged."""
    opened = open_model(Model(name=NAME, title=NAME, sources=(FolderSource(folder=folder),)), Places())
    of_weights = [one for one in findings if RUN not in one.needs and plan(one, opened).reason is None]
    return [claim for one in of_weights for claim in one.claims(one.measure(inputs(one, opened)))]


def measured() -> dict[str, Any]:
    """Return each tested claim's verdict and number in the model and in its copies, and what differs."""
    sides = {"float16": claims_of(FOLDER)}
    for name, how in COPIES.items():
        with tempfile.TemporaryDirectory() as place:
            sides[name] = claims_of(write_rounded(Path(place), *how))
    rows = [
        {"claim": own.id, "statement": own.statement, **{side: _said(claims[i]) for side, claims in sides.items()}}
        for i, own in enumerate(sides["float16"])
        if own.verdict != "untested"
    ]
    copies = {name: _compared(rows, name) for name in COPIES}
    return {"model": NAME, "computed_on": today(), "tested": len(rows), "copies": copies, "claims": rows}


def _said(claim: Claim) -> dict[str, Any]:
    value = claim.value
    return {"verdict": claim.verdict, "value": None if value is None else float(f"{value:.4g}")}


def _compared(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the claims whose verdict moves in a copy, and how much numbers change, in %: at most, at the median."""
    moved = [row["claim"] for row in rows if row[name]["verdict"] != row["float16"]["verdict"]]
    pairs = [(row[name]["value"], row["float16"]["value"]) for row in rows]
    changes = [100 * abs(value / own - 1) for value, own in pairs if own and value is not None]
    return {"moved": moved, "median": round(float(np.median(changes)), 2), "largest": round(max(changes), 1)}


def table(found: dict[str, Any]) -> str:
    """Return what rounding does as a Markdown table."""
    head = "| copy | verdicts that move | median change of a number | largest |"
    rows = [
        f"| {name} | {len(copy['moved'])} of {found['tested']} | {copy['median']} % | {copy['largest']} % |"
        for name, copy in found["copies"].items()
    ]
    return "\n".join([head, "| --- | --- | --- | --- |", *rows])


if __name__ == "__main__":
    result = measured()
    write_record(RESULTS, result)
    print(table(result))
