"""What is claimed of the subspaces: rules, numbers and sentences."""

from functools import partial
from typing import Literal

from generators.findings.judging import Rule, Tested, Untested, strictest
from generators.findings.measured import Measurements, StoredChance
from generators.findings.nulls import pair
from generators.findings.subspaces.measure import SubspaceNulls, SubspacesMetrics

APART = 0.5  # of what unrelated spreads share
IN_TAIL = 0.5  # share of energy


def _both(nulls: SubspaceNulls) -> tuple[StoredChance, StoredChance]:
    return nulls["turned"], nulls["exchanged"]


def _keep_apart(measured: Measurements[SubspacesMetrics]) -> Tested | Untested:
    rivalry = measured.metrics["rivalry"]
    null = strictest(_both(measured.metrics["chance"]["rivalry"]), "at most")
    limit = "" if null is None else f"; {null.null} {null.median:.2f} (1st percentile {null.limit:.2f})"
    return Tested(
        rivalry,
        f"Tokens and positions overlap {rivalry:.2f} times as much as unrelated ones would{limit}.",
        form="{:.2f}",
        chance=null,
        interval=pair(measured.metrics["intervals"]["rivalry"]),
    )


def _in_tail(measured: Measurements[SubspacesMetrics], of: Literal["position", "token"] = "position") -> Tested:
    metrics, others = measured.metrics, "tokens" if of == "position" else "positions"
    name: Literal["position_energy_in_tail", "token_energy_in_tail"]
    name = "position_energy_in_tail" if of == "position" else "token_energy_in_tail"
    null = strictest(_both(metrics["chance"][name]))
    limit = "" if null is None else f" ({null.null}: 99th percentile {null.limit:.1%})"
    return Tested(
        metrics[name],
        f"{metrics[name]:.1%} of the {of}s' energy lies in the tenth of the directions where {others} vary least; "
        f"chance {metrics['chance_in_tail']:.1%}{limit}.",
        form="{:.0%}",
        chance=null,
        interval=pair(metrics["intervals"][name]),
    )


RULES = (
    Rule(
        id="keep-apart",
        short="keep apart",
        statement="Tokens and positions keep apart.",
        value="overlap of the spreads of tokens and positions, over that of unrelated ones",
        sense="at most",
        holds=APART,
        partly=0.8,
        unit="of what unrelated spreads share",
        test=_keep_apart,
    ),
    Rule(
        id="p-in-tail",
        short="P in E's tail",
        statement="P sits in E's tail.",
        value="share of P's energy in the tenth of the directions where tokens vary least",
        holds=IN_TAIL,
        partly=0.2,
        unit="share of energy",
        test=_in_tail,
    ),
    Rule(
        id="tokens-in-tail",
        short="E in P's tail",
        statement="Tokens sit in P's tail.",
        value="share of E's energy in the tenth of the directions where positions vary least",
        holds=IN_TAIL,
        partly=0.2,
        unit="share of energy",
        test=partial(_in_tail, of="token"),
    ),
)
