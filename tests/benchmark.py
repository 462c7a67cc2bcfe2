"""`make bench`: time and memory of the whole command and of each finding, on the real GPT-2 weights.

`--token-side` alone compares the token side with the plain way, on a made-up embedding of GPT-2's shape (its real
one is not needed); `--runs` alone compares running a model with the plain way, and estimates what GPT-2 would take.
Timings are read by people; answers that differ end the run with an error. Weights are looked for in $ATLAS_MODELS.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from generators.checkpoint.checkpoint import Checkpoint, open_checkpoint
from generators.checkpoint.registry import FolderSource, Model, load_registry
from generators.checkpoint.sources import in_folder
from generators.compute.plan import Opened, inputs, plan
from generators.findings import FINDINGS
from generators.findings.inputs import RUN, Inputs
from generators.findings.outliers.clump import crowding, find_clump
from generators.findings.position_use import variants
from generators.findings.running import SEED, WINDOWS
from generators.maths.neighbours import best_match, nearest_distance, neighbours_within
from generators.maths.spectra import gram
from generators.runner import budget
from generators.runner.texts import LONGEST_WINDOW

ROOT = Path(__file__).parents[1]
MEBI = 2**20
GPT2_SHAPE = 50257, 768
PLAIN_BLOCK = 1024  # rows of E at a time in the plain way
UNUSED = 100
SPREAD = 1024
LABEL = 44  # width of the first column
Array = np.ndarray


def gpt2_folder() -> Path:
    """Return where the GPT-2 checkpoint is."""
    for part in os.environ.get("ATLAS_MODELS", "").split(os.pathsep):
        if (Path(part) / "gpt2" / "config.json").is_file():
            return Path(part) / "gpt2"
    sys.exit("make bench needs the GPT-2 weights: name their parent folder in ATLAS_MODELS")


def whole_command(folder: Path) -> None:
    """Time `atlas compute` with an empty store and again with a full one, and tell the peak memory of both."""
    command = [sys.executable, "-c", "from generators.cli import main; main()", "compute", str(folder), "--results"]
    with tempfile.TemporaryDirectory() as results:
        for label in ("atlas compute, empty store", "atlas compute, nothing to do"):
            begin = time.perf_counter()
            subprocess.run([*command, results], check=True, stderr=subprocess.DEVNULL)
            seconds = time.perf_counter() - begin
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / MEBI
            print(f"{label:<40} {seconds:8.2f} s   peak of all runs so far {peak:6.0f} MiB")


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


def each_finding(opened: Opened) -> None:
    """Time the measuring of each finding that these weights allow, by itself."""
    for finding in FINDINGS:
        if plan(finding, opened).key is not None:
            seconds, _ = seconds_of(lambda f=finding: f.measure(inputs(f, opened)))
            print(f"{finding.name:<40} {seconds:8.2f} s")


# The token side against the plain way


def realistic_embedding(V: int, d: int, seed: int = 0) -> tuple[Array, Array]:
    """Return token embeddings (V, d) float32 built like real ones, and the ids of its unused tokens.

    Variances fall as (k + 8)^-0.7, as MiniLM's do, about a mean that holds a quarter of the energy; norms are
    log-normal, varying by 15 %. Twenty thousand tokens come in pairs (" word" and "word"), alike to all degrees and
    nearly of one length; 200 families of 5 to 30 are near-duplicates; 100 unused tokens huddle.
    """
    rng = np.random.default_rng(seed)
    variances = (np.arange(d) + 9.0) ** -0.7
    E = rng.standard_normal((V, d), dtype=np.float32) * np.sqrt(0.75 * variances / variances.sum()).astype(np.float32)
    norms = np.exp(0.15 * rng.standard_normal(V)).astype(np.float32)
    unused, first, second, *families = _parts_of(
        rng.permutation(V), [UNUSED, V // 5, V // 5, *rng.integers(5, 30, 200)]
    )
    _likened(E, first, second, rng.uniform(0.15, 0.7, len(second)).astype(np.float32))
    norms[second] = norms[first] * np.exp(0.06 * rng.standard_normal(len(second))).astype(np.float32)
    for family in families:
        _likened(E, family[:1].repeat(len(family)), family, np.full(len(family), rng.uniform(0.2, 0.6), np.float32))
    E[unused] = 0.15 * E[unused[0]] + 0.04 * E[unused]
    norms[unused] = 0.9
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    mean = rng.standard_normal(d).astype(np.float32)
    mean *= 0.5 / np.linalg.norm(mean)
    for begin in range(0, V, PLAIN_BLOCK):
        block = slice(begin, begin + PLAIN_BLOCK)
        E[block] = 4 * norms[block, None] * (E[block] @ rotation + mean)
    return E, np.sort(unused)


def _parts_of(ids: Array, sizes: list[int]) -> list[Array]:
    return np.split(ids, np.cumsum(sizes))[: len(sizes)]


def _likened(E: Array, like: Array, ids: Array, distance: Array) -> None:
    """Mix into rows what they are to be like; at distance 1 they stay as they are."""
    E[ids] = E[like] * np.sqrt(1 - distance**2)[:, None] + E[ids] * distance[:, None]


def plain_spectrum(E: Array) -> tuple[Array, Array]:
    return np.linalg.svd(E, full_matrices=False)[1:]


def plain_best(E: Array) -> Array:
    return np.concatenate([(rows @ E.T).argmax(axis=1) for rows in _rows_of(E)])


def plain_nearest(E: Array, ids: Array) -> Array:
    squares = np.square(E).sum(axis=1)
    distances = squares[ids, None] + squares - 2 * (E[ids] @ E.T)
    distances[np.arange(len(ids)), ids] = np.inf
    return np.sqrt(distances.min(axis=1))


def plain_neighbours(E: Array, radius: float) -> Array:
    squares = np.square(E).sum(axis=1)
    counts = [
        (np.square(rows).sum(axis=1)[:, None] + squares - 2 * (rows @ E.T) <= radius**2).sum(axis=1)
        for rows in _rows_of(E)
    ]
    return np.concatenate(counts) - 1


def _rows_of(E: Array) -> list[Array]:
    return [E[begin : begin + PLAIN_BLOCK] for begin in range(0, len(E), PLAIN_BLOCK)]


def our_spectrum(E: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(gram(E))
    return np.sqrt(np.clip(values[::-1], 0, None)), vectors[:, ::-1].T


def compare_spectra(E: Array, plain: Any, ours: Any) -> str:
    np.testing.assert_allclose(ours[0], plain[0], rtol=1e-4)
    cosines = np.abs(np.sum(plain[1][:8] * ours[1][:8], axis=1))
    assert cosines.min() > 0.999, cosines
    return f"singular values agree to {np.abs(ours[0] / plain[0] - 1).max():.0e}"


def compare_best(E: Array, plain: Array, ours: Array) -> str:
    """Check that ours is the best by float64 products wherever the two differ."""
    differ = np.flatnonzero(plain != ours)
    for u in differ:
        products = E.astype(np.float64) @ E[u].astype(np.float64)
        assert products[ours[u]] >= products.max() * (1 - 1e-12), u
    return f"identical but for {len(differ)} ties of float32, where ours is the larger in float64"


def compare_nearest(E: Array, plain: Array, ours: Array) -> str:
    np.testing.assert_allclose(plain, ours, rtol=1e-2)
    return f"distances agree to {np.abs(plain / ours - 1).max():.0e}"


def compare_neighbours(E: Array, plain: Array, ours: Array, radius: float) -> str:
    """Check that ours is the count by float64 distances wherever the two differ."""
    differ = np.flatnonzero(plain != ours)
    for u in differ:
        exact = sum(
            int((np.square(rows.astype(np.float64) - E[u]).sum(axis=1) <= radius**2).sum()) for rows in _rows_of(E)
        )
        assert ours[u] == exact - 1, u
    return f"identical but for {len(differ)} tokens with another at the radius, where ours is right in float64"


@dataclass(frozen=True)
class Search:
    """One thing to be computed, the plain way and ours, and how the answers are compared."""

    name: str
    plain: Callable[[], Any]
    ours: Callable[[], Any]
    compare: Callable[[Any, Any], str]


def seconds_of(call: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


def processor_seconds_of(call: Callable[[], Any]) -> tuple[float, Any]:
    """Time what runs in one thread as if it had the machine for itself."""
    begin = time.process_time()
    result = call()
    return time.process_time() - begin, result


def peak_of(call: Callable[[], Any]) -> int:
    """Return how many bytes a call allocates at its peak."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def token_side() -> None:
    """Compare the token side with the plain way on an embedding of GPT-2's shape."""
    E, unused = realistic_embedding(*GPT2_SHAPE)
    spread = np.unique(np.linspace(0, len(E) - 1, SPREAD).astype(np.int64))
    radius = float(np.median(nearest_distance(E, spread))) / 2
    searches = (
        Search("spectrum", lambda: plain_spectrum(E), lambda: our_spectrum(E), lambda p, o: compare_spectra(E, p, o)),
        Search("best match", lambda: plain_best(E), lambda: best_match(E), lambda p, o: compare_best(E, p, o)),
        Search(
            "nearest neighbours of 1024",
            lambda: plain_nearest(E, spread),
            lambda: nearest_distance(E, spread),
            lambda p, o: compare_nearest(E, p, o),
        ),
        Search(
            "neighbours within a radius",
            lambda: plain_neighbours(E, radius),
            lambda: neighbours_within(E, radius),
            lambda p, o: compare_neighbours(E, p, o, radius),
        ),
    )
    print(f"\nToken side on a made-up embedding of {len(E)} x {E.shape[1]}, {E.nbytes / MEBI:.0f} MiB in float32")
    print(f"{'':<{LABEL}} {'plain':>9} {'ours':>9} {'ratio':>7} {'memory':>8}")
    totals, peak = np.zeros(2), 0
    for search in searches:
        ours, answer = seconds_of(search.ours)
        plain, expected = seconds_of(search.plain)
        memory = peak_of(search.ours)
        _row(search.name, plain, ours, 1 + memory / E.nbytes)
        print(f"  {search.compare(expected, answer)}")
        totals, peak = totals + np.array([plain, ours]), max(peak, memory)
    _row("all", *totals, 1 + peak / E.nbytes)
    found = find_clump(E, crowding(E))
    assert found is not None and np.array_equal(np.sort(found.members), unused), "the clump is not the planted one"
    print(f"  the clump is the {UNUSED} unused tokens; memory is E and what is allocated beside it, in sizes of E")
    floor(E)
    findings_of_tokens(E)


