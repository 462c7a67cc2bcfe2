"""What is claimed of attention: rules, numbers and sentences."""

from generators.findings.attention.heads import SMALLEST_WEIGHT, Head
from generators.findings.attention.measure import CORNER, Metrics
from generators.findings.contract import Measurements, Rule, Tested, Untested

# How many times chance Q and K must overlap with P, and what part of chance the MLP may have of it (and in words).
READS_AT_LEAST = 5
IGNORES_AT_MOST, IGNORES_IN_WORDS = 0.5, "half"


def _reads_positions(measured: Measurements[Metrics]) -> Tested | Untested:
    chance, corners = measured.metrics["chance_top5"], measured.metrics["top5"]["P"]
    q, k = corners["Q"], corners["K"]
    answer = (
        f"In the raw weights, the five leading directions of layer-0 Q and K overlap with those of P by "
        f"{q['raw']:.2f} and {k['raw']:.2f}, {q['raw'] / chance:.3g} and {k['raw'] / chance:.3g} times chance"
    )
    if q["folded"] is not None and k["folded"] is not None:
        answer += (
            f"; once the gain of the norm before them is folded in, {q['folded'] / chance:.2g} and "
            f"{k['folded'] / chance:.2g} times chance"
        )
    return Tested(
        min(q["raw"], k["raw"]),
        f"{answer}.",
        baseline=chance,
        holds_at=READS_AT_LEAST * chance,
    )


def _mlp_ignores(measured: Measurements[Metrics]) -> Tested | Untested:
    metrics = measured.metrics
    shares = [share for share in metrics["shares"]["P"].get("MLP in", []) if share["layer"] == 0]
    if not shares:
        return Untested("The MLP matrix of layer 0 isn't in this checkpoint.")
    value, chance = shares[0]["raw"], metrics["chance_share"]
    if value is None:
        return Untested("The MLP matrix of layer 0 is all zeros.")
    return Tested(
        value,
        f"{value:.4f} of the energy of the layer-0 MLP input lies in P's top {metrics['k']} directions; "
        f"chance gives {chance:.4f}.",
        baseline=chance,
        holds_at=IGNORES_AT_MOST * chance,
    )


def _previous_token(measured: Measurements[Metrics]) -> Tested | Untested:
    kernels = measured.metrics["positional_kernels"]
    heads, uniform = kernels["heads"], kernels["uniform_at_1"]
    found = [head for head in heads if head["previous_token_head"]]
    best = max(heads, key=lambda head: (head["previous_token_head"], head["weight_at_1"]))
    weight, name = best["weight_at_1"], f"L{best['layer']}H{best['head']}"
    return Tested(
        weight,
        {
            "holds": f"{len(found)} of {len(heads)} heads would attend to the previous token by position "
            f"alone, {name} most, with weight {weight:.3f}.{_beyond_layer_0(found)}",
            "fails": f"No head attends mainly to the previous token by position alone; the largest weight there is "
            f"{weight:.2f} ({name}), where uniform attention gives {uniform:.4f}.",
        },
        baseline=uniform,
        also=best["previous_token_head"],
    )


def _beyond_layer_0(heads: list[Head]) -> str:
    deeper = sum(head["layer"] > 0 for head in heads)
    if not deeper:
        return ""
    are = "them is" if deeper == 1 else "them are"
    return f" {deeper} of {are} beyond layer 0, where the input is no longer P: a caricature."


RULES = (
    Rule(
        id="qk-read-positions",
        short="Q, K read P",
        statement="Layer-0 queries and keys read P's top directions.",
        value="smaller of Q and K's top5, in the raw weights",
        sense="at least",
        unit="summed squared overlap",
        holds_as=f"{READS_AT_LEAST} times its chance value {CORNER**2}/d",
        test=_reads_positions,
    ),
    Rule(
        id="mlp-ignores-positions",
        short="MLP ignores P",
        statement="The MLP ignores positions.",
        value="layer-0 MLP-in share in the top k directions of P",
        sense="at most",
        unit="share of energy",
        holds_as=f"{IGNORES_IN_WORDS} its chance value k/d",
        test=_mlp_ignores,
    ),
    Rule(
        id="previous-token-head",
        short="previous-token head",
        statement="Some head finds the previous token by position alone.",
        value="best weight at offset 1 among heads whose kernel peaks there",
        sense="at least",
        holds=SMALLEST_WEIGHT,
        unit="attention weight",
        test=_previous_token,
    ),
)
