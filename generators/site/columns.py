"""How a table's columns stand on a page: in words, what matters first. CSV files keep names and order as stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from generators.base.text import number

# Told last: long, and for those who look a token up elsewhere.
LAST = ("raw_bytes", "best_raw_bytes")

WORDS: Mapping[str, str] = MappingProxyType(
    {
        "absorbed": "share that yields it",
        "absorbs": "tokens that yield it",
        "best_id": "id of what it yields",
        "best_norm": "norm of what it yields",
        "best_raw_bytes": "bytes of what it yields",
        "best_readable": "yields",
        "by_position_alone": "by position alone",
        "ev3": "share in three components",
        "ev3_high": "share in three components, 95 % to",
        "ev3_low": "share in three components, 95 % from",
        "explained_variance_3d": "share of variance in three components",
        "explained_variance_ratio": "share of variance",
        "gain": "gain over standing still",
        "high": "95 % to",
        "in_E": "in E's directions",
        "in_E_folded": "in E's directions, gain folded in",
        "in_P": "in P's directions",
        "in_P_folded": "in P's directions, gain folded in",
        "k": "tokens back",
        "low": "95 % from",
        "of": "one",
        "with": "other",
        "peak_offset": "attends most at offset",
        "peak_offset_all_queries": "attends most at offset, all queries",
        "period_tokens": "tokens a cycle",
        "position_mean": "mean over positions",
        "position_std": "std over positions",
        "r2_affine": "R², affine map",
        "r2_identity": "R², standing still",
        "r2_rotation": "R², rotation",
        "r2_translation": "R², translation",
        "radius_cv": "std of the radius over its mean",
        "rank_residual": "ranks off the trend",
        "raw_bytes": "bytes (hex)",
        "readable": "token",
        "rho": "Spearman's ρ",
        "rho_frequency": "ρ with log-frequency",
        "rho_index": "ρ with token index, counted down",
        "rho_norm": "ρ with norm",
        "share_high": "share, 95 % to",
        "share_low": "share, 95 % from",
        "translation_gain": "gain of a translation",
        "unigram_rho": "ρ with unigram frequency",
        "weight_at_-1": "weight at offset −1",
        "weight_at_0": "weight at offset 0",
        "weight_at_1": "weight at offset 1",
        "weight_at_peak": "weight there",
    }
)


@dataclass(frozen=True)
class Column:
    """A column on a page: where it stands in the stored table, its name there, and what it is called here."""

    index: int
    name: str
    words: str


def ties(rows: Sequence[Sequence[Any]], column: int) -> frozenset[str]:
    """Return what different numbers of a column are written alike: sorting needs what stands behind these."""
    behind: dict[str, set[float]] = {}
    for row in rows:
        if isinstance(row[column], float):
            behind.setdefault(number(row[column]), set()).add(row[column])
    return frozenset(written for written, values in behind.items() if len(values) > 1)


def shown(names: Sequence[str]) -> list[Column]:
    """Return the columns of a table as a page shows them."""
    columns = [Column(i, name, WORDS.get(name, name.replace("_", " "))) for i, name in enumerate(names)]
    return sorted(columns, key=lambda column: column.name in LAST)
