import numpy as np
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.inputs import Inputs
from generators.findings.measured import Measurements, StoredChance
from generators.findings.outliers import members, untrained
from generators.findings.outliers.clump import crowd_and_clump, scattered_clumps, spread
from generators.findings.outliers.ends import Ends, OutlierLists, TokenPlaces, outlier_lists
from generators.findings.outliers.members import ClumpMetrics, InPositions, in_positions
from generators.findings.outliers.tokens import OutlierTokens
from generators.findings.outliers.untrained import KnownUnused
from generators.findings.sizes import check_tokens, nonconstant_positions
from generators.findings.token_cells import names
from generators.maths.blocks import norms
from generators.maths.ranks import strongest_channel

DRAWN = 8192  # tokens drawn by norm


class Norms(TypedDict):
    mean: float
    min: float
    max: float


class OutliersChances(TypedDict):
    clump: StoredChance


class OutliersMetrics(TypedDict):
    """Numbers of the clump and its surroundings; `frequency_channel` is the one that pictures show norms against.

    Of a very large vocabulary some tokens are tried for being crowded (`asked_tokens`).
    """

    norm: Norms
    ends: Ends
    typical_distance: float
    crowded: int
    clump: ClumpMetrics | None
    in_positions: InPositions | None
    known_unused: KnownUnused | None
    n_tokens: int
    frequency_channel: int | None
    lists: OutlierLists
    chance: OutliersChances


def measure(inputs: Inputs) -> Measurements[OutliersMetrics]:
    """Measure the extremes by norm, the clump, and candidates for under-trained tokens.

    The clump is found without frequencies or a vocabulary; counts of the training text and names only judge it.
    """
    E = inputs.weights["token_embedding"]
    check_tokens(E)
    lengths = norms(E)
    tokens = OutlierTokens(E, lengths, inputs.vocabulary)
    crowd, clump = crowd_and_clump(E)
    indicator = untrained.indicator(tokens, clump, inputs.architecture.tied)
    best = inputs.frequencies[0] if inputs.frequencies else None
    counts = None if best is None else best.training_counts
    channel = None if best is None else strongest_channel(E, best.log_frequency)
    known = None if best is None or best.proxy else best.log_frequency
    lists, listed = outlier_lists(tokens, channel)
    places = TokenPlaces(tokens, clump, channel, known)
    metrics = OutliersMetrics(
        norm=Norms(mean=float(lengths.mean()), min=float(lengths.min()), max=float(lengths.max())),
        typical_distance=crowd.typical,
        crowded=int(crowd.crowded.sum()),
        ends=places.ends(),
        clump=None if clump is None else members.describe(clump, tokens.vocabulary),
        in_positions=None if clump is None else in_positions(tokens, clump, nonconstant_positions(inputs.weights)),
        known_unused=None if counts is None else untrained.known_unused(counts, clump),
        n_tokens=len(E),
        frequency_channel=channel,
        lists=lists,
        chance={"clump": scattered_clumps(E)},
    )
    tables = places.tables() | listed
    ids = spread(len(E), DRAWN)
    arrays: dict[str, Array] = {"ids": ids.astype(np.int32), "norm": lengths[ids], "nearest": crowd.nearest}
    arrays |= names(tokens.vocabulary, ids)
    if clump is not None:
        near = members.nearest_others(tokens, clump)
        tables |= members.tables(tokens, clump, near)
        arrays |= members.arrays(tokens, clump, near)
    if counts is not None and not counts.all():
        tables["known_unused"] = untrained.known_unused_table(counts, places.members, tokens)
    if indicator is not None:
        tables["candidates"] = untrained.candidate_table(indicator, tokens, counts)
    doubles = {name: array.astype(np.float32) for name, array in arrays.items() if array.dtype == np.float64}
    return Measurements(metrics, tables, arrays | doubles)
