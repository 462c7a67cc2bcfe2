from collections.abc import Iterator

import numpy as np

from generators.base.text import two
from generators.findings.facts import (
    TOKEN_NORM,
    EntityCount,
    EntityNames,
    EntityNote,
    EntityNumbers,
    Fact,
    Facts,
    by_id,
)
from generators.findings.frequency.claims import tracks
from generators.findings.frequency.measure import FrequencyMetrics
from generators.findings.judging import judge
from generators.findings.measured import Measurements


def called(found: Measurements[FrequencyMetrics]) -> str:
    holds = judge("frequency", tracks, found).verdict == "holds"
    return "the frequency channel" if holds else "the channel most correlated with frequency"


def channels(found: Measurements[FrequencyMetrics], count: int | None) -> Iterator[Fact]:
    m = found.metrics
    rho = m["channel_rho"]
    for name, what, values, figure in (
        ("rho_frequency", "log frequency", rho["frequency"], "frequency-by-channel"),
        ("rho_norm", "norm", rho["norm"], None),
        ("rho_index", "id", rho["index"], None),
    ):
        yield EntityNumbers(f"rank correlation with the tokens' {what}", values, figure, "strongest", name=name)
    closest = f"{called(found).capitalize()}: of all channels, it correlates most strongly with token frequency"
    ordinary = "An ordinary channel, with the median correlation with frequency"
    one, other = m["frequency_channel"], m["contrast_channel"]
    for channel, says, role in ((one, closest, "frequency"), (other, ordinary, "")):
        said = f"{says} (rank correlation {two(channel['rho'])})."
        yield EntityNote(channel["channel"], said, named=bool(role), role=role, claim=tracks.id if role else "")


def tokens(found: Measurements[FrequencyMetrics], count: int | None) -> Iterator[Fact]:
    m, arrays = found.metrics, found.arrays
    ids, logs = arrays.get("token_id"), arrays.get("token_log_frequency")
    yield EntityCount(m["n_tokens"])
    yield EntityNames(by_id(ids, arrays.get("token_name")) or {})
    yield EntityNumbers(TOKEN_NORM, by_id(ids, arrays.get("token_norm")), order="largest")
    if ids is None or logs is None or m["proxy"]:
        return
    known = np.isfinite(logs)
    says, values = "log frequency as an English word", logs[known]
    if m["source"] == "counts":
        says = "how often it occurs in the training text"
        values = np.rint(np.expm1(values.astype(np.float64))).astype(np.int64)
    yield EntityNumbers(says, by_id(ids[known], values), "norm-frequency", "largest")
    says = f"value in channel {m['frequency_channel']['channel']}, {called(found)}"
    yield EntityNumbers(says, by_id(ids, arrays.get("token_channel")), "frequency-channel", "strongest")


FACTS = Facts(entities={"channel": channels, "token": tokens})
