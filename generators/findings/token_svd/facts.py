from collections.abc import Iterator

from generators.findings.facts import TOKEN_NORM, EntityCount, EntityNames, EntityNumbers, Fact, Facts, by_id
from generators.findings.measured import Measurements
from generators.findings.token_svd.measure import TokenSvdMetrics


def tokens(found: Measurements[TokenSvdMetrics], count: int | None) -> Iterator[Fact]:
    arrays = found.arrays
    ids = arrays.get("token_id")
    yield EntityCount(found.metrics["n_tokens"])
    yield EntityNames(by_id(ids, arrays.get("token_name")) or {})
    yield EntityNumbers(TOKEN_NORM, by_id(ids, arrays.get("token_norm")), order="largest")
    share = by_id(ids, arrays.get("token_overlap"))
    yield EntityNumbers("share of its energy in the directions of positions", share, "svd-overlap", "largest")


FACTS = Facts(entities={"token": tokens})
