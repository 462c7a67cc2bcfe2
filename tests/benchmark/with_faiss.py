"""Exact neighbour searches by faiss, one thread. Run by the Python of an environment of its own, for `others.py`:

python tests/benchmark/with_faiss.py E.npy QUESTIONS.npz ANSWERS.npz
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import faiss
import numpy as np

BATCH = 1024


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    found = call()
    return time.process_time() - began, found


def counts(index: Any, E: np.ndarray, radius: float) -> np.ndarray:
    """Return how many others lie within a radius of each row; range_search takes its square."""
    found = [np.diff(index.range_search(E[i : i + BATCH], radius**2)[0]) for i in range(0, len(E), BATCH)]
    return np.concatenate(found).astype(np.int64) - 1


def main() -> None:
    faiss.omp_set_num_threads(1)
    E = np.load(sys.argv[1])
    with np.load(sys.argv[2]) as asked:
        ids, radius = asked["ids"], float(asked["radius"])
    products, distances = faiss.IndexFlatIP(E.shape[1]), faiss.IndexFlatL2(E.shape[1])
    products.add(E)
    distances.add(E)
    best, of_best = timed(lambda: products.search(E, 1)[1][:, 0])
    nearest, of_nearest = timed(lambda: np.sqrt(distances.search(E[ids], 2)[0][:, 1]))
    within, of_within = timed(lambda: counts(distances, E, radius))
    np.savez(
        sys.argv[3],
        version=faiss.__version__,
        seconds=[best, nearest, within],
        best=of_best,
        nearest=of_nearest,
        within=of_within,
    )


if __name__ == "__main__":
    main()
