"""What is claimed of the leading directions of tokens: rules, numbers and sentences."""

from generators.findings.contract import Measurements, Rule, Tested, Untested
from generators.findings.token_svd.measure import Metrics

CHANCE_AREA = 0.5


def _first_is_mean(measured: Measurements[Metrics]) -> Tested:
    m = measured.metrics
    cosine, chance = m["cosine_first_mean"], m["chance_cosine"]
    return Tested(
        abs(cosine),
        f"The first right singular vector and the mean embedding have cosine {cosine:.3f}; it holds "
        f"{m['energy_first']:.0%} of the energy. Two random directions have about {chance:.2f}.",
        baseline=chance,
    )


def _space_plane(measured: Measurements[Metrics]) -> Tested | Untested:
    areas = measured.metrics["auc"]
    if areas is None:
        return Untested("No tokenizer says which tokens carry the space marker, or nearly all or none do.")
    return Tested(
        areas["plane"],
        f"The best line in the plane of the second and third directions tells tokens with the space marker from "
        f"those without with AUC {areas['plane']:.2f} (second alone {areas['second']:.2f}, third "
        f"{areas['third']:.2f}); all channels together reach {areas['held_out_all_channels']:.2f} on tokens not "
        f"fitted on.",
        baseline=CHANCE_AREA,
    )


RULES = (
    Rule(
        id="first-is-mean",
        short="first is mean",
        statement="The first direction is the mean.",
        value="|cosine_first_mean|",
        sense="at least",
        holds=0.95,
        unit="cosine",
        test=_first_is_mean,
    ),
    Rule(
        id="space-plane",
        short="leading space",
        statement="The next two separate leading space.",
        value="auc.plane",
        sense="at least",
        holds=0.9,
        unit="AUC",
        test=_space_plane,
    ),
)
