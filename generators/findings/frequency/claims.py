from generators.base.sentences import first
from generators.base.text import ordinal
from generators.findings.frequency.chances import FrequencyChances
from generators.findings.frequency.measure import FrequencyIntervals, FrequencyMetrics
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements, StoredChance
from generators.findings.nulls import chance, pair
from generators.findings.sizes import FEWEST_TOKENS

TRACKS = 0.5
SMALLEST_RHO = 0.30  # channels below this don't track frequency
SHORTER = -0.3
CLEARLY = 0.02  # margin of a correlation beyond those made by drift
FEWEST_TO_PICK_FROM = 100  # channels; with fewer, one random pick in a hundred is the frequency channel
MOST_NAMED = 4  # tied channels named in a sentence
PROBE_READS = 0.5  # smallest probe result for frequency to count as spread

NO_FREQUENCIES = Untested("No token frequencies are known for this model; the token index is only a proxy.")
TOO_FEW = Untested(f"Frequencies are known for fewer than {FEWEST_TOKENS} tokens.")


def _judgeable(m: FrequencyMetrics) -> tuple[FrequencyChances, FrequencyIntervals] | Untested:
    if m["proxy"]:
        return NO_FREQUENCIES
    if m["chance"] is None or m["intervals"] is None:
        return TOO_FEW
    return m["chance"], m["intervals"]


# One channel


def _tracks(measured: Measurements[FrequencyMetrics]) -> Tested | Untested:
    m = measured.metrics
    known = _judgeable(m)
    if isinstance(known, Untested):
        return known
    nulls, intervals = known
    axes, value = nulls["frequency_channel"], abs(m["frequency_channel"]["rho"])
    return Tested(
        value,
        _of_the_channel(m, axes, nulls["drift"]),
        form="{:.2f}",
        chance=chance(axes),
        interval=pair(intervals["frequency_channel"]),
        holds_at=max(TRACKS, axes["limit"], nulls["drift"]["limit"] + CLEARLY),
        partly_at=max(SMALLEST_RHO, nulls["drift"]["limit"] + CLEARLY),
    )


def _beyond_drift(strength: float, drift: StoredChance) -> bool:
    return strength >= drift["limit"] + CLEARLY


def _of_the_channel(m: FrequencyMetrics, axes: StoredChance, drift: StoredChance) -> str:
    channel, rho = m["frequency_channel"]["channel"], m["frequency_channel"]["rho"]
    said = (
        f"Channel {channel} correlates with log-frequency at ρ = {rho:+.2f}, the most of {m['n_channels']} channels. "
        f"The best of as many random axes would reach {axes['median']:.2f} (99th percentile {axes['limit']:.2f})"
    )
    if abs(rho) <= axes["limit"]:
        return f"{said}. So {_spread(m)}."
    if not _beyond_drift(abs(rho), drift):
        return f"{said}; {_only_drift(drift['limit'])}."
    return f"{said}, drift along the ids {drift['limit']:.2f}."


def _spread(m: FrequencyMetrics) -> str:
    probe = m["probe"]
    if probe is None or probe["rho"] < PROBE_READS:
        reached = "" if probe is None else f", and a linear probe on all channels reaches only {probe['rho']:.2f}"
        return f"no channel exceeds random axes{reached}"
    return f"frequency is spread over the channels: a linear probe on all of them reads it at {probe['rho']:.2f}"


def _only_drift(limit: float) -> str:
    return f"drift along the token ids reaches {abs(limit):.2f}, so this may be drift"


# The channel that ln2 raises


