"""A claim that noise can pass is no claim: noise of other sizes and kinds than that of `make nulls`."""

from collections import Counter
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from scipy.stats import binom

from generators.findings import FINDINGS
from generators.findings.helix import FINDING as HELIX
from generators.findings.helix import chance
from generators.findings.inputs import RUN
from generators.maths.curve_statistics import statistics
from tests import nulls, synthetic
from tests.nulls import D, E, Null, P, V, low_rank, noise, of_rows, of_weights

ABOUT_WEIGHTS = [finding for finding in FINDINGS if finding.rules and RUN not in finding.needs]
ARCHITECTURES = (
    synthetic.architecture(n_ctx=256, d_model=48),
    synthetic.architecture(n_ctx=256, d_model=48, causal=False, post_norm=True),
    synthetic.architecture(n_ctx=512, d_model=64, n_layer=4, n_head=4),
    synthetic.architecture(n_ctx=512, d_model=32, n_layer=6),
    synthetic.architecture(n_ctx=200, d_model=32, n_layer=3, causal=False),
    synthetic.architecture(n_ctx=128, d_model=128, n_layer=6, n_head=4, causal=False),
    synthetic.architecture(n_ctx=77, d_model=96),
    synthetic.architecture(n_ctx=64, d_model=32, n_layer=4),
    synthetic.architecture(n_ctx=24, d_model=64, n_layer=3),
    synthetic.architecture(n_ctx=1024, d_model=32, n_layer=1),
)


@pytest.fixture(scope="module")
def verdicts() -> Counter[tuple[str, str]]:
    """Count (claim, verdict) over all architectures; chance for curves of one size is drawn once."""
    drawn: dict[tuple[int, ...], chance.HelixDraws] = {}
    counts: Counter[tuple[str, str]] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            import_module("generators.findings.helix.measure"),
            "draw",
            lambda P: drawn.get(P.shape) or drawn.setdefault(P.shape, chance.draw(P)),
        )
        for index, arch in enumerate(ARCHITECTURES):
            weights = synthetic.gaussian_weights(arch, seed=1000 * index)
            for finding in ABOUT_WEIGHTS:
                given = synthetic.Inputs(weights, arch)
                counts.update(synthetic.verdicts_on(finding, given).items())
    return counts


def share_that_holds(counts: Counter[tuple[str, str]]) -> float:
    tested = sum(count for (_, verdict), count in counts.items() if verdict != "untested")
    return sum(count for (_, verdict), count in counts.items() if verdict == "holds") / tested


def test_at_most_one_claim_in_a_hundred_holds_on_gaussian_weights(verdicts):
    assert share_that_holds(verdicts) <= 0.01, verdicts


def test_claims_are_tested_on_gaussian_weights(verdicts):
    """There are no position channels to avoid, no vocabulary, no frequencies, no clump and no curve to break off."""
    tested = {claim for (claim, verdict) in verdicts if verdict != "untested"}
    lacking = {"tokens-avoid", "space-plane", "frequency-channel", "frequency-is-ln2", "frequent-shorter"}
    lacking |= {"untrained-rows", "seam"}
    assert {claim for (claim, _) in verdicts} - tested <= lacking
    assert len(tested) >= 13


def heavy(rng: np.random.Generator) -> np.ndarray:
    """Return factors that make Gaussian rows ones of Student's t."""
    return 1 / np.sqrt(rng.chisquare(3, (V, 1)) / 3)


def matrices_of_rank(rank: int) -> Null:
    widths = {"attn.q": D, "attn.k": D, "attn.v": D, "attn.o": D, "mlp.in": 4 * D}
    return of_weights(
        f"matrices of rank {rank}",
        ("blocks.*.attn.v",),
        lambda rng: {f"blocks.0.{name}": low_rank(rng, D, width, rank) for name, width in widths.items()},
    )


def turned(rng: np.random.Generator) -> np.ndarray:
    return np.linalg.qr(noise(rng, D, D))[0]


POWER = np.arange(1, D + 1) ** -0.5
KINDS = {  # null -> seeds
    of_rows("log-normal norms", (E,), lambda rng, n: noise(rng, n, D) * rng.lognormal(sigma=0.5, size=(n, 1))): 12,
    of_rows(
        "power-law spectrum", (E,), lambda rng, n: noise(rng, n, D) * POWER @ np.linalg.qr(noise(rng, D, D))[0]
    ): 12,
    of_rows("power law about a mean", (E,), lambda rng, n: 1 + noise(rng, n, D) * POWER): 4,
    of_rows("steep spectrum", (E,), lambda rng, n: noise(rng, n, D) * POWER**2): 4,
    of_rows("Student t", (E,), lambda rng, n: rng.standard_t(3, (n, D))): 4,
    of_rows("Student t norms", (E,), lambda rng, n: noise(rng, n, D) * heavy(rng)): 4,
    of_rows("three directions", (E,), lambda rng, n: low_rank(rng, n, D, 3)): 4,
    of_rows("positions of six directions", (P,), lambda rng, n: low_rank(rng, n, D, 6)): 4,
    **{matrices_of_rank(rank): 24 for rank in (2, 8)},
}
PRESERVED_BY = {"first-is-mean": ("power law about a mean",)}


@pytest.mark.parametrize("null", KINDS, ids=lambda null: null.name)
def test_at_most_one_claim_in_a_hundred_holds_on_noise_of_any_kind(null):
    about = "blocks.*.attn.v" if null.name.startswith("matrices") else E
    findings = [finding for finding in ABOUT_WEIGHTS if about in finding.needs]
    pairs = [pair for seed in range(KINDS[null]) for pair in nulls.verdicts(null, seed, findings)]
    counts = Counter(pair for pair in pairs if null.name not in PRESERVED_BY.get(pair[0], ()))
    held = sum(count for (_, verdict), count in counts.items() if verdict == "holds")
    # Claims about matrices are judged by draws alone: as many hold as a rate of 1 % may give.
    most = binom.ppf(0.95, counts.total(), 0.01) if null.name.startswith("matrices") else 0
    assert share_that_holds(counts) <= 0.01 or held <= most, counts
    assert {verdict for claim, verdict in counts if claim == "clump"} <= {"fails"}


# Curves that only drift: many of them would pass the thresholds, and do not pass what featureless curves give.

SHAPES = [(256, 48), (512, 16), (128, 96), (400, 24)]
DRIFTS = (
    synthetic.random_walk,
    *(partial(synthetic.autoregressive, memory=memory) for memory in (0.5, 0.9, 0.97, 0.99)),
    *(partial(synthetic.smoothed_noise, width=width) for width in (2, 5, 10, 20, 40, 80)),
)
CLAIMS = ("winding", "look-back")


def winding(rows: np.ndarray) -> list[str]:
    """Return which of the two claims a curve passes; none if it reaches no threshold, whatever chance gives."""
    found = statistics(rows, ("winding", "median_gain"))
    if found["winding"][0] < 1 and found["median_gain"][0] < 0.5:
        return []
    claims = synthetic.claims_of(HELIX, {"position_embedding": rows})
    return [claim for claim in CLAIMS if claims[claim].verdict == "holds"]


def test_random_drifts_do_not_wind():
    curves = [drift(*shape, seed) for drift in DRIFTS for shape in SHAPES for seed in range(3)]
    passed = Counter(claim for rows in curves for claim in winding(rows))
    assert all(count <= 0.01 * len(curves) for count in passed.values()), passed
