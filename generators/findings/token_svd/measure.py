import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings import token_cells
from generators.findings.inputs import Inputs, NotApplicableError, Vocabulary
from generators.findings.measured import Interval, Measurements, StoredChance
from generators.findings.nonconstant_rows import nonconstant_positions
from generators.findings.nulls import DRAWS, RESAMPLES, drawn, interval
from generators.findings.sizes import check_tokens
from generators.findings.token_svd.extremes import Extremes, extremes
from generators.findings.token_svd.overlap import Overlap, overlap
from generators.findings.token_svd.separation import (
    FEWEST,
    MARKED,
    UNMARKED,
    Areas,
    Kinds,
    area_interval,
    areas,
    best_line,
    kinds_of,
    other_planes,
)
from generators.maths.blocks import norms
from generators.maths.resampling import first_direction_cosine_of, resample_items
from generators.maths.rotations import accidental_mean_cosines, turned_mean_cosines
from generators.maths.spectra import gram

SINGULAR_VALUES = 10  # number stored
RESAMPLED_IN = 8  # leading directions in which the first of a resampling is sought
SAMPLE = 6000  # tokens drawn in figures
SEED = 20211201
NOTHING = 1e-12  # share of the energy below which variation is rounding


class TokenSvdChances(TypedDict):
    """By number that is claimed about; `turned_mean` is of a mean as long as the tokens', pointing anywhere."""

    cosine_first_mean: StoredChance
    turned_mean: StoredChance
    plane: StoredChance | None


class TokenSvdIntervals(TypedDict):
    cosine_first_mean: Interval
    plane: Interval | None


class TokenSvdMetrics(TypedDict):
    """Cosine of the first direction with the mean, strengths, and what the next two tell apart.

    `one_sign_share` is the share of tokens on the same side of zero along the first direction. `mean_energy` is the
    squared length of the mean in units of the tokens' mean variance in a direction, tr(C) / d.
    """

    cosine_first_mean: float
    mean_energy: float
    singular_values: list[float]
    energy_first: float
    one_sign_share: float
    space_share: float | None
    auc: Areas | None
    extremes: Extremes
    overlap: Overlap | None
    chance: TokenSvdChances
    intervals: TokenSvdIntervals
    n_channels: int
    n_tokens: int


def measure(inputs: Inputs) -> Measurements[TokenSvdMetrics]:
    """Measure the leading right singular directions of E and what they tell apart.

    Reads `token_embedding` (V, d). The vocabulary says which tokens carry the space marker; without it, or with
    hardly a token of one kind, those parts are None, as is what is said of positions without `position_embedding`.
    """
    E = inputs.weights["token_embedding"]
    check_tokens(E)
    total = gram(E)
    mean = E.mean(axis=0, dtype=np.float64)
    variances = np.clip(np.linalg.eigvalsh(total / len(E) - np.outer(mean, mean)), 0, None)
    if variances.sum() <= NOTHING * np.trace(total) / len(E):
        raise NotApplicableError("The token embeddings do not vary: they have no leading directions.")
    energies, vectors = np.linalg.eigh(total)
    energies, leading = energies[::-1], _oriented(vectors[:, ::-1][:, :RESAMPLED_IN], mean)
    scores = (E @ leading.astype(np.float32)).astype(np.float64)
    kinds = kinds_of(inputs.vocabulary, len(E))
    lengths = norms(E)
    both_kinds = min(int(np.sum(kinds == kind)) for kind in (MARKED, UNMARKED)) >= FEWEST
    P = nonconstant_positions(inputs.weights)
    overlapping, shares = (None, None) if P is None else overlap(E, P, leading[:, 0], lengths, SEED)
    metrics = TokenSvdMetrics(
        cosine_first_mean=_cosine(leading[:, 0], mean),
        mean_energy=float(mean @ mean / variances.mean()),
        singular_values=np.sqrt(np.clip(energies[:SINGULAR_VALUES], 0, None)).tolist(),
        energy_first=float(energies[0] / energies.sum()),
        one_sign_share=float(max(np.mean(scores[:, 0] > 0), np.mean(scores[:, 0] < 0))),
        space_share=float(np.mean(kinds[kinds >= 0] == MARKED)) if both_kinds else None,
        auc=areas(E, scores[:, 1:3], kinds) if both_kinds else None,
        extremes=extremes(scores[:, 0], lengths, SEED),
        overlap=overlapping,
        chance={
            **_of_the_mean(variances, mean, len(E)),
            "plane": other_planes(E, kinds, SEED) if both_kinds else None,
        },
        intervals={
            "cosine_first_mean": _cosine_interval(scores, mean - leading @ (leading.T @ mean)),
            "plane": area_interval(best_line(scores[:, 1:3], kinds), kinds, SEED) if both_kinds else None,
        },
        n_channels=len(energies),
        n_tokens=len(E),
    )
    columns = {"token_scores": scores[:, :3], "token_norm": lengths}
    if shares is not None:
        columns["token_overlap"] = shares
    return Measurements(metrics, arrays=_arrays(columns, kinds, inputs.vocabulary))


def _oriented(vectors: Float[Array, "d m"], mean: Float[Array, " d"]) -> Float[Array, "d m"]:
    """Turn the first to the side of the mean, and the others so that their largest entry is positive."""
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    signs = np.where(largest >= 0, 1.0, -1.0)
    along = float(vectors[:, 0] @ mean)
    signs[0] = -1.0 if along < 0 else 1.0
    return vectors * signs


def _cosine(direction: Float[Array, " d"], mean: Float[Array, " d"]) -> float:
    length = float(np.linalg.norm(mean))
    return float(direction @ mean) / length if length else 0.0


class _OfTheMean(TypedDict):
    cosine_first_mean: StoredChance
    turned_mean: StoredChance


def _of_the_mean(variances: Float[Array, " d"], mean: Float[Array, " d"], count: int) -> _OfTheMean:
    """Return the cosine where the mean is an accident, and where it is as long as it is and points anywhere."""
    rng = np.random.default_rng(SEED)
    accidental = accidental_mean_cosines(variances, count, DRAWS, rng)
    turned = turned_mean_cosines(variances, float(mean @ mean), DRAWS, rng) if mean.any() else np.zeros(DRAWS)
    return {
        "cosine_first_mean": drawn("tokens of this spectrum about zero, whose mean is an accident", accidental),
        "turned_mean": drawn("means of this length that point anywhere", turned),
    }


def _cosine_interval(scores: Float[Array, "V m"], rest: Float[Array, " d"]) -> Interval:
    statistic = first_direction_cosine_of(scores, rest)
    return interval(resample_items(statistic, len(scores), RESAMPLES, np.random.default_rng(SEED)))


def _arrays(columns: dict[str, Array], kinds: Kinds, vocabulary: Vocabulary | None) -> dict[str, Array]:
    rng = np.random.default_rng(SEED)
    ids = np.sort(rng.choice(len(kinds), min(SAMPLE, len(kinds)), replace=False))
    return {
        **{name: column[ids].astype(np.float32) for name, column in columns.items()},
        "token_kind": kinds[ids],
        "token_id": ids.astype(np.int32),
        **token_cells.names(vocabulary, ids),
    }