def _is_ln2(measured: Measurements[FrequencyMetrics]) -> Tested | Untested:
    m = measured.metrics
    known = _judgeable(m)
    if isinstance(known, Untested):
        return known
    nulls, intervals = known
    channel, rho, place = m["ln2_channel"], m["ln2_channel_rho"], m["ln2_channel_rank"]
    if channel is None or rho is None or place is None:
        return Untested("The gains of ln2 are equal in all channels, or missing from this checkpoint.")
    if m["n_channels"] < FEWEST_TO_PICK_FROM:
        only = f"With only {m['n_channels']} channels"
        return Untested(f"{only}, a random channel would be the frequency channel too often.")
    if len(m["ln2_tied"]) > 1:
        tied = first(m["ln2_tied"], MOST_NAMED)
        return Untested(f"ln2 singles out no channel: {tied} each have the largest gain in equally many layers.")
    axes = nulls["frequency_channel"]
    stands_out = abs(rho) > axes["limit"] and _beyond_drift(abs(rho), nulls["drift"])
    said = (
        f"Channel {channel}, which ln2 amplifies most often, ranks {ordinal(place)} of {m['n_channels']} by "
        f"correlation with frequency (ρ = {rho:+.2f})"
    )
    if place != 1:
        why = f"{said}; rank 1 is needed, but channel {m['frequency_channel']['channel']} ranks first."
    elif abs(rho) < SMALLEST_RHO:
        why = f"{said}, but its |ρ| is below the {SMALLEST_RHO:g} needed."
    else:
        why = f"{said}, but random axes or drift along the ids reach as much."
    return Tested(
        place,
        {"holds": f"{said}: it is the frequency channel. A random channel ranks in the middle.", "fails": why},
        chance=chance(nulls["ln2_channel_rank"]),
        interval=pair(intervals["ln2_channel_rank"]),
        extra_condition_met=abs(rho) >= SMALLEST_RHO and stands_out,
    )


# The norm


def _shorter(measured: Measurements[FrequencyMetrics]) -> Tested | Untested:
    m = measured.metrics
    known = _judgeable(m)
    if isinstance(known, Untested):
        return known
    nulls, intervals = known
    rho, drift = m["norm_rho"], nulls["norm_rho"]
    if rho is None:
        return Untested("All norms or all frequencies are equal.")
    return Tested(
        rho,
        _of_the_norm(rho, drift["limit"]),
        form="{:.2f}",
        chance=chance(drift),
        interval=pair(intervals["norm_rho"]),
        holds_at=min(SHORTER, drift["limit"] - CLEARLY),
    )


def _of_the_norm(rho: float, limit: float) -> str:
    how = f"Norm and log-frequency correlate at ρ = {rho:+.2f}"
    if abs(rho) < -SHORTER:
        return f"{how}: frequent tokens have neither much smaller nor much larger norms."
    if abs(rho) < abs(limit) + CLEARLY:
        return f"{how}; {_only_drift(limit)}."
    beyond = f"drift along the token ids reaches {abs(limit):.2f}"
    if rho > 0:
        return f"{how}; {beyond}. Frequent tokens have larger norms, not smaller."
    return f"{how}; {beyond}. Frequent tokens have shorter embeddings."


RULES = (
    Rule(
        id="frequency-channel",
        short="frequency channel",
        statement="One channel tracks frequency.",
        value="largest |rank correlation| of a channel with log frequency",
        holds=TRACKS,
        partly=SMALLEST_RHO,
        unit="rank correlation",
        also=f"beyond the best of random axes, and beyond drift along the ids by at least {CLEARLY:g}",
        test=_tracks,
    ),
    Rule(
        id="frequency-is-ln2",
        short="frequency is ln2's",
        statement="The channel that ln2 amplifies most often correlates most with frequency.",
        value="rank by |ρ| of the channel with the largest ln2 gain in most layers",
        sense="at most",
        holds=1,
        unit="rank of the channel",
        also=f"and its |ρ| is at least {SMALLEST_RHO:g}, beyond the best of random axes and beyond drift",
        test=_is_ln2,
    ),
    Rule(
        id="frequent-shorter",
        short="frequent shorter",
        statement="Frequent tokens have shorter embeddings.",
        value="rank correlation of embedding length with log frequency",
        sense="at most",
        holds=SHORTER,
        unit="rank correlation",
        also=f"beyond drift along the ids by at least {CLEARLY:g}",
        test=_shorter,
    ),
)
