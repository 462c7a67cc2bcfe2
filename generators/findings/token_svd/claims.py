from generators.base.text import two
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements
from generators.findings.nulls import chance, pair
from generators.findings.token_svd.measure import TokenSvdMetrics

FIRST = 0.95
APART = 0.9
LONG = 10  # smallest energy of a mean that counts, in mean variances per direction


def _first_is_mean(measured: Measurements[TokenSvdMetrics]) -> Tested:
    m = measured.metrics
    cosine, times = m["cosine_first_mean"], m["mean_energy"]
    turned = m["chance"]["turned_mean"]["median"]
    alone = two(turned)
    how = (
        f"The first right singular vector and the mean embedding have cosine {two(cosine, FIRST)}. The mean's "
        f"squared length is {two(times, LONG)} times the average variance per direction"
    )
    return Tested(
        abs(cosine),
        {
            "holds": f"{how}. A mean this long would be the first direction wherever it pointed (cosine {alone})."
            if turned >= FIRST
            else f"{how}. In a random direction its cosine would be {alone}.",
            "fails": f"{how}. {_why_not(abs(cosine), times)}.",
        },
        chance=chance(m["chance"]["cosine_first_mean"]),
        interval=pair(m["intervals"]["cosine_first_mean"]),
        extra_condition_met=times >= LONG,
    )


def _why_not(cosine: float, times: float) -> str:
    if cosine < FIRST:
        return f"A cosine of at least {FIRST:g} is needed"
    if times < LONG:
        return f"At least {LONG} times is needed; a shorter mean lies along the first direction by accident"
    return "Tokens centered at zero come as close by accident"


def _space_plane(measured: Measurements[TokenSvdMetrics]) -> Tested | Untested:
    m = measured.metrics
    areas, planes = m["auc"], m["chance"]["plane"]
    if areas is None or planes is None:
        return Untested("It is unknown which tokens begin a word, or nearly all or none do.")
    return Tested(
        areas["plane"],
        f"In the plane of the second and third directions, tokens with a leading space are separated from the rest "
        f"with an AUC of {areas['plane']:.2f} (second direction alone {areas['second']:.2f}, third "
        f"{areas['third']:.2f}). Random planes reach {planes['median']:.2f} (99th percentile {planes['limit']:.2f}); "
        f"all channels together reach {areas['held_out_all_channels']:.2f} on held-out tokens.",
        form="{:.2f}",
        chance=chance(planes),
        interval=pair(m["intervals"]["plane"]),
        holds_at=max(APART, planes["limit"]),
    )


RULES = (
    Rule(
        id="first-is-mean",
        short="first is mean",
        statement="The first direction is the mean.",
        value="|cosine| of the first direction with the mean embedding",
        holds=FIRST,
        unit="cosine",
        also=f"and the mean's squared length is at least {LONG} times the tokens' average variance per direction",
        test=_first_is_mean,
    ),
    Rule(
        id="space-plane",
        short="leading space",
        statement="The next two directions separate tokens with a leading space.",
        value="AUC of the plane of the next two directions for tokens with a leading space",
        holds=APART,
        unit="AUC",
        also="beyond the best lines in random planes",
        test=_space_plane,
    ),
)
