"""What is claimed of the subspaces: rules, numbers and sentences."""

from generators.findings.contract import Measurements, Rule, Tested, Untested
from generators.findings.subspaces.measure import Metrics


def _keep_apart(measured: Measurements[Metrics]) -> Tested | Untested:
    rivalry = measured.metrics["rivalry"]
    overlap = f"Tokens and positions overlap {rivalry:.2f} times as much as unrelated ones would"
    return Tested(
        rivalry,
        {"holds": f"{overlap}: they keep apart.", "partly": f"{overlap}.", "fails": f"{overlap}."},
        baseline=1.0,
    )


def _in_tail(measured: Measurements[Metrics]) -> Tested | Untested:
    share, chance = measured.metrics["position_energy_in_tail"], measured.metrics["chance_in_tail"]
    return Tested(
        share,
        f"{share:.1%} of the positions' energy lies in the tenth of the directions where tokens vary least; chance "
        f"gives {chance:.1%}.",
        baseline=chance,
    )


RULES = (
    Rule(
        id="keep-apart",
        short="keep apart",
        statement="Tokens and positions keep apart.",
        value="rivalry",
        sense="at most",
        holds=0.5,
        partly=0.8,
        unit="of what unrelated spreads share",
        test=_keep_apart,
    ),
    Rule(
        id="p-in-tail",
        short="P in E's tail",
        statement="P sits in E's tail.",
        value="position_energy_in_tail",
        sense="at least",
        holds=0.5,
        partly=0.2,
        unit="share of energy",
        test=_in_tail,
    ),
)
