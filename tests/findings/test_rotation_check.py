import json
import shutil
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
from tests import synthetic
from tests.conftest import ROOT
from tests.findings.stand_in import measure_run

LOCAL, GLOBAL = (Rotary(8, tuple(2 * np.pi * base ** (np.arange(4) / 4))) for base in (1e4, 1e6))
ARCH = replace(synthetic.architecture(n_ctx=72), positions="rotary", rotary=(LOCAL, GLOBAL))
TRAINED = ROOT / "models" / "stdlib-family" / "rotary"
HEADS, WIDTH = 4, 32  # of it
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


def test_models_of_one_base_and_models_without_a_head():
    one = measured(RIGHT, arch=replace(ARCH, rotary=(LOCAL, None)))
    assert len(one.metrics["settings"]) == 3
    with pytest.raises(NotApplicableError, match="predicts no tokens"):
        measure_run(FINDING, ARCH, None, kind="rotary", predicts=False)


def test_pairs_of_neighbors_and_of_halves():
    for adjacent, order in ((False, [0, 2, 4, 6, 1, 3, 5, 7]), (True, [0, 4, 1, 5, 2, 6, 3, 7])):
        settings = dict(other_settings([replace(LOCAL, adjacent=adjacent)]))
        assert settings["other pairs"] == Rotations(channels=order)


# A trained model, saved with wrong rotations, on its held-out text


def interleaved(key, rows):
    """Return queries and keys with neighboring channels in pairs, as some software saves them."""
    if ".query_key_value." not in key:
        return rows
    heads = rows.reshape(HEADS, 3, 2, WIDTH // 2, -1).copy()
    heads[:, :2] = heads[:, :2].swapaxes(2, 3).reshape(heads[:, :2].shape)
    return heads.reshape(rows.shape)


def untrained(key, matrix):
    return (0.02 * np.random.default_rng(len(key)).standard_normal(matrix.shape)).astype(matrix.dtype)


@pytest.mark.parametrize(
    ("theta", "change", "verdict", "closest"),
    [
        (1e4, lambda key, matrix: matrix, "holds", "theta × 10"),
        (1e5, lambda key, matrix: matrix, "fails", "theta / 10"),
        (1e4, interleaved, "fails", "other pairs"),
        (1e4, untrained, "untested", None),
    ],
)
def test_a_sound_model_holds_and_wrong_rotations_are_caught(tmp_path, theta, change, verdict, closest):
    pytest.importorskip("transformers", reason="transformers isn't installed")
    from safetensors.numpy import load_file, save_file

    from generators.runner import open_model

    folder, arch = shutil.copytree(TRAINED, tmp_path / "saved"), open_checkpoint(in_folder(TRAINED)).architecture
    config = json.loads((TRAINED / "config.json").read_text("utf-8"))
    config["rope_parameters"]["rope_theta"] = theta
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {key: change(key, array) for key, array in load_file(TRAINED / "model.safetensors").items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    result = FINDING.measure(Inputs({}, arch, run=open_model(folder, arch)))
    claim = claims_of(result)["rotated-as-config"]
    assert claim.verdict == verdict
    if closest is not None:
        assert min(result.metrics["settings"], key=lambda row: row["added"])["setting"] == closest
    if verdict == "fails":
        assert claim.interval[1] < 0
        assert claim.value < -claim.threshold
