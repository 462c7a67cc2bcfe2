"""What is claimed of the leading directions of tokens: rules, numbers and sentences."""

from generators.base.text import two
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements
from generators.findings.nulls import chance, pair
from generators.findings.token_svd.measure import TokenSvdMetrics

FIRST = 0.95
APART = 0.9
LONG = 10  # times the mean variance in a direction: how much energy a mean that counts has at least


def _first_is_mean(measured: Measurements[TokenSvdMetrics]) -> Tested:
    m = measured.metrics
    cosine, times = m["cosine_first_mean"], m["mean_energy"]
    turned = m["chance"]["turned_mean"]["median"]
    how = (
        f"The first right singular vector and the mean embedding have cosine {two(cosine, FIRST)}; the mean has "
        f"{two(times, LONG)} times the mean variance in a direction"
    )
    return Tested(
        abs(cosine),
        {
            "holds": f"{how}. So long a mean would be the first direction wherever it pointed (cosine {two(turned)})."
            if turned >= FIRST
            else f"{how}. In a random direction its cosine would be {two(turned)}.",
            "fails": f"{how}. {_why_not(abs(cosine), times)}.",
        },
        chance=chance(m["chance"]["cosine_first_mean"]),
        interval=pair(m["intervals"]["cosine_first_mean"]),
        also=times >= LONG,
    )


def _why_not(cosine: float, times: float) -> str:
    """Return why the first direction is not the mean."""
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
        f"In the plane of the second and third directions, tokens with a leading space are told from the rest with "
        f"an AUC of {areas['plane']:.2f} (second alone {areas['second']:.2f}, third {areas['third']:.2f}). Random "
        f"planes reach {planes['median']:.2f} (99th percentile {planes['limit']:.2f}); all channels together reach "
        f"{areas['held_out_all_channels']:.2f} on held-out tokens.",
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
        also=f"and the mean's energy is at least {LONG} times the tokens' mean variance in a direction",
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
