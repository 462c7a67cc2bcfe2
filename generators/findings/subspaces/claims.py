from typing import Literal

from generators.base.text import share, two
from generators.findings.judging import Evidence, Sense, claim
from generators.findings.nulls import strictest
from generators.findings.subspaces.measure import SubspacesMetrics

IN_TAIL, PARTLY_IN_TAIL = 0.5, 0.2  # share of energy
Name = Literal["rivalry", "position_energy_in_tail", "token_energy_in_tail"]


def _against_both(m: SubspacesMetrics, name: Name, sense: Sense = "at least") -> Evidence:
    nulls = m["chance"][name]
    chance = strictest((nulls["turned"], nulls["exchanged"]), sense)
    return Evidence(m[name], chance=chance, interval=m["intervals"][name])


@claim("keep-apart", sense="at most", holds=0.5, partly=0.8, form=two)
def keep_apart(m: SubspacesMetrics) -> Evidence:
    return _against_both(m, "rivalry", "at most")


@claim("p-in-tail", holds=IN_TAIL, partly=PARTLY_IN_TAIL, form=share)
def positions_in_tail(m: SubspacesMetrics) -> Evidence:
    return _against_both(m, "position_energy_in_tail")


@claim("tokens-in-tail", holds=IN_TAIL, partly=PARTLY_IN_TAIL, form=share)
def tokens_in_tail(m: SubspacesMetrics) -> Evidence:
    return _against_both(m, "token_energy_in_tail")
