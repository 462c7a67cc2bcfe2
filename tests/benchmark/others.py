"""Other tools on the same matrices: WeightWatcher's spectra, Magikarp's indicators, faiss's neighbour searches.

WeightWatcher and faiss run in the environment that `make bench` makes for them, one thread; where it isn't, their
rows are missing. Magikarp's indicators are computed by its formulae.
"""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from sklearn.decomposition import PCA

from generators.findings.outliers import untrained
from generators.findings.outliers.clump import Clump, crowding, find_clump
from generators.findings.outliers.tokens import OutlierTokens
from generators.maths.blocks import norms
from generators.maths.neighbours import best_match, nearest_distance, neighbours_within
from generators.maths.spectra import energy_ratio
from tests.benchmark.made_up import GPT2, realistic_embedding, write_model
from tests.benchmark.timing import ROOT, processor_seconds_of, ratio
from tests.benchmark.token_side import SPREAD, compare_best, compare_nearest, compare_neighbours
from tests.checkpoints import WEIGHTS, Sizes

PYTHON = ROOT / ".venv-bench" / "bin" / "python"  # made by `make bench`
HERE = Path(__file__).parent
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
SAME_EIGENVALUE = 1e-9  # of the largest
OUTPUT = "lm_head"
SAME_INDICATOR = 1e-5
Array = np.ndarray


def others(sizes: Sizes = GPT2) -> dict[str, Any]:
    """Compare with other tools on a made-up model, of GPT-2's sizes unless others are asked for."""
    E, unused = realistic_embedding(sizes.vocab_size, sizes.d_model)
    rows = [indicators(E, unused)]
    if PYTHON.is_file():
        rows = [spectra(sizes), *rows, *neighbours(E)]
    return {"tokens": sizes.vocab_size, "d_model": sizes.d_model, "layers": sizes.n_layer, "rows": rows}


def answers_of(script: str, *arguments: Path) -> dict[str, Array]:
    """Run a script in the environment of the other tools; return the arrays that it leaves."""
    with tempfile.TemporaryDirectory() as place:
        answer = Path(place, "answer.npz")
        command = [str(PYTHON), str(HERE / script), *map(str, arguments), str(answer)]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **ONE_THREAD})
        with np.load(answer, allow_pickle=False) as file:
            return dict(file)


def row(tool: str, what: str, theirs: float, ours: float, agrees: str) -> dict[str, Any]:
    """Return one comparison."""
    return {
        "tool": tool,
        "what": what,
        "theirs": theirs,
        "ours": ours,
        "times_faster": ratio(theirs, ours),
        "agrees": agrees,
    }


# WeightWatcher: eigenvalues of W^T W of every matrix, by an SVD of each


def spectra(sizes: Sizes) -> dict[str, Any]:
    """Compare the spectra of all matrices; the output embedding, which is E again, counts once on either side."""
    with tempfile.TemporaryDirectory() as place:
        folder = write_model(Path(place, "model"), sizes)
        found = answers_of("with_weightwatcher.py", folder)
        tensors = load_file(folder / WEIGHTS)
    names = [name for name in found if name not in ("version", "seconds")]
    of_name = dict(zip(names, found["seconds"].tolist(), strict=True))
    of_name.pop(OUTPUT, None)
    ours, apart = 0.0, 0.0
    for name in of_name:
        W = tensors[f"{name.removeprefix('transformer.')}.weight"]
        seconds, energies = processor_seconds_of(lambda W=W: energy_ratio(W) * np.square(W, dtype=np.float64).sum())
        ours += seconds
        apart = max(apart, float(np.abs(energies - found[name]).max() / energies[0]))
    assert apart < SAME_EIGENVALUE, apart
    left_out = "" if "transformer.wte" in of_name else ", E left out, as it does by itself"
    what = f"spectra of {len(of_name)} matrices{left_out}"
    agrees = f"eigenvalues agree to {apart:.0e}"
    return row(f"WeightWatcher {found['version']}", what, sum(of_name.values()), ours, agrees)


