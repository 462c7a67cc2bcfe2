from generators.base.text import share, two
from generators.findings.judging import Evidence, claim, strictest
from generators.findings.subspaces.measure import SubspacesMetrics

IN_TAIL, PARTLY_IN_TAIL = 0.5, 0.2  # share of energy


@claim("keep-apart", sense="at most", holds=0.5, partly=0.8, form=two)
def keep_apart(m: SubspacesMetrics) -> Evidence:
    nulls = m["chance"]["rivalry"]
    chance = strictest((nulls["turned"], nulls["exchanged"]), "at most")
    return Evidence(m["rivalry"], chance=chance, interval=m["intervals"]["rivalry"])


@claim("p-in-tail", holds=IN_TAIL, partly=PARTLY_IN_TAIL, form=share)
def positions_in_tail(m: SubspacesMetrics) -> Evidence:
    value, nulls = m["position_energy_in_tail"], m["chance"]["position_energy_in_tail"]
    chance = strictest((nulls["turned"], nulls["exchanged"]))
    return Evidence(value, chance=chance, interval=m["intervals"]["position_energy_in_tail"])


@claim("tokens-in-tail", holds=IN_TAIL, partly=PARTLY_IN_TAIL, form=share)
def tokens_in_tail(m: SubspacesMetrics) -> Evidence:
    value, nulls = m["token_energy_in_tail"], m["chance"]["token_energy_in_tail"]
    chance = strictest((nulls["turned"], nulls["exchanged"]))
    return Evidence(value, chance=chance, interval=m["intervals"]["token_energy_in_tail"])


RULES = (keep_apart, positions_in_tail, tokens_in_tail)