def _row(name: str, plain: float, ours: float, memory: float) -> None:
    print(f"{name:<{LABEL}} {plain:7.2f} s {ours:7.2f} s {plain / ours:6.1f}x {memory:7.2f}x")


def floor(E: Array, rank: int = 16, size: int = 2048) -> None:
    """Time the arithmetic that can't be avoided: E^T E, and looking at every pair once by a few coordinates."""
    narrow = np.ascontiguousarray(E[:, : rank + 3])
    starts = range(0, len(E), size)

    def pairs() -> None:
        for a in starts:
            for b in range(a, len(E), size):
                (narrow[b : b + size] @ narrow[a : a + size].T).max(axis=1)

    looking = seconds_of(pairs)[0]
    product = seconds_of(lambda: E.T @ E)[0]
    print("Floor: what remains however well pairs are screened")
    print(f"{'E^T E in float32':<{LABEL}} {'':>9} {product:7.2f} s")
    print(f"{f'every pair once, {rank} coordinates, twice':<{LABEL}} {'':>9} {2 * looking:7.2f} s")


def findings_of_tokens(E: Array) -> None:
    """Time every finding that needs nothing but token embeddings, and its memory."""
    from tests.synthetic import architecture

    arch = architecture(n_ctx=1024, d_model=E.shape[1])
    for finding in FINDINGS:
        if finding.needs == ("token_embedding",):
            tokens_alone = Inputs({"token_embedding": E}, arch)
            seconds = seconds_of(lambda f=finding, i=tokens_alone: f.measure(i))[0]
            memory = 1 + peak_of(lambda f=finding, i=tokens_alone: f.measure(i)) / E.nbytes
            print(f"{finding.name:<{LABEL}} {'':>9} {seconds:7.2f} s {'':>7} {memory:7.2f}x")


