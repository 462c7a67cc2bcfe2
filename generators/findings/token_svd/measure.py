"""The leading right singular directions of E, and what they tell apart."""

import numpy as np
from jaxtyping import Float, Int8
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings import token_cells
from generators.findings.contract import Inputs, Measurements, NotApplicableError, Vocabulary
from generators.maths.spectra import gram

Kinds = Int8[Array, " V"]

MARKED, UNMARKED, LEFT_OUT = 1, 0, -1  # with the space marker, without, special or not known
SINGULAR_VALUES = 10  # that are told
SAMPLE = 6000  # tokens drawn in figures
SEED = 20211201
BLOCK = 4096  # rows brought to float64 at once
RIDGE = 1e-6  # of the mean variance, so that a direction without spread can't blow up
FEWEST = 20  # tokens of either kind


class Areas(TypedDict):
    """Areas under the ROC curve for telling tokens with the space marker from those without; chance is 0.5."""

    second: float
    third: float
    plane: float
    held_out_all_channels: float


class Metrics(TypedDict):
    """Cosine of the first direction with the mean, strengths, and what the next two tell apart."""

    cosine_first_mean: float
    singular_values: list[float]
    energy_first: float
    chance_cosine: float
    space_share: float | None
    auc: Areas | None
    n_tokens: int


def measure(inputs: Inputs) -> Measurements[Metrics]:
    """Measure the leading right singular directions of E and what they tell apart.

    Reads `token_embedding` (V, d). The vocabulary says which tokens carry the space marker; without it, or with
    hardly a token of one kind, those parts are None.

    Raises:
        NotApplicableError: E has fewer than three channels, or is all zeros.
    """
    E = inputs.weights["token_embedding"]
    energies, vectors = np.linalg.eigh(gram(E))
    if len(energies) < 3 or energies[-1] <= 0:
        raise NotApplicableError("The token embedding has no three leading directions.")
    mean = E.mean(axis=0, dtype=np.float64)
    top = _oriented(vectors[:, ::-1][:, :3], mean)
    scores = (E @ top.astype(np.float32)).astype(np.float64)
    kinds = _kinds(inputs.vocabulary, len(E))
    metrics = _metrics(energies[::-1], _cosine(top[:, 0], mean), E, scores, kinds)
    return Measurements(metrics, arrays=_arrays(E, scores, kinds, inputs.vocabulary))


def _oriented(vectors: Float[Array, "d 3"], mean: Float[Array, " d"]) -> Float[Array, "d 3"]:
    """Turn the first to the side of the mean, and the others so that their largest entry is positive."""
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    signs = np.where(largest >= 0, 1.0, -1.0)
    along = float(vectors[:, 0] @ mean)
    signs[0] = -1.0 if along < 0 else 1.0
    return vectors * signs


def _cosine(direction: Float[Array, " d"], mean: Float[Array, " d"]) -> float:
    """Return the cosine of a unit vector with the mean; a mean of length 0 has none with any."""
    length = float(np.linalg.norm(mean))
    return float(direction @ mean) / length if length else 0.0


def _kinds(vocabulary: Vocabulary | None, count: int) -> Kinds:
    """Return for every token whether it carries the space marker, -1 for special ones and without a vocabulary."""
    if vocabulary is None:
        return np.full(count, LEFT_OUT, np.int8)
    return np.where(vocabulary.special, LEFT_OUT, vocabulary.marks_space).astype(np.int8)


def _metrics(
    energies: Float[Array, " d"], cosine: float, E: Float[Array, "V d"], scores: Float[Array, "V 3"], kinds: Kinds
) -> Metrics:
    marked, unmarked = (int(np.sum(kinds == kind)) for kind in (MARKED, UNMARKED))
    told_apart = min(marked, unmarked) >= FEWEST
    return {
        "cosine_first_mean": cosine,
        "singular_values": np.sqrt(np.clip(energies[:SINGULAR_VALUES], 0, None)).tolist(),
        "energy_first": float(energies[0] / energies.sum()),
        "chance_cosine": float(1 / np.sqrt(len(energies))),
        "space_share": marked / (marked + unmarked) if told_apart else None,
        "auc": _areas(E, scores, kinds) if told_apart else None,
        "n_tokens": len(E),
    }


def _areas(E: Float[Array, "V d"], scores: Float[Array, "V 3"], kinds: Kinds) -> Areas:
    plane = scores[:, 1:]
    return {
        "second": auc(scores[:, 1], kinds),
        "third": auc(scores[:, 2], kinds),
        "plane": auc(plane @ _lda(plane, kinds), kinds),
        "held_out_all_channels": _held_out(E, kinds),
    }


def auc(scores: Float[Array, " V"], kinds: Kinds) -> float:
    """Return the area under the ROC curve for telling both kinds apart, at least 0.5: the direction has no sign."""
    from scipy.stats import mannwhitneyu

    scores = scores.astype(np.float64)  # SciPy would sum the ranks in the precision of the scores
    marked, unmarked = scores[kinds == MARKED], scores[kinds == UNMARKED]
    # Only the statistic is used: no exact distribution is needed.
    area = float(mannwhitneyu(marked, unmarked, method="asymptotic").statistic) / (len(marked) * len(unmarked))
    return max(area, 1 - area)


def _held_out(E: Float[Array, "V d"], kinds: Kinds) -> float:
    """Return the AUC of a linear discriminant on all channels, fitted on even ids and tested on odd ones."""
    even = np.arange(len(E)) % 2 == 0
    direction = _lda(E, np.where(even, kinds, LEFT_OUT))
    return auc(E @ direction.astype(E.dtype), np.where(even, LEFT_OUT, kinds))


def _lda(rows: Float[Array, "V c"], kinds: Kinds) -> Float[Array, " c"]:
    """Return Fisher's linear discriminant of tokens with the marker against those without, block by block."""
    c = rows.shape[1]
    scatter, sums, counts = np.zeros((c, c)), np.zeros((2, c)), np.zeros(2)
    for begin in range(0, len(rows), BLOCK):
        part = slice(begin, begin + BLOCK)
        for kind in (UNMARKED, MARKED):
            block = np.asarray(rows[part][kinds[part] == kind], np.float64)
            scatter += block.T @ block
            sums[kind] += block.sum(axis=0)
            counts[kind] += len(block)
    means = sums / counts[:, None]
    within = scatter - sum(counts[kind] * np.outer(means[kind], means[kind]) for kind in (UNMARKED, MARKED))
    within[np.diag_indices(c)] += RIDGE * np.trace(within) / c + np.finfo(np.float64).tiny
    return np.linalg.solve(within, means[MARKED] - means[UNMARKED])


def _arrays(
    E: Float[Array, "V d"], scores: Float[Array, "V 3"], kinds: Kinds, vocabulary: Vocabulary | None
) -> dict[str, Array]:
    rng = np.random.default_rng(SEED)
    ids = np.sort(rng.choice(len(E), min(SAMPLE, len(E)), replace=False))
    return {
        "token_scores": scores[ids].astype(np.float32),
        "token_kind": kinds[ids],
        "token_norm": np.linalg.norm(E[ids], axis=1).astype(np.float32),
        "token_id": ids.astype(np.int32),
        **token_cells.names(vocabulary, ids),
    }
