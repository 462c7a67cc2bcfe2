"""Position embeddings of real models turn as was measured apart from the atlas."""

from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from generators.maths import curve, turning
from generators.maths.curve_chance import CurveNulls
from generators.maths.curve_statistics import statistics
from generators.maths.resampling import beyond, block_weights, interval
from tests.conftest import MINILM, MODELS_DIRS, ROOT

pytestmark = pytest.mark.real_weights


def tensor(file: Path, name: str) -> np.ndarray:
    with safe_open(file, "np") as tensors:
        return tensors.get_tensor(name).astype(np.float64)


@pytest.fixture(scope="module")
def curves() -> dict[str, np.ndarray]:
    """Return the position embeddings that are at hand."""
    found = {"stdlib-gpt2": tensor(ROOT / "models/stdlib-gpt2/model.safetensors", "transformer.wpe.weight")}
    for folder in MODELS_DIRS:
        for name, role in (("gpt2", "wpe.weight"), ("openai-gpt", "positions_embed.weight")):
            if (folder / name / "model.safetensors").is_file():
                found[name] = tensor(folder / name / "model.safetensors", role)
    for file in metadata.files(MINILM) or () if MINILM in _installed() else ():
        if file.name == "model.safetensors":
            found["minilm"] = tensor(Path(file.locate()), "embeddings.position_embeddings.weight")
    return found


def _installed() -> set[str]:
    return {distribution.name for distribution in metadata.distributions()}


def of(curves: dict[str, np.ndarray], model: str) -> np.ndarray:
    if model not in curves:
        pytest.skip(f"the weights of {model} are not at hand")
    return curves[model]


def run_of(P: np.ndarray) -> slice:
    return curve.longest_run(len(P), curve.outlier_positions(P)[0])


@pytest.mark.parametrize(
    ("model", "run", "winding", "strongest"),
    [
        ("gpt2", slice(3, 1023), 1.736, [(0.628, 2.76, 1.00)]),
        ("openai-gpt", slice(0, 512), 16.76, [(0.226, 79.1, 0.94), (0.169, 47.7, 0.90)]),
        ("minilm", slice(1, 512), 22.48, [(0.258, 87.2, 1.00)]),
        ("stdlib-gpt2", slice(3, 255), 0.451, [(0.905, 0.753, 0.66)]),
    ],
)
def test_planes(curves, model, run, winding, strongest):
    P = of(curves, model)
    assert run_of(P) == run
    scores = curve.principal_scores(P[run], turning.COMPONENTS)
    planes = turning.planes(scores.values, scores.energy)
    assert turning.winding(planes) == pytest.approx(winding, rel=1e-3)
    for plane, (share, turns, steadiness) in zip(planes, strongest, strict=False):
        assert plane.share == pytest.approx(share, abs=1e-3)
        assert plane.turns == pytest.approx(turns, rel=1e-3)
        assert plane.steadiness == pytest.approx(steadiness, abs=6e-3)


@pytest.mark.parametrize(
    ("model", "gains"),
    [
        ("gpt2", (0.498, 0.582, 0.603)),
        ("openai-gpt", (0.718, 0.593, 0.271)),
        ("minilm", (0.952, 0.616, 0.761)),
        ("stdlib-gpt2", (-0.143, -1.144, -0.010)),
    ],
)
def test_looking_back(curves, model, gains):
    P = of(curves, model)
    scores = curve.principal_scores(P[run_of(P)], turning.COMPONENTS).values
    looks = [turning.look_back(scores, k) for k in turning.offsets(len(scores))]
    assert [look.gain for look in looks[:3]] == pytest.approx(gains, abs=1e-3)
    assert turning.median_gain(looks) == pytest.approx(np.median(gains), abs=1e-3)


@pytest.mark.parametrize(
    ("model", "beyond_chance", "not_beyond"),
    [
        (
            "gpt2",
            ("explained_variance_3d", "winding", "median_gain", "fraying", "first_position_distance", "norm_cv"),
            (),
        ),
        ("openai-gpt", ("winding", "median_gain"), ("explained_variance_3d", "fraying")),
        ("minilm", ("winding", "median_gain", "first_position_distance"), ("explained_variance_3d", "norm_cv")),
        ("stdlib-gpt2", ("explained_variance_3d",), ("winding", "median_gain", "fraying", "norm_cv")),
    ],
)
def test_what_is_beyond_chance(curves, model, beyond_chance, not_beyond):
    P = of(curves, model)
    values, nulls = statistics(P), CurveNulls(P, 100, 0)
    for names, expected in ((beyond_chance, True), (not_beyond, False)):
        for name in names:
            found = nulls.chances(name)
            assert all(beyond(values[name][0], null) for null in found.values()) is expected, (name, found)
    if model == "gpt2":
        assert nulls.lag_one == pytest.approx(0.99988, abs=1e-5)
        winding, gain = nulls.chances("winding")["smooth"], nulls.chances("median_gain")["smooth"]
        assert winding.median == pytest.approx(0.54, abs=0.04)
        assert winding.limit == pytest.approx(0.73, abs=0.08)
        assert gain.limit == pytest.approx(0.25, abs=0.2)


def test_intervals_of_gpt2(curves):
    P = of(curves, "gpt2")
    values = statistics(P)
    weights = block_weights(len(P), 200, np.random.default_rng(0))
    intervals = {name: interval(drawn) for name, drawn in statistics(P, weights=weights).items()}
    for name, (low, high) in intervals.items():
        assert low <= values[name][0] <= high, name
    assert intervals["winding"][0] > 1
    assert intervals["explained_variance_3d"][0] < 0.9 < intervals["explained_variance_3d"][1]  # a close call
    assert intervals["median_gain"][0] < 0.5 < intervals["median_gain"][1]  # another
