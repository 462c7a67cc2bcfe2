"""The one table of claims: each statement, the number it is judged by, and where `holds` and `partly` begin."""

from dataclasses import dataclass
from typing import Literal

from generators.findings.finding import Claim, Verdict


@dataclass(frozen=True)
class Rule:
    """How one claim is judged: `value` must be at least (or at most) a threshold, and `also` must be true."""

    id: str
    finding: str
    short: str
    statement: str
    value: str
    sense: Literal["at least", "at most"]
    holds: float | None  # None: relative to chance, `holds_as` says how
    partly: float | None = None
    unit: str = ""
    also: str = ""
    holds_as: str = ""

    def reached(self, value: float, threshold: float | None) -> bool:
        """Return whether `value` is on the right side of `threshold`."""
        if threshold is None:
            return False
        return value >= threshold if self.sense == "at least" else value <= threshold


RULES = (
    Rule(
        "three-components",
        "helix",
        "3-D curve",
        "Three components hold the positions.",
        "share of variance in three components, without position 0 (explained_variance_3d.no_first)",
        "at least",
        0.90,
        0.70,
        "share of variance",
    ),
    Rule(
        "circle",
        "helix",
        "circle",
        "Positions wind on a circle.",
        "turns of the circle (circle.turns)",
        "at least",
        None,
        unit="turns",
        holds_as="1.5 times the turns of a mere drift (half the rank of the later component), and never below 1",
    ),
    Rule(
        "fraying",
        "helix",
        "frayed start",
        "The start frays.",
        "gain of three components without the first 100 rows over without the last (fraying)",
        "at least",
        0.02,
        unit="share of variance",
    ),
    Rule(
        "first-position",
        "helix",
        "first position",
        "The first position stands apart.",
        "distance of row 0 to row 1, in median neighbour distances",
        "at least",
        5.0,
        unit="median distances",
    ),
    Rule(
        "constant-norms",
        "helix",
        "even norms",
        "Norms are constant after the start.",
        "std/mean of the later norms (norm_cv)",
        "at most",
        0.05,
        0.10,
        "std/mean",
        also="and at most half of what shuffling each component over positions gives (norm_cv_permuted)",
    ),
    Rule(
        "look-back",
        "helix",
        "look-back",
        "Looking back is a rotation.",
        "R² of the best rotation 10 tokens back (look_back)",
        "at least",
        0.95,
        0.80,
        "R²",
        also="with a gain over standing still of at least 0.5 (partly: 0.25), and the circle claim must hold: "
        "any smooth curve, even a straight line, passes the first two",
    ),
    Rule(
        "low-rank",
        "helix",
        "low rank",
        "P is low rank.",
        "share of energy in the top 30 directions (energy_top30)",
        "at least",
        0.99,
        0.95,
        "share of energy",
        also="and at least 1.5 times its value for Gaussian rows",
    ),
    Rule(
        "few-channels",
        "channels",
        "few channels",
        "Positions live in few channels.",
        "channels_for_90 / d",
        "at most",
        0.10,
        0.25,
        "share of channels",
    ),
    Rule(
        "tokens-avoid",
        "channels",
        "tokens avoid",
        "Tokens avoid those channels.",
        "low_variance_overlap",
        "at least",
        None,
        unit="channels",
        holds_as="half of the k position channels",
        also="and at least twice its chance value k²/d",
    ),
    Rule(
        "ln1-dials-down",
        "gains",
        "ln1 dials down",
        "The first norm dials positions down.",
        "Pearson of log10 position std with log10 |gain|, layer-0 ln1",
        "at most",
        -0.50,
        -0.25,
        "correlation",
    ),
    Rule(
        "ln2-one-channel",
        "gains",
        "ln2 channel",
        "ln2 singles out one channel.",
        "consistent_channel.ln2.layers_topped",
        "at least",
        None,
        unit="layers",
        holds_as="max(3, L/2) layers (partly: max(2, L/4))",
        also="with a median ratio to the runner-up of at least 1.1",
    ),
    Rule(
        "qk-read-positions",
        "attention",
        "Q, K read P",
        "Layer-0 queries and keys read P's top directions.",
        "smaller of Q and K's top5, in the raw weights",
        "at least",
        None,
        unit="summed squared overlap",
        holds_as="5 times its chance value 25/d",
    ),
    Rule(
        "mlp-ignores-positions",
        "attention",
        "MLP ignores P",
        "The MLP ignores positions.",
        "layer-0 MLP-in share in the top k directions of P",
        "at most",
        None,
        unit="share of energy",
        holds_as="half its chance value k/d",
    ),
    Rule(
        "previous-token-head",
        "attention",
        "previous-token head",
        "Some head finds the previous token by position alone.",
        "best weight at offset 1 among heads whose kernel peaks there",
        "at least",
        0.5,
        unit="attention weight",
    ),
    Rule(
        "keep-apart",
        "subspaces",
        "keep apart",
        "Tokens and positions keep apart.",
        "rivalry",
        "at most",
        0.5,
        0.8,
        "of what unrelated spreads share",
    ),
    Rule(
        "p-in-tail",
        "subspaces",
        "P in E's tail",
        "P sits in E's tail.",
        "position_energy_in_tail",
        "at least",
        0.5,
        0.2,
        "share of energy",
    ),
    Rule(
        "frequency-channel",
        "frequency",
        "frequency channel",
        "One channel tracks frequency.",
        "|frequency_channel.rho|",
        "at least",
        0.5,
        0.3,
        "rank correlation",
        also="and at least twice what the best channel reaches when frequencies are shuffled",
    ),
    Rule(
        "frequency-is-ln2",
        "frequency",
        "frequency is ln2's",
        "The frequency channel is the one ln2 singles out.",
        "rank by |rho| of the channel with the largest ln2 gain in most layers",
        "at most",
        1,
        unit="rank of the channel",
        also="and its |rho| is at least 0.3",
    ),
    Rule(
        "frequent-shorter",
        "frequency",
        "frequent shorter",
        "Frequent tokens are shorter.",
        "norm_rho",
        "at most",
        -0.3,
        unit="rank correlation",
    ),
    Rule(
        "first-is-mean",
        "token_svd",
        "first is mean",
        "The first direction is the mean.",
        "|cosine_first_mean|",
        "at least",
        0.95,
        unit="cosine",
    ),
    Rule(
        "space-plane",
        "token_svd",
        "leading space",
        "The next two separate leading space.",
        "auc.plane",
        "at least",
        0.9,
        unit="AUC",
    ),
    Rule(
        "clump",
        "outliers",
        "clump",
        "Unused tokens huddle.",
        "clump.size",
        "at least",
        10,
        unit="tokens",
    ),
)

