"""A claim that noise can pass is no claim."""

from collections import Counter
from collections.abc import Callable
from importlib import import_module

import numpy as np
import pytest

from generators.findings import plantings
from generators.findings.attention import FINDING as ATTENTION
from generators.findings.channels import FINDING as CHANNELS
from generators.findings.gains import FINDING as GAINS
from generators.findings.helix import FINDING as HELIX
from generators.findings.helix import chance
from generators.maths.curve_statistics import statistics
from tests import synthetic

FINDINGS = (HELIX, CHANNELS, GAINS, ATTENTION)
SEEDS = 1  # per architecture; `make nulls` draws hundreds
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
    """Count (claim, verdict) over all seeds and architectures.

    What chance gives for a curve of Gaussian rows depends on their number and width: it is drawn once for each.
    """
    drawn: dict[tuple[int, ...], chance.HelixDraws] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            import_module("generators.findings.helix.measure"),
            "draw",
            lambda P: drawn.get(P.shape) or drawn.setdefault(P.shape, chance.draw(P)),
        )
        return _counted()


def _counted() -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for index, arch in enumerate(ARCHITECTURES):
        for seed in range(SEEDS):
            weights = synthetic.gaussian_weights(arch, seed=1000 * index + seed)
            for finding in FINDINGS:
                claims = finding.claims(synthetic.measure(finding, weights, arch))
                counts.update((claim.id, claim.verdict) for claim in claims)
    return counts


def test_at_most_one_claim_in_a_hundred_holds_on_gaussian_weights(verdicts):
    tested = sum(count for (_, verdict), count in verdicts.items() if verdict != "untested")
    holding = {claim: count for (claim, verdict), count in verdicts.items() if verdict == "holds"}
    assert tested > 125
    assert sum(holding.values()) <= 0.01 * tested, holding


def test_every_claim_but_one_is_tested_on_gaussian_weights(verdicts):
    """Gaussian weights have no position channels for tokens to avoid."""
    tested = {claim for (claim, verdict) in verdicts if verdict != "untested"}
    assert {claim for (claim, _) in verdicts} - tested <= {"tokens-avoid"}
    assert len(tested) >= 13


# Curves that only drift: many of them would pass the thresholds, and do not pass what featureless curves give.

SHAPES = [(256, 48), (512, 16), (128, 96), (400, 24)]
DRIFTS: dict[str, Callable[[int, int, int], np.ndarray]] = {
    "random walk": synthetic.random_walk,
    **{
        f"AR(1) {memory}": lambda n, d, seed, memory=memory: synthetic.autoregressive(n, d, seed, memory)
        for memory in (0.5, 0.9, 0.97, 0.99)
    },
    **{
        f"noise smoothed over {width}": lambda n, d, seed, width=width: synthetic.smoothed_noise(n, d, seed, width)
        for width in (2, 5, 10, 20, 40, 80)
    },
}
DRIFT_SEEDS = 3
CLAIMS = ("winding", "look-back")


def reaches_a_threshold(rows: np.ndarray) -> bool:
    """Return whether a curve winds once or gains a half: one that does not can't pass, whatever chance gives."""
    found = statistics(rows, ("winding", "median_gain"))
    return found["winding"][0] >= 1 or found["median_gain"][0] >= 0.5


def winding(rows: np.ndarray) -> list[str]:
    """Return which of the two claims a curve passes."""
    if not reaches_a_threshold(rows):
        return []
    claims = synthetic.claims_of(HELIX, {"position_embedding": rows})
    return [claim for claim in CLAIMS if claims[claim].verdict == "holds"]


def test_random_drifts_do_not_wind():
    passed = {
        (name, shape, seed): found
        for name, drift in DRIFTS.items()
        for shape in SHAPES
        for seed in range(DRIFT_SEEDS)
        if (found := winding(drift(*shape, seed)))
    }
    curves = len(DRIFTS) * len(SHAPES) * DRIFT_SEEDS
    for claim in CLAIMS:
        assert sum(claim in found for found in passed.values()) <= 0.01 * curves, passed


@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.03, 0.3])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_a_straight_line_does_not_wind(n, d, noise):
    assert winding(plantings.embed(synthetic.line(n), d, noise=noise)) == []


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_half_an_arc_does_not_wind(n, d):
    assert "winding" not in winding(plantings.embed(plantings.coil(n, 0.5), d, noise=0.01))
