from functools import partial
from typing import Literal

from generators.base.text import share, two
from generators.findings.judging import Rule, Tested, Untested, strictest
from generators.findings.measured import Measurements, StoredChance
from generators.findings.nulls import pair
from generators.findings.subspaces.measure import SubspaceNulls, SubspacesMetrics

APART = 0.5  # share of what unrelated spreads have in common
IN_TAIL = 0.5  # share of energy


def _both(nulls: SubspaceNulls) -> tuple[StoredChance, StoredChance]:
    return nulls["turned"], nulls["exchanged"]


def _keep_apart(measured: Measurements[SubspacesMetrics]) -> Tested | Untested:
    rivalry = measured.metrics["rivalry"]
    null = strictest(_both(measured.metrics["chance"]["rivalry"]), "at most")
    limit = "" if null is None else f"; {null.null} would give {two(null.median)} (1st percentile {two(null.limit)})"
    return Tested(
        rivalry,
        f"Tokens and positions overlap {two(rivalry)} times as much as if they were unrelated{limit}.",
        form=two,
        chance=null,
        interval=pair(measured.metrics["intervals"]["rivalry"]),
    )


def _in_tail(measured: Measurements[SubspacesMetrics], of: Literal["position", "token"] = "position") -> Tested:
    metrics, others = measured.metrics, "tokens" if of == "position" else "positions"
    name: Literal["position_energy_in_tail", "token_energy_in_tail"]
    name = "position_energy_in_tail" if of == "position" else "token_energy_in_tail"
    null = strictest(_both(metrics["chance"][name]))
    limit = "" if null is None else f" ({null.null}: 99th percentile {share(null.limit)})"
    return Tested(
        metrics[name],
        f"The 10 % of directions in which {others} vary least hold {share(metrics[name])} of the {of}s' energy; "
        f"by chance they would hold {share(metrics['chance_in_tail'])}{limit}.",
        form=share,
        chance=null,
        interval=pair(metrics["intervals"][name]),
    )


RULES = (
    Rule(
        id="keep-apart",
        short="separate subspaces",
        statement="Tokens and positions use different subspaces.",
        value="overlap of the covariances of tokens and positions, over that of unrelated ones",
        sense="at most",
        holds=APART,
        partly=0.8,
        unit="times the overlap of unrelated ones",
        test=_keep_apart,
    ),
    Rule(
        id="p-in-tail",
        short="P in E's tail",
        statement="P lies in E's weakest directions.",
        value="share of P's energy in the tenth of the directions where tokens vary least",
        holds=IN_TAIL,
        partly=0.2,
        unit="share of energy",
        test=_in_tail,
    ),
    Rule(
        id="tokens-in-tail",
        short="E in P's tail",
        statement="E lies in P's weakest directions.",
        value="share of E's energy in the tenth of the directions where positions vary least",
        holds=IN_TAIL,
        partly=0.2,
        unit="share of energy",
        test=partial(_in_tail, of="token"),
    ),
)
