"""What is claimed of attention: rules, numbers and sentences."""

from generators.findings.attention.heads import SMALLEST_WEIGHT, Head, best_of
from generators.findings.attention.measure import CORNER, AttentionMetrics, Matrix, Source
from generators.findings.attention.with_tokens import TokenHead, TokenKernels
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Measurements
from generators.findings.nulls import chance, pair

# How many times chance Q and K must overlap with P; the shares of weights, in times what chance gives them.
READS_AT_LEAST = 5
SHARE_AT_LEAST, SHARE_IN_WORDS = 2, "twice"
IGNORES_AT_MOST, IGNORES_IN_WORDS = 0.5, "half"
NO_TOKENS = "The token embedding isn't in this checkpoint."


def _reads_positions(measured: Measurements[AttentionMetrics]) -> Tested | Untested:
    by_chance, corners = measured.metrics["chance_top5"], measured.metrics["top5"]["P"]
    q, k = corners["Q"], corners["K"]
    answer = (
        f"In the raw weights, the five leading directions of layer-0 Q and K overlap with those of P by "
        f"{q['raw']:.2f} and {k['raw']:.2f}, {q['raw'] / by_chance:.3g} and {k['raw'] / by_chance:.3g} times chance"
    )
    folded = [one for one in (q["folded"], k["folded"]) if one is not None]
    if len(folded) == 2:
        answer += (
            f"; once the gain of the norm before them is folded in, which is what the model computes with, "
            f"{folded[0] / by_chance:.2g} and {folded[1] / by_chance:.2g} times chance"
        )
    return Tested(
        min(q["raw"], k["raw"]),
        f"{answer}.",
        chance=chance(measured.metrics["chance"]["top5"]),
        holds_at=READS_AT_LEAST * by_chance,
        partly_at=READS_AT_LEAST * by_chance,
        also=min(folded, default=READS_AT_LEAST * by_chance) >= READS_AT_LEAST * by_chance,
        also_partly=True,
    )


def _share(measured: Measurements[AttentionMetrics], source: Source, matrix: Matrix) -> float | None:
    """Return the share of a layer-0 matrix, None where it isn't there or is all zeros."""
    shares = (measured.metrics["shares"][source] or {}).get(matrix, [])
    return next((share["raw"] for share in shares if share["layer"] == 0), None)


