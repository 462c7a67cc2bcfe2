from collections.abc import Iterator

from generators.findings.facts import TOKEN_NORM, EntityCount, EntityNames, EntityNumbers, Fact, Facts, by_id, rows
from generators.findings.judging import Evidence, Untested, claim
from generators.findings.measured import Measurements
from generators.findings.token_svd.measure import TokenSvdMetrics, WithoutCluster

APART = 0.9
LONG = 10  # smallest energy of a mean that counts, in mean variances per direction


@claim("first-is-mean", holds=0.95, long=LONG, with_arrays=True)
def first_is_mean(measured: Measurements[TokenSvdMetrics]) -> Evidence:
    m = measured.metrics
    rest = {
        f"without the {row['tokens']} tokens in one spot": Evidence(
            row["cosine_first_mean"], extra_condition_met=row["mean_energy"] >= LONG
        )
        for row in rows(measured, "without_cluster", WithoutCluster)
    }
    return Evidence(
        abs(m["cosine_first_mean"]),
        {"turned": m["chance"]["turned_mean"]["median"]},
        chance=m["chance"]["cosine_first_mean"],
        interval=m["intervals"]["cosine_first_mean"],
        extra_condition_met=m["mean_energy"] >= LONG,
        otherwise=rest,
        choice="whether tokens clustered in one spot are included",
    )


@claim("space-plane", holds=APART, form="{:.2f}")
def space_plane(m: TokenSvdMetrics) -> Evidence | Untested:
    areas, planes = m["auc"], m["chance"]["plane"]
    if areas is None or planes is None:
        return Untested("no-words")
    holds_at = max(APART, planes["limit"])
    return Evidence(areas["plane"], chance=planes, interval=m["intervals"]["plane"], holds_at=holds_at)


def tokens(found: Measurements[TokenSvdMetrics], count: int | None) -> Iterator[Fact]:
    arrays = found.arrays
    ids = arrays.get("token_id")
    yield EntityCount(found.metrics["n_tokens"])
    yield EntityNames(by_id(ids, arrays.get("token_name")) or {})
    yield EntityNumbers(TOKEN_NORM, by_id(ids, arrays.get("token_norm")), order="largest")
    share = by_id(ids, arrays.get("token_overlap"))
    yield EntityNumbers("share of its energy in the directions of positions", share, order="largest")


FACTS = Facts(entities={"token": tokens})
