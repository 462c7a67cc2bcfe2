"""What position embeddings of real models have beyond chance, as was measured apart from the atlas."""

from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

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