# Running a model against the plain way

TRANSFORMER_LENS = ROOT / ".venv-bench" / "bin" / "python"  # made by `make bench`
SAME_LOSS = 1e-5  # nats per token, between two orders of adding up
ESTIMATED_LAYERS = 1, 3  # of the made-up checkpoints that are timed
GPT2_LAYERS, GPT2_PARAMETERS = 12, 124.4e6
ESTIMATED_WINDOWS = 2


def runs() -> None:
    """Compare `position_use`'s variants by the runner with the plain way, on stdlib-gpt2; then estimate GPT-2."""
    from generators.compute.run import Places, open_model

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
    print(f"\nRunning stdlib-gpt2 on {len(windows.ids)} windows, {len(tables)} times, one thread")
    print(f"{'':<{LABEL}} {'plain':>9} {'ours':>9} {'ratio':>7}")
    print(f"{'position_use':<{LABEL}} {plain:7.2f} s {ours:7.2f} s {plain / ours:6.1f}x")
    print(f"  every window's loss agrees to {apart:.0e} nats per token")
    if TRANSFORMER_LENS.is_file():
        lens, found = with_transformer_lens(ROOT / "models/stdlib-gpt2", windows.ids, np.stack(tables))
        apart = np.abs(np.array(answer) - found).max()
        assert apart < SAME_LOSS, apart
        print(f"{'the same with TransformerLens':<{LABEL}} {lens:7.2f} s {ours:7.2f} s {lens / ours:6.1f}x")
    estimate_gpt2()


def _with_rows(run: Any, loss: Any, rows: Array) -> Array:
    with run.replaced(rows=rows):
        return loss.per_window()


