from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.runs import Run, Windows
from generators.findings.running import FOLDS, folds_of
from generators.maths.resampling import jackknife

TOKENS = 256  # most frequent tokens of the text
FEWEST = 16  # minimum occurrences of a token


class MlpRow(TypedDict):
    """One layer's MLP: which share of the variance of what it writes lies between positions, and between tokens.

    `position` is what positions differ by where the token is the same; both are freed of sampling noise.
    """

    layer: int
    position: float
    position_low: float
    position_high: float
    token: float


@dataclass(frozen=True)
class _Occurrences:
    which: Int[Array, "windows n"]  # token index, -1 elsewhere
    counts: Float[Array, "folds n tokens"]
    folds: Int[Array, " windows"]


def mlp_rows(run: Run, windows: Windows) -> list[MlpRow]:
    """Return the numbers of every layer, on the tokens that occur most often.

    None where no token occurs often, or where what the MLPs write can't be seen.
    """
    found = _occurrences(windows)
    if found is None:
        return []
    n, tokens = found.counts.shape[1:]
    layers, d = run.architecture.n_layer, run.architecture.d_model
    by_position = np.zeros((layers, FOLDS, n, d), np.float32)
    by_token = np.zeros((layers, FOLDS, tokens, d), np.float32)
    squares = np.zeros((layers, FOLDS))

    def see(layer: int, begin: int, wrote: Float[Array, "batch n d"]) -> None:
        for window, written in enumerate(wrote, start=begin):
            fold, places = found.folds[window], np.flatnonzero(found.which[window] >= 0)
            chosen = written[places]
            by_position[layer, fold, places] += chosen
            np.add.at(by_token[layer, fold], found.which[window, places], chosen)
            squares[layer, fold] += np.einsum("ij,ij->", chosen, chosen, dtype=np.float64)

    if not run.mlp_outputs(windows.ids, see):
        return []
    sizes = found.counts.sum(axis=(1, 2))
    rows = []
    for layer in range(layers):
        parts = by_position[layer], by_token[layer], squares[layer], found.counts
        position, token = _shares(*parts, np.ones(FOLDS, bool))
        without = np.array([_shares(*parts, np.arange(FOLDS) != fold)[0] for fold in range(FOLDS)])
        low, high = jackknife(without, position, sizes)
        rows.append(MlpRow(layer=layer, position=position, position_low=low, position_high=high, token=token))
    return rows


def _occurrences(windows: Windows) -> _Occurrences | None:
    first, last = windows.inner
    ids = windows.ids[:, first + 1 : last]
    tokens, times = np.unique(ids, return_counts=True)
    often = tokens[np.argsort(-times, kind="stable")[:TOKENS]]
    often = np.sort(often[np.isin(often, tokens[times >= FEWEST])])
    if len(often) < 2:
        return None
    at = np.minimum(np.searchsorted(often, windows.ids), len(often) - 1)
    is_often = often[at] == windows.ids
    is_often[:, : first + 1] = is_often[:, last:] = False
    which, folds = np.where(is_often, at, -1), folds_of(windows.files)
    counts = np.zeros((FOLDS, windows.ids.shape[1], len(often)))
    window, place = np.nonzero(is_often)
    np.add.at(counts, (folds[window], place, which[window, place]), 1)
    return _Occurrences(which, counts, folds)


def _shares(
    by_position: Float[Array, "folds n d"],
    by_token: Float[Array, "folds tokens d"],
    squares: Float[Array, " folds"],
    counts: Float[Array, "folds n tokens"],
    kept: Bool[Array, " folds"],
) -> tuple[float, float]:
    """Return the shares of variance between positions at equal token, and between tokens.

    The components of variance of two unbalanced one-way layouts: of tokens, then of positions in what is left when
    every token's mean is taken away.
    """
    table = counts[kept].sum(axis=0)
    of_token, of_position = table.sum(axis=0), table.sum(axis=1)
    there, used = of_token > 0, of_position > 0
    total, sums = of_token.sum(), by_token[kept].sum(axis=0, dtype=np.float64)
    means = np.divide(sums, of_token[:, None], out=np.zeros_like(sums), where=there[:, None])
    between = float(of_token @ np.sum((means - sums.sum(axis=0) / total) ** 2, axis=1))
    within = float(squares[kept].sum()) - float(of_token @ np.sum(means**2, axis=1))
    away = by_position[kept].sum(axis=0, dtype=np.float64)[used] - table[used] @ means
    along = float(np.sum(np.sum(away**2, axis=1) / of_position[used]))
    left = (within - along) / max(total - used.sum() - there.sum() + 1, 1.0)
    position = (along - (used.sum() - 1) * left) / (total - float(of_position @ of_position) / total)
    noise = within / max(total - there.sum(), 1.0)
    token = (between - (there.sum() - 1) * noise) / (total - float(of_token @ of_token) / total)
    whole = max(position, 0.0) + max(token, 0.0) + max(left, 0.0)
    return (position / whole, token / whole) if whole > 0 else (0.0, 0.0)
