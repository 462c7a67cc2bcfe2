"""What findings that run the model share: on what it was run, and means over windows of text with their intervals.

Intervals come from drawing the files of the text again, each with all its windows: windows of one file are alike, so
that drawing them one by one would make intervals too narrow.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.runs import Run, Text, Windows
from generators.maths.resampling import cluster_weights, interval

WINDOWS = 64  # windows of text, unless a finding says otherwise
SEED = 20231204
GROUP = 10  # positions, in every finding that makes positions coarser
RESAMPLES = 1000
OPENING = 4  # first positions of a window: fixed tokens, and activations far larger than others
FOLDS = 8  # folds of files, so that windows of one file are left out together


class Ran(TypedDict):
    text: str
    text_sha256: str
    windows: int
    window_length: int
    software: dict[str, str]


class WindowMean(TypedDict):
    """A mean over windows with its 95 % interval and standard error over files."""

    mean: float
    low: float
    high: float
    standard_error: float


def ran(run: Run, windows: Windows, text: Text | None = None) -> Ran:
    text, (count, length) = text or run.text, windows.ids.shape
    return Ran(
        text=text.name,
        text_sha256=text.sha256,
        windows=count,
        window_length=length,
        software=run.record,
    )


def first_windows(windows: Windows, count: int, length: int | None = None) -> Windows:
    """Return the first windows; of each the first `length` tokens, all by default."""
    ids, (begin, end) = windows.ids[:count, :length], windows.inner
    return Windows(ids, (begin, min(end, ids.shape[1])), windows.files[:count], windows.mask_id)


def text_columns(windows: Windows) -> slice:
    """Return the positions whose means are compared: without the first four, and without the tokenizer's own tokens.

    A token that stands at one place in all windows would be most of what positions differ by, and so would a massive
    activation at the first tokens. Of windows below 16 tokens, a quarter is left out.
    """
    first, last = windows.inner
    return slice(max(first, 1, min(OPENING, last // 4)), last)


def mean_over_windows(values: Float[Array, " windows"], files: Int[Array, " windows"]) -> WindowMean:
    """Return a mean over windows; its interval comes from resampling the files that they lie in.

    Example:
        >>> found = mean_over_windows(loss.per_window(), windows.files)
        >>> found["low"] <= found["mean"] <= found["high"]
        True
    """
    drawn = file_weights(files) @ values
    low, high = interval(drawn)
    return WindowMean(mean=float(values.mean()), low=low, high=high, standard_error=float(drawn.std()))


def ratio_over_windows(
    part: Float[Array, " windows"], whole: Float[Array, " windows"], files: Int[Array, " windows"]
) -> tuple[float, float, float]:
    """Return mean(part) / mean(whole) with its 95 % interval, both from the same resampled files.

    Shares of nothing are 0.
    """
    weights = np.vstack([np.full(len(whole), 1 / len(whole)), file_weights(files)])
    wholes = weights @ whole
    drawn = np.divide(weights @ part, wholes, out=np.zeros(len(wholes)), where=wholes != 0)
    low, high = interval(drawn[1:])
    return float(drawn[0]), low, high


def file_weights(files: Int[Array, " windows"]) -> Float[Array, "draws windows"]:
    """Return what share each window has in every resampling of files; the same for the same files."""
    return _weights_of(tuple(np.asarray(files).tolist()))


@lru_cache(maxsize=4)
def _weights_of(files: tuple[int, ...]) -> Float[Array, "draws windows"]:
    weights = cluster_weights(np.array(files), RESAMPLES, np.random.default_rng(SEED))
    weights /= weights.sum(axis=1, keepdims=True)
    weights.flags.writeable = False  # shared by callers
    return weights


def folds_of(files: Int[Array, " windows"]) -> Int[Array, " windows"]:
    """Return the fold of every window: whole files, the largest first, each to the fold with fewest windows.

    Where there are fewer files than folds, windows go to folds in turn.
    """
    names, of_window, sizes = np.unique(files, return_inverse=True, return_counts=True)
    if len(names) < FOLDS:
        return np.arange(len(files)) % FOLDS
    fold, filled = np.zeros(len(names), np.intp), np.zeros(FOLDS, np.intp)
    for file in np.argsort(-sizes, kind="stable"):
        fold[file] = filled.argmin()
        filled[fold[file]] += sizes[file]
    return fold[of_window]