def _reads_tokens(measured: Measurements[AttentionMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    if metrics["shares"]["E"] is None:
        return Untested(NO_TOKENS)
    names: tuple[Matrix, ...] = ("Q", "K", "V")
    found = [share for name in names if (share := _share(measured, "E", name)) is not None]
    if len(found) < len(names):
        return Untested("A matrix of layer 0 is all zeros.")
    times = [share / metrics["chance_share"] for share in found]
    return Tested(
        min(found),
        f"Of the energy of layer-0 Q, K and V, {found[0]:.1%}, {found[1]:.1%} and {found[2]:.1%} lie in E's top "
        f"{metrics['k']} directions: {times[0]:.2g}, {times[1]:.2g} and {times[2]:.2g} times chance.",
        chance=chance(metrics["chance"]["reads_tokens"]),
        holds_at=SHARE_AT_LEAST * metrics["chance_share"],
    )


def _writes_positions(measured: Measurements[AttentionMetrics]) -> Tested | Untested:
    share = _share(measured, "P", "O")
    if share is None:
        return Untested("The output matrix of layer-0 attention is all zeros.")
    return _one_share(measured, share, "What layer-0 attention writes has", "P's", "writes_positions", SHARE_AT_LEAST)


def _mlp_reads_tokens(measured: Measurements[AttentionMetrics]) -> Tested | Untested:
    if measured.metrics["shares"]["E"] is None:
        return Untested(NO_TOKENS)
    share = _share(measured, "E", "MLP in")
    if share is None:
        return Untested("The MLP matrix of layer 0 isn't in this checkpoint.")
    return _one_share(measured, share, "The layer-0 MLP input has", "E's", "mlp_reads_tokens", SHARE_AT_LEAST)


def _mlp_ignores(measured: Measurements[AttentionMetrics]) -> Tested | Untested:
    share = _share(measured, "P", "MLP in")
    if share is None:
        return Untested("The MLP matrix of layer 0 isn't in this checkpoint.")
    return _one_share(measured, share, "The layer-0 MLP input has", "P's", "mlp_reads_positions", IGNORES_AT_MOST)


def _one_share(
    measured: Measurements[AttentionMetrics], share: float, who: str, whose: str, null: str, times: float
) -> Tested:
    metrics = measured.metrics
    nulls = {name: stored for name, stored in metrics["chance"].items() if isinstance(stored, dict)}
    return Tested(
        share,
        f"{who} {share:.2%} of its energy in {whose} top {metrics['k']} directions, "
        f"{share / metrics['chance_share']:.2g} times chance.",
        chance=chance(nulls.get(null)),  # type: ignore[arg-type]  # all of them are nulls
        holds_at=times * metrics["chance_share"],
    )


def _previous_token(measured: Measurements[AttentionMetrics]) -> Tested | Untested:
    metrics = measured.metrics
    if metrics["token_kernels"] is None:
        return _by_position_alone(measured)
    kernels = metrics["token_kernels"]
    best = kernels["heads"][best_of(kernels["heads"])]
    return Tested(
        best["weight_at_1"],
        _with_tokens(kernels, best, metrics["positional_kernels"]["heads"]),
        chance=chance(metrics["chance"]["previous_token"]),
        interval=pair(kernels["interval_of_best"]),
        also=best["previous_token_head"],
    )


def _with_tokens(kernels: TokenKernels, best: TokenHead, alone: list[Head]) -> str:
    """Return which heads would look at the previous token with tokens on the positions, and which without."""
    found = [head for head in kernels["heads"] if head["previous_token_head"]]
    lone = sum(head["previous_token_head"] for head in alone)
    name, weight = f"L{best['layer']}H{best['head']}", best["weight_at_1"]
    heads = {0: "no head attends", 1: f"{name} alone attends"}.get(len(found), f"{len(found)} heads attend")
    most = {0: f"; {name} comes closest", 1: ""}.get(len(found), f", {name} most")
    return (
        f"With tokens on the positions {heads} mainly to the previous token{most}, with weight {weight:.2f}; "
        f"positions alone would make it {lone} of {len(alone)}.{_beyond_layer_0(found)}"
    )


def _by_position_alone(measured: Measurements[AttentionMetrics]) -> Tested:
    kernels = measured.metrics["positional_kernels"]
    heads, uniform = kernels["heads"], kernels["uniform_at_1"]
    found = [head for head in heads if head["previous_token_head"]]
    best = heads[best_of(heads)]
    weight, name = best["weight_at_1"], f"L{best['layer']}H{best['head']}"
    return Tested(
        weight,
        {
            "holds": f"{len(found)} of {len(heads)} heads would attend to the previous token by position "
            f"alone, {name} most, with weight {weight:.3f}.{_beyond_layer_0(found)}",
            "fails": f"No head attends mainly to the previous token by position alone; the largest weight there is "
            f"{weight:.2f} ({name}), where uniform attention gives {uniform:.4f}.",
        },
        chance=chance(measured.metrics["chance"]["previous_token"]),
        interval=pair(kernels["interval_of_best"]),
        also=best["previous_token_head"],
    )


def _beyond_layer_0(heads: list[Head] | list[TokenHead]) -> str:
    deeper = sum(head["layer"] > 0 for head in heads)
    if not deeper:
        return ""
    are = "It is" if len(heads) == 1 else f"{deeper} of them {'is' if deeper == 1 else 'are'}"
    return f" {are} beyond layer 0, where the input is another: a caricature."


RULES = (
    Rule(
        id="qk-read-positions",
        short="Q, K read P",
        statement="Layer-0 queries and keys read P's top directions.",
        value="smaller of Q and K's top5, in the raw weights",
        unit="summed squared overlap",
        holds_as=f"{READS_AT_LEAST} times its chance value {CORNER**2}/d",
        also="with the gain of the norm before them folded in too (partly: in the raw weights alone)",
        test=_reads_positions,
    ),
    Rule(
        id="qkv-read-tokens",
        short="Q, K, V read E",
        statement="Layer-0 queries, keys and values read the tokens' top directions.",
        value="smallest of the shares of Q, K and V in the top k directions of E",
        unit="share of energy",
        holds_as=f"{SHARE_IN_WORDS} its chance value k/d",
        test=_reads_tokens,
    ),
    Rule(
        id="writes-positions",
        short="O writes P",
        statement="Attention writes into the positions' directions.",
        value="layer-0 O share in the top k directions of P",
        unit="share of energy",
        holds_as=f"{SHARE_IN_WORDS} its chance value k/d",
        test=_writes_positions,
    ),
    Rule(
        id="mlp-reads-tokens",
        short="MLP reads E",
        statement="The MLP reads the tokens' top directions.",
        value="layer-0 MLP-in share in the top k directions of E",
        unit="share of energy",
        holds_as=f"{SHARE_IN_WORDS} its chance value k/d",
        test=_mlp_reads_tokens,
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
        value="best mean weight at offset 1 of any head, with tokens drawn on the positions where E is there",
        holds=SMALLEST_WEIGHT,
        unit="attention weight",
        test=_previous_token,
    ),
)
