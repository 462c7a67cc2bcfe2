from collections.abc import Iterator

from generators.base.text import share, two
from generators.findings.anchor.measure import AnchorMetrics, AnchorStageRow
from generators.findings.facts import EntityNote, EntityNumbers, Fact, Facts, Story
from generators.findings.judging import Evidence, Untested, claim
from generators.findings.measured import Measurements

ELSEWHERE = 10.0  # multiple of the same channel at other positions
FEWEST_ERRORS = 3
FEWEST_HEADS, LEAST_SHARE = 3, 0.05  # heads that rest on the first token on text
FLOAT16 = 65504.0  # the largest number of float16
OTHERS = 99  # other channels, so that a random one is first 1 time in 100
TIMES = 2.0  # multiple of the most costly of these


def massive(rows: list[AnchorStageRow]) -> AnchorStageRow:
    """Return the depth at which a channel is largest at the first token, of those where it is that there alone."""
    return max(rows, key=lambda row: (row["over_elsewhere"] >= ELSEWHERE, row["over_median"]))


@claim("head-rests-on-first", holds=0.3, partly=0.15, form=share)
def rests_on_first(m: AnchorMetrics) -> Evidence:
    head, found = max(m["heads"], key=lambda row: row["on_first"]), m["first_token"]
    rows = [] if found is None else found["rows"]
    on_text = {row["with_bos"]: row["share"] for row in rows if row["tokens"] == "text"}
    return Evidence(
        head["on_first"],
        {"head": head, "bare": on_text.get(False), "begun": on_text.get(True)},
        baseline=m["uniform"],
        interval=(head["low"], head["high"]),
        extra_condition_met=head["on_first"] > m["other_positions"],
    )


@claim("massive-at-first", holds=100.0, form="{:.0f} times", elsewhere=ELSEWHERE, with_arrays=True)
def massive_at_first(measured: Measurements[AnchorMetrics]) -> Evidence | Untested:
    m = measured.metrics
    if measured.model.post_norm:
        return Untested("bounded")
    row = massive(m["stages"])
    return Evidence(
        row["over_median"],
        {"row": row},
        chance=m["massive_by_chance"],
        extra_condition_met=row["over_elsewhere"] >= ELSEWHERE,
    )


@claim("position-0-needed", holds=0.5, partly=0.25, form=share)
def position_0_needed(m: AnchorMetrics) -> Evidence | Untested:
    rows = m["rows"]
    if rows is None:
        return Untested("no-table")
    if rows["all_rows"]["mean"] <= FEWEST_ERRORS * rows["all_rows"]["standard_error"]:
        return Untested("no-cost")
    most, by_second = max(rows["others"]), rows["first_by_second"]["mean"] / rows["all_rows"]["mean"]
    by_mean = rows["share"] <= by_second
    return Evidence(
        min(rows["share"], by_second),
        {"most": most, "by_second": by_second},
        interval=(rows["share_low"], rows["share_high"]) if by_mean else None,
        extra_condition_met=rows["few_first"] > most,
    )


@claim("sink-by-position", holds=0.5, partly=0.25, form=share, fewest=FEWEST_HEADS, least=LEAST_SHARE)
def by_position(m: AnchorMetrics) -> Evidence | Untested:
    found = m["first_token"]
    if found is None:
        return Untested("encoder")
    bare = {row["tokens"]: row for row in found["rows"] if not row["with_bos"]}
    begun = next((row["share"] for row in found["rows"] if row["with_bos"]), None)
    if found["on_text"] < max(FEWEST_HEADS, LEAST_SHARE * len(m["heads"])):
        return Untested("few-sinks", {"count": found["on_text"], "heads": len(m["heads"]), "begun": begun})
    if bare["text"]["sequences"] < 2:
        return Untested("one-window")
    if m["rows"] is None:
        shares = {tokens: row["share"] for tokens, row in bare.items()}
        return Untested("equal-states", {"shares": shares})
    return Evidence(
        found["kept"],
        {
            "on_text": round(bare["text"]["share"] * len(m["heads"])),
            "on_repeated": round(bare["repeated"]["share"] * len(m["heads"])),
            "repeated": bare["repeated"]["share"],
            "elsewhere": found["elsewhere"],
        },
        baseline=0.0,
        interval=(found["low"], found["high"]),
        extra_condition_met=bare["repeated"]["share"] > found["elsewhere"],
    )


@claim("beyond-float16", holds=FLOAT16, partly=FLOAT16 / 2, form="{:,.0f}", with_arrays=True)
def beyond_float16(measured: Measurements[AnchorMetrics]) -> Evidence | Untested:
    m = measured.metrics
    if measured.model.post_norm:
        return Untested("bounded")
    row = max(m["largest"], key=lambda row: row["size"])
    first = next((row["layer"] for row in m["largest"] if row["size"] >= FLOAT16), None)
    return Evidence(row["size"], {"row": row, "first": first, "windows": m["ran"]["windows"]})


@claim("loss-hangs-on-one", holds=0.1, partly=0.02, form="{:.2f} nats", times=TIMES, with_arrays=True)
def hangs_on_one(measured: Measurements[AnchorMetrics]) -> Evidence | Untested:
    found = measured.metrics["one_number"]
    if measured.model.post_norm:
        return Untested("bounded")
    if found is None:
        return Untested("no-loss")
    if len(found["others"]) < OTHERS:
        return Untested("few-channels", {"count": len(found["others"])})
    most, zeroed = max(found["others"]), found["zeroed"]
    return Evidence(
        zeroed["mean"],
        {"found": found, "most": most},
        interval=(zeroed["low"], zeroed["high"]),
        extra_condition_met=found["few_zeroed"] >= TIMES * most,
    )


def heads(found: Measurements[AnchorMetrics], count: int | None) -> Iterator[Fact]:
    on_first = [row["on_first"] for row in found.metrics["heads"]]
    if len(on_first) == count:
        yield EntityNumbers("attention to the first token, late queries", on_first, "anchor-heads", "largest")


def channels(found: Measurements[AnchorMetrics], count: int | None) -> Iterator[Fact]:
    row = massive(found.metrics["stages"])
    yield EntityNote(
        row["channel"],
        f"At the first token it is {two(row['over_median'])} times the median activation (layer {row['layer']}).",
        role="first token",
        claim="massive-at-first",
    )


FACTS: Facts[AnchorMetrics] = Facts(
    entities={"head": heads, "channel": channels}, stories=(Story("loss-hangs-on-one", "anchor-largest", 30),)
)
