"""Running a model against the plain way and TransformerLens; and what GPT-2 would take."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.registry import load_registry
from generators.checkpoint.sources import in_folder
from generators.findings import FINDINGS
from generators.findings.inputs import RUN
from generators.findings.position_use import variants
from generators.findings.running import SEED, WINDOWS
from generators.runner import budget
from generators.runner.texts import LONGEST_WINDOW
from tests.benchmark.made_up import GPT2_SHAPE
from tests.benchmark.others import PYTHON
from tests.benchmark.timing import ROOT, CannotMeasureError, processor_seconds_of, ratio
from tests.benchmark.whole import gpt2_folder

Array = np.ndarray
SAME_LOSS = 1e-5  # nats per token, between two orders of adding up
ESTIMATED_LAYERS = 1, 3  # of the made-up checkpoints that are timed
GPT2_LAYERS, GPT2_PARAMETERS = 12, 124.4e6
ESTIMATED_WINDOWS = 2


def runs() -> dict[str, Any]:
    """Compare `position_use`'s variants by the runner with the plain way, on stdlib-gpt2; then estimate GPT-2."""
    from generators.checkpoint.sources import Places
    from generators.compute.plan import open_model

    model = load_registry(ROOT / "models.yml").find("stdlib-gpt2")
    assert model is not None
    opened = open_model(model, Places())
    P = np.asarray(opened.checkpoint["position_embedding"], np.float64)
    windows = opened.run.windows(WINDOWS, SEED)
    tables = [P, *(variant.positions for variant in variants.of_table(P, windows.ids.shape[1]))]
    loss = opened.run.loss(windows)
    ours, answer = processor_seconds_of(lambda: [_with_rows(opened.run, loss, rows) for rows in tables])
    plain, expected = processor_seconds_of(
        lambda: [plain_losses(ROOT / "models/stdlib-gpt2", windows.ids, r) for r in tables]
    )
    apart = np.abs(np.array(answer) - np.array(expected)).max()
    assert apart < SAME_LOSS, apart
    rows = [{"name": "transformers alone", **_beside(plain, ours), "apart": float(apart)}]
    if PYTHON.is_file():
        lens, found = with_transformer_lens(ROOT / "models/stdlib-gpt2", windows.ids, np.stack(tables))
        apart = np.abs(np.array(answer) - found).max()
        assert apart < SAME_LOSS, apart
        rows.append({"name": "TransformerLens", **_beside(lens, ours), "apart": float(apart)})
    return {"windows": len(windows.ids), "tables": len(tables), "rows": rows, "gpt2_estimated": _estimate()}


def _beside(theirs: float, ours: float) -> dict[str, float]:
    return {"theirs": theirs, "ours": ours, "times_faster": ratio(theirs, ours)}


def _estimate() -> dict[str, Any] | None:
    try:
        return estimate_gpt2()
    except CannotMeasureError:
        return None


def _with_rows(run: Any, loss: Any, rows: Array) -> Array:
    with run.replaced(rows=rows):
        return loss.per_window()


def with_transformer_lens(folder: Path, ids: Array, tables: Array) -> tuple[float, Array]:
    """Return the processor's seconds, importing not counted, and every window's loss, by TransformerLens."""
    with tempfile.TemporaryDirectory() as place:
        given, answer = Path(place, "tables.npz"), Path(place, "losses.npz")
        np.savez(given, ids=ids, tables=tables)
        script = Path(__file__).with_name("with_transformer_lens.py")
        command = [str(PYTHON), str(script), str(folder), str(given), str(answer)]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
        with np.load(answer, allow_pickle=False) as file:
            return float(file["seconds"]), file["losses"]


def plain_losses(folder: Path, ids: Array, rows: Array) -> Array:
    """Return every window's loss with other positions: the model opened anew, a hook, one window at a time."""
    import torch
    import transformers

    torch.set_num_threads(1)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(folder), dtype=torch.float32, attn_implementation="eager"
    ).eval()
    positions = torch.from_numpy(rows.astype(np.float32))
    model.transformer.wpe.register_forward_hook(lambda module, given, output: positions[given[0]])
    losses = []
    with torch.no_grad():
        for row in ids:
            tokens = torch.from_numpy(row.astype(np.int64))[None]
            predictions = torch.log_softmax(model(input_ids=tokens).logits[:, :-1], dim=-1)
            losses.append(float(-predictions.gather(2, tokens[:, 1:, None]).mean()))
    return np.array(losses)


def estimate_gpt2() -> dict[str, Any]:
    """Estimate what each finding that runs GPT-2 takes, from made-up checkpoints of its shape with few layers."""
    seconds = [_seconds_a_window(n_layer) for n_layer in ESTIMATED_LAYERS]
    layer = (seconds[1] - seconds[0]) / (ESTIMATED_LAYERS[1] - ESTIMATED_LAYERS[0])
    window = seconds[0] + (GPT2_LAYERS - ESTIMATED_LAYERS[0]) * layer
    length, d = LONGEST_WINDOW, GPT2_SHAPE[1]
    operations = 2 * length * (GPT2_PARAMETERS + 2 * GPT2_LAYERS * d * length)
    whole = sum(finding.passes for finding in FINDINGS)
    rows = []
    for finding in (finding for finding in FINDINGS if RUN in finding.needs):
        asked = _windows_asked(finding)
        passes = finding.passes / asked
        part = budget.DEFAULT_BUDGET_S * finding.passes / whole
        count = budget.affordable(asked, passes * operations, part, budget.assumed_speed("cpu", 1))
        rows.append({"name": finding.name, "seconds": count * passes * window, "windows": count, "asked": asked})
    return {"tokens": length, "window": window, "layer": layer, "budget": budget.DEFAULT_BUDGET_S, "rows": rows}


def _windows_asked(finding: Any) -> int:
    """Return on how many windows a finding would run a model that costs nothing."""
    return int(sys.modules[finding.measure.__module__].WINDOWS)


def _seconds_a_window(n_layer: int) -> float:
    """Return the seconds that a made-up checkpoint of GPT-2's shape takes for a window's loss."""
    from generators.runner import open_model
    from tests.runner.models import write_gpt2_shaped

    with tempfile.TemporaryDirectory() as place:
        folder = write_gpt2_shaped(Path(place), gpt2_folder(), n_layer)
        checkpoint = open_checkpoint(in_folder(folder))
        run = open_model(folder, checkpoint.architecture, position_tensor="transformer.wpe.weight")
        loss = run.loss(run.windows(ESTIMATED_WINDOWS, SEED))
        loss.per_window()
        return min(processor_seconds_of(loss.per_window)[0] for _ in range(2)) / ESTIMATED_WINDOWS
