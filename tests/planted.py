"""`make planted`: where each claim about weights switches when what it speaks of is planted ever more weakly.

Writes `results/planted.json`, with date and commit, which the site's About page shows. What isn't planted is
Gaussian, of a small GPT-2's sizes. `tests/test_planted.py` looks at both ends of every scale.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.findings.inputs import Inputs
from generators.tokens.frequency import TokenFrequency
from tests import nulls, synthetic
from tests.nulls import E, P

N, D, V = 256, 128, 1200
SIZES = synthetic.architecture(n_ctx=N, d_model=D, n_layer=6, n_head=4, vocab_size=V)
RESULTS = nulls.RESULTS.with_name("planted.json")
SEEDS = range(3)
ORDER = ("fails", "untested", "partly", "holds")  # of several draws, the worst is told
Array = np.ndarray
Weights = dict[str, Array]
LN1, LN2 = "ln1", "ln2"


@dataclass
class Scene:
    """Gaussian weights and token facts, in which something is planted."""

    weights: Weights
    z: Array  # log-frequency of every token, mean 0 and std 1
    marks_space: Array
    rng: np.random.Generator
    seed: int


def scene(seed: int) -> Scene:
    rng = np.random.default_rng([seed, 77])
    weights = synthetic.gaussian_weights(SIZES, 500 + seed, vocab_size=V)
    z = rng.standard_normal(V)
    return Scene(weights, (z - z.mean()) / z.std(), rng.random(V) < 0.5, rng, seed)


def inputs(planted: Scene) -> Inputs:
    vocabulary, _ = nulls.token_facts(np.random.default_rng(planted.seed))
    words = {name: getattr(vocabulary, name) for name in vocabulary.__dataclass_fields__}
    vocabulary = type(vocabulary)(**{**words, "marks_space": planted.marks_space})
    known = (TokenFrequency("counts", "made-up counts", 5 + planted.z, 1.0, False),)
    weights = {role: values.astype(np.float32) for role, values in planted.weights.items()}
    return Inputs(weights, SIZES, vocabulary, known)


# What is planted. `s` is the strength; whatever is planted at 0, or at the end of a scale, is nothing.


def noise(at: Scene, *shape: int) -> Array:
    return at.rng.standard_normal(shape)


def mixed(strength: float, structure: Array, other: Array) -> Array:
    """Return rows of unit variance of which a share `strength` is structure."""
    return np.sqrt(strength) * structure / structure.std() + np.sqrt(1 - strength) * other / other.std()


def share_of_helix(at: Scene, s: float) -> None:
    """s of the variance is a helix of four turns in three directions, the rest is spread over all."""
    at.weights[P] = mixed(s, synthetic.embed(synthetic.helix(N, 4), D, seed=at.seed), noise(at, N, D))


def turns(at: Scene, s: float) -> None:
    at.weights[P] = synthetic.embed(synthetic.helix(N, s), D, noise=0.01, seed=at.seed)


def frayed(at: Scene, s: float) -> None:
    curve = synthetic.embed(synthetic.helix(N, 4), D, noise=0.01, seed=at.seed)
    at.weights[P] = synthetic.with_frayed_start(curve, s, seed=at.seed)


def apart(at: Scene, s: float) -> None:
    curve = synthetic.embed(synthetic.helix(N, 4), D, noise=0.01, seed=at.seed)
    steps = np.linalg.norm(np.diff(curve, axis=0), axis=1)
    at.weights[P] = synthetic.with_first_apart(curve, s * float(np.median(steps)))


def rings(at: Scene, s: float) -> None:
    t = 2 * np.pi * np.arange(N) / N
    ring = np.column_stack([np.cos(5 * t), np.sin(5 * t), 0.9 * np.cos(11 * t), 0.9 * np.sin(11 * t)])
    at.weights[P] = synthetic.embed(ring * (1 + s * np.sqrt(2) * np.sin(29 * t))[:, None], D, seed=at.seed)


def spectrum(at: Scene, s: float) -> None:
    variances = np.concatenate([np.full(30, s / 30), np.full(D - 30, (1 - s) / (D - 30))])
    at.weights[P] = synthetic.with_spectrum(N, D, variances, at.seed)


def loud_channels(at: Scene, s: float) -> None:
    loud = np.zeros(D)
    loud[: round(s * D)] = 1
    at.weights[P] = noise(at, N, D) * (0.01 + loud)


def quiet_tokens(at: Scene, s: float) -> None:
    """Positions have eight loud channels, in which tokens vary s times as much as in the others."""
    loud = np.arange(D) < 8
    at.weights[P] = noise(at, N, D) * np.where(loud, 10, 0.1)
    at.weights[E] = noise(at, V, D) * at.rng.uniform(0.8, 1.2, D) * np.where(loud, s, 1)


def opposite_spreads(at: Scene, s: float) -> None:
    mine, other = noise(at, 2, D)
    at.weights[P] = noise(at, N, D) * np.exp(mine)
    at.weights[E] = noise(at, V, D) * np.exp(-s * mine + np.sqrt(1 - s**2) * other)


def dialled_down(at: Scene, s: float) -> None:
    mine, other = noise(at, 2, D)
    at.weights[P] = noise(at, N, D) * np.exp(mine)
    gain = np.exp(-s * mine + np.sqrt(1 - s**2) * other)
    at.weights |= synthetic.with_gains({}, LN1, [gain] * SIZES.n_layer)


def topped(at: Scene, s: float) -> None:
    gains = synthetic.gains_topped_by(9, range(round(s)), SIZES.n_layer, D, 1.5, at.seed)
    at.weights |= synthetic.with_gains({}, LN2, gains)


def leading(rows: Array, count: int) -> Array:
    return np.linalg.svd(rows, full_matrices=False)[2][:count].T


def flat_gains(at: Scene) -> None:
    at.weights |= synthetic.with_gains({}, LN1, [np.ones(D)] * SIZES.n_layer)


def read(at: Scene, s: float, directions: Array, name: str) -> None:
    """Of the energy of a layer-0 matrix, s reads these directions and the rest is spread."""
    role = f"blocks.0.{name}"
    d, width = at.weights[role].shape
    reading = directions @ noise(at, directions.shape[1], width)
    at.weights[role] = mixed(s, reading, noise(at, d, width)) / np.sqrt(d)


def reads_positions(at: Scene, s: float) -> None:
    flat_gains(at)
    at.weights[P] = noise(at, N, D) * np.geomspace(1, 0.05, D)
    for name in ("attn.q", "attn.k"):
        read(at, s, leading(at.weights[P], 5), name)


def reads_tokens(at: Scene, s: float, names: tuple[str, ...] = ("attn.q", "attn.k", "attn.v")) -> None:
    at.weights[E] = noise(at, V, D) * np.geomspace(1, 0.05, D)
    for name in names:
        read(at, s, leading(at.weights[E], N // 10), name)


def mlp_reads_tokens(at: Scene, s: float) -> None:
    reads_tokens(at, s, ("mlp.in",))


def writes_positions(at: Scene, s: float) -> None:
    at.weights[P] = noise(at, N, D) * np.geomspace(1, 0.05, D)
    read(at, s, leading(at.weights[P], N // 10), "attn.o")


def mlp_ignores(at: Scene, s: float) -> None:
    """Of what the MLP would read of P's directions by chance, 1 - s is taken away."""
    at.weights[P] = noise(at, N, D) * np.geomspace(1, 0.05, D)
    axes, role = leading(at.weights[P], N // 10), "blocks.0.mlp.in"
    at.weights[role] = at.weights[role] - (1 - np.sqrt(1 - s)) * axes @ (axes.T @ at.weights[role])


def previous_token(at: Scene, s: float) -> None:
    at.weights[E] = 0.3 * at.weights[E]
    at.weights |= synthetic.with_positional_heads(at.weights, SIZES, {(0, 1): 1}, sharpness=s, seed=at.seed)


def kept_apart(at: Scene, s: float) -> None:
    """Of P's variance, s lies where tokens hardly vary (half of the directions), the rest where they do."""
    axes = synthetic.orthonormal(D, D, at.seed)
    at.weights[E] = (noise(at, V, D) * np.where(np.arange(D) < D // 2, 1, 0.1)) @ axes.T
    loud = np.where(np.arange(D) < D // 2, np.sqrt(1 - s), np.sqrt(s))
    at.weights[P] = (noise(at, N, D) * loud) @ axes.T


def in_tail(at: Scene, s: float, of: str = P, among: str = E) -> None:
    rows, others = at.weights[of].shape[0], at.weights[among].shape[0]
    axes, tail = synthetic.orthonormal(D, D, at.seed), -(-D // 10)
    at.weights[among] = (noise(at, others, D) * np.geomspace(1, 0.05, D)) @ axes.T
    quiet, loud = axes[:, -tail:], axes[:, :-tail]
    at.weights[of] = (
        np.sqrt(s / tail) * noise(at, rows, tail) @ quiet.T
        + np.sqrt((1 - s) / (D - tail)) * noise(at, rows, D - tail) @ loud.T
    )


def tokens_in_tail(at: Scene, s: float) -> None:
    in_tail(at, s, E, P)


def tracking(at: Scene, s: float) -> Array:
    return s * at.z + np.sqrt(1 - s**2) * noise(at, V)


def channel_tracks(at: Scene, s: float) -> None:
    at.weights[E][:, 9] = tracking(at, s)


def ln2_tracks(at: Scene, s: float) -> None:
    """ln2's channel tracks frequency with a correlation of s, another channel with 0.55."""
    topped(at, SIZES.n_layer)
    at.weights[E][:, 9], at.weights[E][:, 20] = tracking(at, s), tracking(at, 0.55)


def shorter(at: Scene, s: float) -> None:
    at.weights[E] = at.weights[E] * np.exp(-0.5 * tracking(at, s))[:, None]


def about_a_mean(at: Scene, s: float) -> None:
    at.weights[E] = at.weights[E] + s * np.sqrt(D) * synthetic.orthonormal(D, 1, at.seed).T


def split_by_space(at: Scene, s: float) -> None:
    """Words differ from the rest by s standard deviations, along a direction in which all vary twice as much."""
    mean, split = synthetic.orthonormal(D, 2, at.seed).T
    wide = noise(at, V) * 2
    shift = 2 * s * (at.marks_space - 0.5)
    at.weights[E] = at.weights[E] + 3 * np.sqrt(D) * mean + np.outer(wide + shift, split)


def huddling(at: Scene, s: float) -> None:
    chosen = at.rng.choice(V, round(s), replace=False)
    at.weights[E][chosen] = noise(at, D) + 0.02 * noise(at, round(s), D)


# Where it is planted, and how strongly


@dataclass(frozen=True)
class Planting:
    """A scale of strengths, strongest first, for one claim."""

    claim: str
    what: str
    plant: Callable[[Scene, float], None]
    strengths: tuple[float, ...]
    finding: Finding[Any] = field(init=False)

    def __post_init__(self) -> None:
        found = next(f for f in FINDINGS for rule in f.rules if rule.id == self.claim)
        object.__setattr__(self, "finding", found)


CORRELATIONS = (0.9, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.0)
SHARES = (0.95, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.0)
PLANTINGS = (
    Planting(
        "three-components",
        "share of variance that is a helix",
        share_of_helix,
        (0.98, 0.95, 0.92, 0.88, 0.8, 0.72, 0.6, 0.3, 0),
    ),
    Planting("winding", "turns of a helix", turns, (12, 8, 4, 3, 2, 1.5, 1, 0.5)),
    Planting(
        "fraying", "noise in the first hundred rows, in radii of the helix", frayed, (1, 0.5, 0.3, 0.2, 0.1, 0.05, 0)
    ),
    Planting("first-position", "distance of the first row, in steps of the curve", apart, (50, 20, 10, 6, 4, 2, 1)),
    Planting(
        "constant-norms", "std/mean of the norms on two circles", rings, (0, 0.03, 0.045, 0.06, 0.08, 0.12, 0.3)
    ),
    Planting(
        "look-back", "share of variance that is a helix", share_of_helix, (0.999, 0.98, 0.95, 0.9, 0.8, 0.6, 0.3, 0)
    ),
    Planting(
        "low-rank", "share of energy in 30 of 128 directions", spectrum, (0.999, 0.995, 0.985, 0.96, 0.94, 0.8, 0.6)
    ),
    Planting("few-channels", "share of channels that vary", loud_channels, (0.05, 0.1, 0.15, 0.25, 0.3, 0.5, 1)),
    Planting(
        "tokens-avoid",
        "spread of tokens in eight loud channels of positions, relative to the others",
        quiet_tokens,
        (0.1, 0.5, 0.7, 0.8, 0.9, 1, 1.2),
    ),
    Planting("quiet-where-loud", "minus the correlation of both spreads", opposite_spreads, CORRELATIONS),
    Planting("ln1-dials-down", "minus the correlation of gain and spread", dialled_down, CORRELATIONS),
    Planting("ln2-one-channel", "layers of six that one channel tops by a half", topped, (6, 5, 4, 3, 2, 1)),
    Planting("qk-read-positions", "share of Q and K that reads five directions of P", reads_positions, SHARES),
    Planting("qkv-read-tokens", "share of Q, K and V that reads 25 directions of E", reads_tokens, SHARES),
    Planting("writes-positions", "share of O that writes into 25 directions of P", writes_positions, SHARES),
    Planting("mlp-reads-tokens", "share of the MLP's input that reads 25 directions of E", mlp_reads_tokens, SHARES),
    Planting(
        "mlp-ignores-positions",
        "share taken away of what it reads of 25 directions of P",
        mlp_ignores,
        (1, 0.8, 0.6, 0.5, 0.4, 0.2, 0),
    ),
    Planting(
        "previous-token-head",
        "score of the previous token before the softmax",
        previous_token,
        (200, 60, 30, 15, 10, 5, 0),
    ),
    Planting(
        "keep-apart", "share of P's variance where tokens hardly vary", kept_apart, (1, 0.9, 0.8, 0.7, 0.65, 0.6, 0.5)
    ),
    Planting("p-in-tail", "share of P's variance in E's last tenth", in_tail, SHARES),
    Planting("tokens-in-tail", "share of E's variance in P's last tenth", tokens_in_tail, SHARES),
    Planting("frequency-channel", "correlation of one channel with log-frequency", channel_tracks, CORRELATIONS),
    Planting(
        "frequency-is-ln2",
        "correlation of ln2's channel with log-frequency, where another has 0.55",
        ln2_tracks,
        (0.9, 0.7, 0.6, 0.5, 0.3, 0),
    ),
    Planting("frequent-shorter", "minus the correlation of log-length and log-frequency", shorter, CORRELATIONS),
    Planting(
        "first-is-mean", "length of the mean, in typical distances from it", about_a_mean, (3, 1, 0.5, 0.25, 0.1, 0)
    ),
    Planting(
        "space-plane",
        "distance of words from other tokens, in standard deviations",
        split_by_space,
        (8, 5, 4, 3, 2, 1, 0),
    ),
    Planting("clump", "tokens in one spot", huddling, (100, 40, 20, 12, 10, 9, 5)),
)


def verdict(planting: Planting, strength: float, seed: int) -> str:
    at = scene(seed)
    planting.plant(at, strength)
    claims = synthetic.claims_on(planting.finding, inputs(at))
    return next(claim.verdict for claim in claims if claim.id == planting.claim)


def worst(planting: Planting, strength: float) -> str:
    return min((verdict(planting, strength, seed) for seed in SEEDS), key=ORDER.index)


def row(planting: Planting) -> Mapping[str, Any]:
    found = [worst(planting, strength) for strength in planting.strengths]
    return {
        "claim": planting.claim,
        "what": planting.what,
        "scale": [{"strength": s, "verdict": v} for s, v in zip(planting.strengths, found, strict=True)],
    }


def main() -> None:
    rows = []
    for planting in PLANTINGS:
        rows.append(row(planting))
        print(
            planting.claim,
            *(f"{one['strength']:g} {one['verdict']}" for one in rows[-1]["scale"]),
            sep=", ",
            flush=True,
        )
    record = {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": nulls.commit(),
        "draws": len(SEEDS),
        "plantings": rows,
    }
    Path(RESULTS).write_text(json.dumps(record, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