_BY_ID = {rule.id: rule for rule in RULES}


def rule(claim_id: str) -> Rule:
    """Return the rule of a claim."""
    return _BY_ID[claim_id]


def judge(
    claim_id: str,
    value: float | None,
    answers: dict[Verdict, str],
    *,
    baseline: float | None = None,
    holds_at: float | None = None,
    partly_at: float | None = None,
    also: bool = True,
    also_partly: bool | None = None,
) -> Claim:
    """Judge a claim by its rule.

    Args:
        claim_id: which rule.
        value: the effect size; None is judged as `fails` (there is no such thing in these weights).
        answers: the sentence for each verdict that can come out; `fails` also serves those not given.
        baseline: the value that chance gives.
        holds_at: the threshold where the rule's is relative to chance.
        partly_at: likewise for `partly`.
        also: whether the rule's further condition is met.
        also_partly: the same for `partly`, where that asks for less.
    """
    chosen = rule(claim_id)
    holds = chosen.holds if holds_at is None else holds_at
    partly = chosen.partly if partly_at is None else partly_at
    verdict: Verdict = "fails"
    if value is not None and chosen.reached(value, holds) and also:
        verdict = "holds"
    elif value is not None and chosen.reached(value, partly) and (also if also_partly is None else also_partly):
        verdict = "partly"
    answer = answers.get(verdict) or answers["fails"]
    return Claim(chosen.id, chosen.finding, chosen.statement, verdict, value, holds, baseline, chosen.unit, answer)


def untested(claim_id: str, reason: str) -> Claim:
    """Return a claim that these weights can't test, with why."""
    chosen = rule(claim_id)
    return Claim(
        chosen.id, chosen.finding, chosen.statement, "untested", None, chosen.holds, None, chosen.unit, reason
    )
