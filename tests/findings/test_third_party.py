"""Claims about P in the two gpt2-basic models, measured again by plain NumPy that shares no code with the atlas."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import Places
from generators.compute.plan import inputs, open_model
from generators.findings.channels import FINDING as CHANNELS
from generators.findings.helix import FINDING as HELIX
from tests.conftest import ROOT

THIRD_PARTY = ROOT / "models" / "third-party"


def by_plain_numpy(P, E):
    """Return the numbers of claims about P (n, d), n below 200, beside tokens E (V, d)."""
    later = P[1:] - P[1:].mean(axis=0)
    energies = np.linalg.svd(later, compute_uv=False) ** 2
    all_energies = np.linalg.svd(P, compute_uv=False) ** 2
    steps = np.sqrt(((P[1:] - P[:-1]) ** 2).sum(axis=1))
    nearer = np.array([min(steps[max(t - 1, 0)], steps[min(t, len(steps) - 1)]) for t in range(len(P))])
    outliers = [t for t in range(len(P)) if nearer[t] > 5 * np.median(nearer)]
    norms = [np.sqrt((P[t] ** 2).sum()) for t in range(1, len(P)) if t not in outliers]
    position_std, token_std = P[1:].std(axis=0), E.std(axis=0)
    sorted_shares = np.sort(position_std**2)[::-1] / (position_std**2).sum()
    ranks = [np.argsort(np.argsort(values)) for values in (position_std, token_std)]
    return {
        "three-components": energies[:3].sum() / energies.sum(),
        "first-position": steps[0] / np.median(nearer),
        "constant-norms": np.std(norms) / np.mean(norms),
        "low-rank": all_energies[:30].sum() / all_energies.sum(),
        "few-channels": (int((np.cumsum(sorted_shares) < 0.9).sum()) + 1) / P.shape[1],
        "quiet-where-loud": np.corrcoef(ranks[0], ranks[1])[0, 1],
    }


@pytest.mark.parametrize("name", ["gpt2-basic-486", "gpt2-basic-chat"])
def test_numbers_of_claims_about_positions_are_those_of_plain_numpy(name):
    opened = open_model(Model(name="m", title="M", sources=(FolderSource(folder=THIRD_PARTY / name),)), Places())
    helix, channels = (finding.measure(inputs(finding, opened)).metrics for finding in (HELIX, CHANNELS))
    measured = {
        "three-components": helix["explained_variance_3d"]["no_first"],
        "first-position": helix["first_position_distance"],
        "constant-norms": helix["norm_cv"],
        "low-rank": helix["energy_top30"],
        "few-channels": channels["channels_for_90"] / channels["n_channels"],
        "quiet-where-loud": channels["spearman_position_std_token_std"],
    }
    tensors = load_file(THIRD_PARTY / name / "model.safetensors")
    P, E = (tensors[f"transformer.{part}.weight"].astype(float) for part in ("wpe", "wte"))
    assert measured == pytest.approx(by_plain_numpy(P, E), rel=1e-6)
