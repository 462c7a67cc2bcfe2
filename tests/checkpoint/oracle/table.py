"""The published table: family by matrix, norm, positions, kernel."""

from collections.abc import Mapping
from typing import Any

from tests.checkpoint.oracle.cases import OracleCase
from tests.checkpoint.oracle.comparison import TOLERANCE, ModelOracle

COLUMNS = (
    *("attn.q", "attn.k", "attn.v", "attn.o", "mlp.in", "mlp.gate", "mlp.out", "ln1", "ln2", "final norm"),
    *("unembedding", "positions", "attention", "kernel"),
)


def table_row(case: OracleCase, found: Mapping[str, float], oracle: ModelOracle) -> dict[str, Any]:
    """Return one row of the published table: for each thing whether it agrees, null where the family has none."""
    worst = dict(found)
    worst.setdefault("attention", worst.get("values", float("inf"))) if case.scores else None
    for name in ("attn.q", "attn.k", "attn.v"):  # fused ones are seen through what attention makes of them
        if name not in worst and "values" in worst:
            worst[name] = max(worst.get("attention", 0.0), worst["values"])
    for norm in ("ln1", "ln2"):
        seen = [value for what, value in found.items() if what.startswith(f"{norm} before")]
        if seen:
            worst[norm] = max(seen)
    return {
        "family": case.family,
        "model_type": case.type,
        "variant": case.note or None,
        "scheme": oracle.architecture.positions,
        "largest_difference": max(found.values()),
        **{column: None if column not in worst else worst[column] <= TOLERANCE for column in COLUMNS},
    }


def not_seen(case: OracleCase, row: Mapping[str, Any], oracle: ModelOracle) -> list[str]:
    """Return the columns of a row that every family must have, and that don't agree or weren't compared."""
    needed = {"attn.q", "attn.k", "attn.o", "positions", "ln2"} | ({"attn.v"} if case.scores else set())
    needed |= set() if "blocks.*.mlp.in" in oracle.family.without else {"mlp.in", "mlp.out"}
    return sorted(column for column in needed if not row[column])
