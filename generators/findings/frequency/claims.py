"""What is claimed of frequency: rules, numbers and sentences."""

from generators.findings.contract import Measurements, Rule, Tested, Untested
from generators.findings.frequency.measure import Metrics

CHANCE_FACTOR = 2
SMALLEST_RHO = 0.30  # below this a channel does not track frequency, so it is not "the frequency channel"
SHORTER = -0.3

NO_FREQUENCIES = Untested("No token frequencies are known for this model; the token index is only a proxy.")


def _tracks(measured: Measurements[Metrics]) -> Tested | Untested:
    m = measured.metrics
    if m["proxy"]:
        return NO_FREQUENCIES
    channel, rho, chance = m["frequency_channel"]["channel"], m["frequency_channel"]["rho"], m["chance_rho"]
    return Tested(
        abs(rho),
        f"Channel {channel} goes with log-frequency at rho {rho:+.2f}, more than any other of the "
        f"{m['n_channels']}; with frequencies shuffled the best reaches {chance:.2f}.",
        baseline=chance,
        also=abs(rho) >= CHANCE_FACTOR * chance,
    )


def _is_ln2(measured: Measurements[Metrics]) -> Tested | Untested:
    m = measured.metrics
    if m["proxy"]:
        return NO_FREQUENCIES
    channel, rho, place = m["ln2_channel"], m["ln2_channel_rho"], m["ln2_channel_rank"]
    if channel is None or rho is None:
        return Untested("The gains of ln2 are constant or not in this checkpoint.")
    tracked = f"Channel {channel}, which ln2 raises most often, goes with frequency at rho {rho:+.2f}"
    return Tested(
        place,
        {
            "holds": f"{tracked}: it is the frequency channel.",
            "fails": f"{tracked}, number {place} of {m['n_channels']} channels; the strongest is "
            f"{m['frequency_channel']['channel']}.",
        },
        baseline=(m["n_channels"] + 1) / 2,
        also=abs(rho) >= SMALLEST_RHO,
    )


def _shorter(measured: Measurements[Metrics]) -> Tested | Untested:
    m = measured.metrics
    if m["proxy"]:
        return NO_FREQUENCIES
    rho = m["norm_rho"]
    if rho is None:
        return Untested("All norms or all frequencies are alike.")
    how = f"Norm and log-frequency correlate at rho {rho:+.2f}"
    weak = "frequent tokens are hardly shorter or longer than others"
    return Tested(
        rho,
        {
            "holds": f"{how}: frequent tokens are shorter.",
            "fails": f"{how}: {'the opposite, frequent tokens are longer' if rho >= -SHORTER else weak}.",
        },
        baseline=0.0,
    )


def _times(factor: float) -> str:
    return "twice" if factor == 2 else f"{factor:g} times"


RULES = (
    Rule(
        id="frequency-channel",
        short="frequency channel",
        statement="One channel tracks frequency.",
        value="|frequency_channel.rho|",
        sense="at least",
        holds=0.5,
        partly=SMALLEST_RHO,
        unit="rank correlation",
        also=f"and at least {_times(CHANCE_FACTOR)} what the best channel reaches when frequencies are shuffled",
        test=_tracks,
    ),
    Rule(
        id="frequency-is-ln2",
        short="frequency is ln2's",
        statement="The frequency channel is the one ln2 singles out.",
        value="rank by |rho| of the channel with the largest ln2 gain in most layers",
        sense="at most",
        holds=1,
        unit="rank of the channel",
        also=f"and its |rho| is at least {SMALLEST_RHO:g}",
        test=_is_ln2,
    ),
    Rule(
        id="frequent-shorter",
        short="frequent shorter",
        statement="Frequent tokens are shorter.",
        value="norm_rho",
        sense="at most",
        holds=SHORTER,
        unit="rank correlation",
        test=_shorter,
    ),
)
