import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from generators.base.architecture import Rotary
from generators.base.runs import Rotations
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.sources.places import in_folder
from generators.findings.inputs import Inputs, NotApplicableError
from generators.findings.rotation_check import FINDING
from generators.findings.rotation_check.measure import other_settings
from generators.runner.texts import TokenizedText
from tests import synthetic
from tests.conftest import ROOT
from tests.findings.stand_in import measure_run

LOCAL, GLOBAL = (Rotary(8, tuple(2 * np.pi * base ** (np.arange(4) / 4))) for base in (1e4, 1e6))
ARCH = replace(synthetic.architecture(n_ctx=72), positions="rotary", rotary=(LOCAL, GLOBAL))
TRAINED = ROOT / "models" / "third-party" / "stories260k"
SAMPLES, LENGTH = 8, 255
DIM = 8  # channels of its heads
claims_of = partial(synthetic.by_id, FINDING)


def setting_of(how):
    return next(name for name, each in other_settings([LOCAL, GLOBAL]) if each == how)


def measured(added, noise=0.0, seed=0, arch=ARCH):
    """Return what is measured where settings add this to the loss, with noise of each window and setting."""
    rng = np.random.default_rng(seed)
    own = noise * rng.standard_normal(8)

    def rotating(how):
        return added.get(setting_of(how), 0.0) + noise * rng.standard_normal(8) - own

    return measure_run(FINDING, arch, None, kind="rotary", rotating=rotating, affords=8)


RIGHT = {"theta / 10": 0.05, "theta × 10": 0.08, "other pairs": 2.0, "layers exchanged": 1.0}


def examples():
    yield measured(RIGHT)


def nothing(seed):
    return measured({}, noise=0.05, seed=seed)


def test_the_lowest_loss_holds_and_each_setting_that_is_lower_fails():
    result = measured(RIGHT)
    assert {row["setting"]: row["added"] for row in result.metrics["settings"]} == pytest.approx(RIGHT)
    assert result.metrics["thetas"] == [1e4, 1e6]
    assert claims_of(result)["rotated-as-config"].verdict == "holds"
    for setting in RIGHT:
        claim = claims_of(measured(RIGHT | {setting: -0.05}))["rotated-as-config"]
        assert claim.verdict == "fails"
        assert claim.interval[1] < 0
        assert setting in claim.answer
    assert claims_of(measured(RIGHT | {"theta / 10": 0.005}))["rotated-as-config"].verdict == "partly"


def test_settings_that_differ_by_noise_seldom_hold():
    held = sum(claims_of(nothing(seed))["rotated-as-config"].verdict == "holds" for seed in range(200))
    assert held <= 2


def test_models_of_one_base_and_models_that_do_not_rotate():
    one = measured(RIGHT, arch=replace(ARCH, rotary=(LOCAL, None)))
    assert len(one.metrics["settings"]) == 3
    with pytest.raises(NotApplicableError):
        measure_run(FINDING, synthetic.architecture())
    with pytest.raises(NotApplicableError, match="predicts no tokens"):
        measure_run(FINDING, ARCH, None, kind="rotary", predicts=False)


def test_pairs_of_neighbors_and_of_halves():
    for adjacent, order in ((False, [0, 2, 4, 6, 1, 3, 5, 7]), (True, [0, 4, 1, 5, 2, 6, 3, 7])):
        settings = dict(other_settings([replace(LOCAL, adjacent=adjacent)]))
        assert settings["other pairs"] == Rotations(channels=order)


# A trained model, saved with wrong rotations, on text that the sound one wrote


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return a function that saves the model with other settings or tensors, and measures it on that text."""
    pytest.importorskip("transformers", reason="transformers isn't installed")
    from safetensors.numpy import load_file, save_file

    from generators.runner import open_model

    arch, root = open_checkpoint(in_folder(TRAINED)).architecture, tmp_path_factory.mktemp("rotated")
    ids = open_model(TRAINED, arch).write(1, np.random.default_rng(0).random((SAMPLES, LENGTH)))
    starts = tuple(range(0, ids.size, LENGTH))
    text = TokenizedText("samples", "0" * 64, ids.ravel(), before=(1,), starts=starts)

    def measure(name, settings=None, change=lambda _, matrix: matrix):
        folder = root / name
        folder.mkdir()
        for file in TRAINED.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        config = json.loads((TRAINED / "config.json").read_text("utf-8")) | (settings or {})
        (folder / "config.json").write_text(json.dumps(config))
        tensors = {key: change(key, matrix) for key, matrix in load_file(TRAINED / "model.safetensors").items()}
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        return FINDING.measure(Inputs({}, arch, run=open_model(folder, arch, text=text)))

    return measure


def interleaved(key, matrix):
    """Return rows of queries and keys in the order of the original checkpoint, whose pairs are neighbors."""
    if not key.endswith(("q_proj.weight", "k_proj.weight")):
        return matrix
    heads = matrix.reshape(-1, 2, DIM // 2, matrix.shape[1])
    return np.ascontiguousarray(heads.swapaxes(1, 2)).reshape(matrix.shape)


def test_a_sound_model_holds_and_wrong_rotations_are_caught(saved):
    verdicts, best = {}, {}
    for name, settings, change in (
        ("sound", {}, None), ("theta", {"rope_theta": 1e5}, None), ("pairs", {}, interleaved),
    ):  # fmt: skip
        result = saved(name, settings, change or (lambda _, matrix: matrix))
        claim = claims_of(result)["rotated-as-config"]
        verdicts[name] = claim.verdict
        best[name] = min(result.metrics["settings"], key=lambda row: row["added"])["setting"]
    assert verdicts == {"sound": "holds", "theta": "fails", "pairs": "fails"}
    assert (best["theta"], best["pairs"]) == ("theta / 10", "other pairs")


def test_an_untrained_model_gives_no_verdict(saved):
    rng = np.random.default_rng(0)
    result = saved("untrained", {}, lambda _, matrix: (0.02 * rng.standard_normal(matrix.shape)).astype(np.float32))
    assert claims_of(result)["rotated-as-config"].verdict == "untested"
