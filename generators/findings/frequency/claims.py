from collections.abc import Iterator

import numpy as np

from generators.base.text import two
from generators.findings import facts
from generators.findings.frequency.chances import FrequencyChances
from generators.findings.frequency.measure import FrequencyMetrics
from generators.findings.judging import Evidence, Untested, claim, judge
from generators.findings.measured import Measurements
from generators.findings.sizes import FEWEST_TOKENS

TRACKS = 0.5
SMALLEST_RHO = 0.30  # channels below this don't track frequency
SHORTER = -0.3
CLEARLY = 0.02  # margin of a correlation beyond those made by drift
FEWEST_TO_PICK_FROM = 100  # channels; with fewer, one random pick in a hundred is the frequency channel
PROBE_READS = 0.5  # smallest probe result for frequency to count as spread

NO_FREQUENCIES = Untested("proxy")
TOO_FEW = Untested("few-tokens", {"fewest": FEWEST_TOKENS})


@claim("frequency-channel", holds=TRACKS, partly=SMALLEST_RHO, form="{:.2f}", clearly=CLEARLY, read=PROBE_READS)
def tracks(m: FrequencyMetrics) -> Evidence | Untested:
    if m["proxy"] or m["chance"] is None or m["intervals"] is None:
        return NO_FREQUENCIES if m["proxy"] else TOO_FEW
    axes, drift = m["chance"]["frequency_channel"], m["chance"]["drift"]["limit"]
    return Evidence(
        abs(m["frequency_channel"]["rho"]),
        {"drift": drift},
        chance=axes,
        interval=m["intervals"]["frequency_channel"],
        holds_at=max(TRACKS, axes["limit"], drift + CLEARLY),
        partly_at=max(SMALLEST_RHO, drift + CLEARLY),
    )


@claim("frequency-is-ln2", sense="at most", holds=1, least=SMALLEST_RHO)
def is_ln2(m: FrequencyMetrics) -> Evidence | Untested:
    if m["proxy"] or m["chance"] is None or m["intervals"] is None:
        return NO_FREQUENCIES if m["proxy"] else TOO_FEW
    if m["ln2_channel"] is None or m["ln2_channel_rho"] is None or m["ln2_channel_rank"] is None:
        return Untested("no-ln2")
    if m["n_channels"] < FEWEST_TO_PICK_FROM:
        return Untested("few-channels")
    if len(m["ln2_tied"]) > 1:
        return Untested("tied")
    rho, nulls = abs(m["ln2_channel_rho"]), m["chance"]
    if not _beyond_chance(nulls, abs(m["frequency_channel"]["rho"])):
        return Untested("no-frequency-channel")
    return Evidence(
        m["ln2_channel_rank"],
        chance=nulls["ln2_channel_rank"],
        interval=m["intervals"]["ln2_channel_rank"],
        extra_condition_met=_beyond_chance(nulls, rho),
    )


def _beyond_chance(nulls: FrequencyChances, rho: float) -> bool:
    return rho >= max(SMALLEST_RHO, nulls["drift"]["limit"] + CLEARLY) and rho > nulls["frequency_channel"]["limit"]


@claim("frequent-shorter", sense="at most", holds=SHORTER, form="{:.2f}", clearly=CLEARLY, shorter=SHORTER)
def shorter(m: FrequencyMetrics) -> Evidence | Untested:
    if m["proxy"] or m["chance"] is None or m["intervals"] is None:
        return NO_FREQUENCIES if m["proxy"] else TOO_FEW
    if m["norm_rho"] is None:
        return Untested("equal")
    drift = m["chance"]["norm_rho"]
    clear = drift["limit"] - CLEARLY
    return Evidence(
        m["norm_rho"],
        chance=drift,
        interval=m["intervals"]["norm_rho"],
        holds_at=min(SHORTER, clear),
        extra_condition_met=m["norm_rho"] <= clear,
    )


def called(found: Measurements[FrequencyMetrics]) -> str:
    holds = judge("frequency", tracks, found).verdict == "holds"
    return "the frequency channel" if holds else "the channel most correlated with frequency"


def channels(found: Measurements[FrequencyMetrics], count: int | None) -> Iterator[facts.Fact]:
    m = found.metrics
    rho = m["channel_rho"]
    for name, what, values in (
        ("rho_frequency", "log frequency", rho["frequency"]),
        ("rho_norm", "norm", rho["norm"]),
        ("rho_index", "id", rho["index"]),
    ):
        says = f"rank correlation with the tokens' {what}"
        if not (m["proxy"] and name == "rho_frequency"):
            yield facts.EntityNumbers(says, values, order="strongest", name=name)
    if m["proxy"]:
        return
    closest = f"This is {called(found)}"
    ordinary = "This is an ordinary channel, with the median correlation with frequency"
    one, other = m["frequency_channel"], m["contrast_channel"]
    for channel, says, role in ((one, closest, "frequency"), (other, ordinary, "")):
        said = f"{says} (rank correlation {two(channel['rho'])})."
        yield facts.EntityNote(channel["channel"], said, named=bool(role), role=role, claim=tracks.id if role else "")


def tokens(found: Measurements[FrequencyMetrics], count: int | None) -> Iterator[facts.Fact]:
    m, arrays = found.metrics, found.arrays
    ids, logs = arrays.get("token_id"), arrays.get("token_log_frequency")
    yield facts.EntityCount(m["n_tokens"])
    yield facts.EntityNames(facts.by_id(ids, arrays.get("token_name")) or {})
    yield facts.EntityNumbers(facts.TOKEN_NORM, facts.by_id(ids, arrays.get("token_norm")), order="largest")
    if ids is None or logs is None or m["proxy"]:
        return
    known = np.isfinite(logs)
    says, values = "log frequency as an English word", logs[known]
    if m["source"] == "counts":
        says = "how often it occurs in the training text"
        values = np.rint(np.expm1(values.astype(np.float64))).astype(np.int64)
    yield facts.EntityNumbers(says, facts.by_id(ids[known], values), "frequency-channel", "largest")
    says = f"value in channel {m['frequency_channel']['channel']}, {called(found)}"
    yield facts.EntityNumbers(says, facts.by_id(ids, arrays.get("token_channel")), "frequency-channel", "strongest")


FACTS = facts.Facts(entities={"channel": channels, "token": tokens})
