import numpy as np
from jaxtyping import Bool, Int, UInt8
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings.inputs import Inputs, Vocabulary
from generators.findings.measured import Measurements, Table, table_of
from generators.findings.token_cells import COLUMNS, cells, reserved_names
from generators.maths.blocks import first_identical

# What a row is, the last that is true of it.
KINDS = ("other", "reserved name", "no token", "identical to another", "zeros")
RESERVED, NO_TOKEN, IDENTICAL, ZEROS = range(1, len(KINDS))
MOST_ROWS = 10_000  # in a table


class Named(TypedDict):
    """Rows that the tokenizer speaks of, and how many of them are zeros or identical to another."""

    rows: int
    shared: int


class VocabularyRowsMetrics(TypedDict):
    """Counts of rows. Rows of zeros are not among the identical ones, of which there are `vectors` distinct.

    `no_token` are rows for which the tokenizer has no token, `reserved` those of tokens whose names say that they are
    kept for later use; None without a tokenizer.
    """

    rows: int
    zeros: int
    identical: int
    vectors: int
    no_token: Named | None
    reserved: Named | None


def measure(inputs: Inputs) -> Measurements[VocabularyRowsMetrics]:
    """Find rows that share all their numbers, bit for bit in the precision in which they are read."""
    E, vocabulary = inputs.weights["token_embedding"], inputs.vocabulary
    first, zeros = first_identical(E), ~E.any(axis=1)
    sizes = np.bincount(first, minlength=len(E))
    identical = (sizes[first] > 1) & ~zeros
    absent = reserved = None
    if vocabulary is not None:
        absent = np.array(vocabulary.groups) == "unassigned"
        reserved = np.isin(np.arange(len(E)), list(reserved_names(vocabulary)))
    kinds = np.zeros(len(E), np.uint8)
    for kind, those in ((RESERVED, reserved), (NO_TOKEN, absent), (IDENTICAL, identical), (ZEROS, zeros)):
        if those is not None:
            kinds[those] = kind
    groups = np.flatnonzero((sizes > 1) & ~zeros)
    largest = groups[np.argsort(-sizes[groups], kind="stable")][:MOST_ROWS].tolist()
    vectors = [{**cells(vocabulary, i), "rows": int(sizes[i])} for i in largest]
    metrics = VocabularyRowsMetrics(
        rows=len(E),
        zeros=int(zeros.sum()),
        identical=int(identical.sum()),
        vectors=len(groups),
        no_token=_counted(absent, kinds),
        reserved=_counted(reserved, kinds),
    )
    tables = {
        "rows": _rows(kinds, first, sizes, reserved, vocabulary),
        "groups": table_of(
            "Vectors that several rows share, each by the first of its rows", (*COLUMNS, "rows"), vectors
        ),
    }
    return Measurements(metrics, {name: table for name, table in tables.items() if table.rows}, {"kinds": kinds})


def _counted(those: Bool[Array, " V"] | None, kinds: UInt8[Array, " V"]) -> Named | None:
    return None if those is None else Named(rows=int(those.sum()), shared=int((kinds[those] >= IDENTICAL).sum()))


def _rows(
    kinds: UInt8[Array, " V"],
    first: Int[Array, " V"],
    sizes: Int[Array, " V"],
    reserved: Bool[Array, " V"] | None,
    vocabulary: Vocabulary | None,
) -> Table:
    ids = np.flatnonzero(kinds >= NO_TOKEN)
    which = f" (the first {MOST_ROWS:,} of {len(ids):,})" if len(ids) > MOST_ROWS else ""
    rows = [
        {
            **cells(vocabulary, i),
            "kind": KINDS[kinds[i]],
            "same_as": int(first[i]) if sizes[first[i]] > 1 else None,  # the first row with the same numbers
            "reserved_name": None if reserved is None else bool(reserved[i]),
        }
        for i in ids[:MOST_ROWS].tolist()
    ]
    columns = (*COLUMNS, "kind", "same_as", "reserved_name")
    return table_of(f"Rows of zeros, identical to another, or without a token{which}", columns, rows)
