from collections.abc import Iterator

from generators.findings import facts
from generators.findings.measured import Measurements
from generators.findings.zero_layer.measure import ExceptionRow, HubRow, ZeroLayerMetrics

NAMED = 5  # most-returned tokens, listed by name
SAMPLES = ("ids", "norm", "token_name"), ("best", "best_norm", "best_name")


def tokens(found: Measurements[ZeroLayerMetrics], count: int | None) -> Iterator[facts.Fact]:
    arrays = found.arrays
    yield facts.EntityCount(found.metrics["n_tokens"])
    for ids, norm, name in SAMPLES:
        yield facts.EntityNames(facts.by_id(arrays.get(ids), arrays.get(name)) or {})
        yield facts.EntityNumbers(facts.TOKEN_NORM, facts.by_id(arrays.get(ids), arrays.get(norm)), order="largest")
    exceptions = facts.rows(found, "exceptions", ExceptionRow)
    if found.metrics["exceptions"] == len(exceptions):
        another = "Without layers, the model predicts another token after it."
        yield facts.EntityGroup(another, "Without layers, the model repeats it.", [row["id"] for row in exceptions])
    if exceptions:
        yielded = {row["id"]: row["best_id"] for row in exceptions}
        yield facts.EntityNumbers("next token without layers", yielded, "zero-layer-norms", leads="token")
        norms = {row["id"]: row["best_norm"] for row in exceptions}
        yield facts.EntityNumbers("norm of that token", norms, "zero-layer-norms")
        cosines = {row["id"]: row["cosine"] for row in exceptions}
        yield facts.EntityNumbers("cosine with that token", cosines, "zero-layer-norms")
    for place, hub in enumerate(facts.rows(found, "hubs", HubRow)):
        says = f"Without layers, the model predicts this token after each of {hub['absorbs']:,} different tokens."
        yield facts.EntityNote(hub["id"], says, named=place < NAMED)


FACTS = facts.Facts(entities={"token": tokens})