# Magikarp


def magikarp(U: Array, unused: Array) -> dict[str, Array]:
    """Return every token's distances from the mean of the unused ones, small for those that were hardly trained.

    After Land and Bartolo, "Fishing for Magikarp" (EMNLP 2024), section 3, and its code (cohere-ai/magikarp): cosine
    distance, the same without the first principal component and without the mean row, Euclidean distance, and norm.
    """
    first = PCA(n_components=1).fit(U).components_[0]
    without_first = U - np.outer(U @ first, first)
    without_mean = U - U.mean(axis=0)
    return {
        "cosine": _cosine_distances(U, unused),
        "cosine_without_first": _cosine_distances(without_first, unused),
        "cosine_without_mean": _cosine_distances(without_mean, unused),
        "euclidean": np.linalg.norm(U - U[unused].mean(axis=0), axis=1),
        "norm": np.linalg.norm(U, axis=1),
    }


def _cosine_distances(rows: Array, unused: Array) -> Array:
    centre = rows[unused].mean(axis=0)
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(centre)
    return 1 - rows @ centre / np.maximum(lengths, 1e-6)


def found_and_rated(E: Array) -> tuple[Clump, Array]:
    """Return the clump, found in place of the unused tokens that Magikarp is told, and every token's indicator."""
    clump = find_clump(E, crowding(E))
    assert clump is not None
    rated = untrained.indicator(OutlierTokens(E, norms(E), None), clump, tied=True)
    assert rated is not None
    return clump, rated.values


def indicators(E: Array, unused: Array) -> dict[str, Any]:
    """Compare the indicator: Magikarp is told which tokens are unused, the atlas finds where they huddle."""
    theirs, expected = processor_seconds_of(lambda: magikarp(E, unused))
    ours, (clump, values) = processor_seconds_of(lambda: found_and_rated(E))
    assert np.array_equal(np.sort(clump.members), unused)
    apart = float(np.abs(values - expected["cosine"]).max())
    assert apart < SAME_INDICATOR, apart
    alone = processor_seconds_of(lambda: untrained.indicator(OutlierTokens(E, norms(E), None), clump, tied=True))[0]
    what = "indicators of under-trained tokens, the unused ones found and not told"
    agrees = f"cosine distances agree to {apart:.0e}"
    return {
        **row("Magikarp", what, theirs, ours, agrees),
        "told": {"ours": alone, "times_faster": ratio(theirs, alone)},
    }


# faiss: exact searches


def neighbours(E: Array) -> list[dict[str, Any]]:
    """Compare the neighbour searches with faiss's flat indices."""
    ids = np.unique(np.linspace(0, len(E) - 1, min(SPREAD, len(E))).astype(np.int64))
    of_nearest, nearest = processor_seconds_of(lambda: nearest_distance(E, ids))
    radius = float(np.median(nearest)) / 2
    of_best, best = processor_seconds_of(lambda: best_match(E))
    of_within, within = processor_seconds_of(lambda: neighbours_within(E, radius))
    with tempfile.TemporaryDirectory() as place:
        matrix, asked = Path(place, "E.npy"), Path(place, "asked.npz")
        np.save(matrix, E)
        np.savez(asked, ids=ids, radius=radius)
        theirs = answers_of("with_faiss.py", matrix, asked)
    tool, seconds = f"faiss {theirs['version']}", [float(value) for value in theirs["seconds"]]
    compared = [
        ("best match", seconds[0], of_best, compare_best(E, theirs["best"], best)),
        (f"nearest neighbours of {len(ids)}", seconds[1], of_nearest, compare_nearest(E, theirs["nearest"], nearest)),
        (
            "neighbours within a radius",
            seconds[2],
            of_within,
            compare_neighbours(E, theirs["within"], within, radius),
        ),
    ]
    return [row(tool, *each) for each in compared]