def with_transformer_lens(folder: Path, ids: Array, tables: Array) -> tuple[float, Array]:
    """Return the processor's seconds, importing not counted, and every window's loss, by TransformerLens."""
    with tempfile.TemporaryDirectory() as place:
        given, answer = Path(place, "tables.npz"), Path(place, "losses.npz")
        np.savez(given, ids=ids, tables=tables)
        script = Path(__file__).with_name("with_transformer_lens.py")
        command = [str(TRANSFORMER_LENS), str(script), str(folder), str(given), str(answer)]
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


def estimate_gpt2() -> None:
    """Estimate what each finding that runs GPT-2 takes, from made-up checkpoints of its shape with few layers."""
    seconds = [_seconds_a_window(n_layer) for n_layer in ESTIMATED_LAYERS]
    layer = (seconds[1] - seconds[0]) / (ESTIMATED_LAYERS[1] - ESTIMATED_LAYERS[0])
    window = seconds[0] + (GPT2_LAYERS - ESTIMATED_LAYERS[0]) * layer
    length, d = LONGEST_WINDOW, GPT2_SHAPE[1]
    operations = 2 * length * (GPT2_PARAMETERS + 2 * GPT2_LAYERS * d * length)
    print(f"\nGPT-2 124M, estimated: {window:.2f} s a window of {length} tokens, of it {layer:.3f} s a layer")
    whole = sum(finding.passes for finding in FINDINGS)
    total = 0.0
    for finding in (finding for finding in FINDINGS if RUN in finding.needs):
        asked = _windows_asked(finding)
        passes = finding.passes / asked
        part = budget.DEFAULT_BUDGET_S * finding.passes / whole
        count = budget.affordable(asked, passes * operations, part, budget.assumed_speed("cpu", 1))
        total += count * passes * window
        print(f"{finding.name:<{LABEL}} {'':>9} {count * passes * window:7.0f} s   {count} windows of {asked}")
    print(f"{'all five':<{LABEL}} {'':>9} {total:7.0f} s   the budget is {budget.DEFAULT_BUDGET_S:.0f} s")


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


# A vocabulary that is large

LARGE = 128_000, 4096  # tokens and channels: of a model of 8 billion parameters
LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": LARGE[1],
    "vocab_size": LARGE[0],
}
LLAMA |= {"num_hidden_layers": 1, "num_attention_heads": 32, "intermediate_size": 14336, "rms_norm_eps": 1e-5}
LLAMA |= {"max_position_embeddings": 8192, "rope_theta": 5e5, "tie_word_embeddings": True}


def large_vocabulary() -> None:
    """Tell the peak memory of computing all that is told of a large E, stored in bfloat16, by one command."""
    import ml_dtypes
    from safetensors.numpy import save_file

    rows, d = LARGE
    rng = np.random.default_rng(SEED)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "large")
        folder.mkdir()
        E = np.empty(LARGE, ml_dtypes.bfloat16)
        for begin in range(0, rows, PLAIN_BLOCK):
            E[begin : begin + PLAIN_BLOCK] = rng.standard_normal((min(PLAIN_BLOCK, rows - begin), d), np.float32)
        save_file({"model.embed_tokens.weight": E}, folder / "model.safetensors")
        del E
        (folder / "config.json").write_text(json.dumps(LLAMA))
        code = "import resource, sys\nfrom generators.cli import main\n"
        code += "try:\n    main()\nfinally:\n    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        command = [sys.executable, "-c", code, "compute", str(folder), "--results", place, "--skip-runs"]
        begin_s = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds, peak = time.perf_counter() - begin_s, 1024 * int(done.stdout.split()[-1])
    whole = 4 * rows * d
    print(f"\nE of {rows} x {d} in bfloat16, all findings that read no more: {seconds:.0f} s")
    print(f"  peak memory {peak / MEBI:.0f} MiB: {peak / whole:.2f} times E in float32 ({whole / MEBI:.0f} MiB)")


def gpt2_side() -> None:
    """Time the command and every finding on the real GPT-2 weights."""
    folder = gpt2_folder()
    files = in_folder(folder)
    model = Model(name="gpt2", title="GPT-2", sources=(FolderSource(folder=folder),), frequency="wordfreq")
    opened = Opened(model, files, open_checkpoint(files))
    whole_command(folder)
    print(f"{'tensors read':<40} {bytes_read(opened.checkpoint) / MEBI:8.0f} MiB")
    each_finding(opened)


def main() -> None:
    """Print all measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--token-side", action="store_true", help="only compare the token side with the plain way")
    parser.add_argument("--runs", action="store_true", help="only compare running a model with the plain way")
    parser.add_argument("--large", action="store_true", help="only tell the memory that a large vocabulary takes")
    chosen = parser.parse_args()
    parts = {"gpt2": gpt2_side, "token_side": token_side, "runs": runs, "large": large_vocabulary}
    wanted = [part for part in parts if getattr(chosen, part, False)]
    for part in wanted or parts:
        parts[part]()


if __name__ == "__main__":
    main()
