import numpy as np
import pytest
from safetensors.numpy import load_file

from generators.findings.helix import FINDING as HELIX
from generators.findings.helix.claims import breaks
from generators.findings.helix.figures import draw_norms
from generators.findings.helix.trained import FEWEST, jumps, tail_factors, trained
from generators.maths.surrogates import smooth_curve, smooth_noise
from tests import synthetic
from tests.conftest import ROOT


def table(name):
    file = ROOT / "models" / "stdlib-family" / name / "model.safetensors"
    return load_file(file)["transformer.wpe.weight"].astype(np.float64)


def first_values(count, d, norm, seed):
    """Return rows as they are before training, of about this norm."""
    return np.random.default_rng(seed).standard_normal((count, d)) * norm / np.sqrt(d)


def verdicts(P, arch=None):
    claims = synthetic.claims_of(HELIX, {"position_embedding": P}, arch)
    return [claims["untrained-rows"].verdict, claims["seam"].verdict]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("rows", "trained_on"), [(64, 50), (64, 40), (256, 200), (256, 128)])
def test_a_table_whose_end_was_never_trained(rows, trained_on, seed):
    learned = table("context-64" if rows == 64 else "learned")[: rows - 1]
    own = np.vstack([learned[: trained_on // 2], learned[-(trained_on - trained_on // 2) :]])
    P = np.vstack([own, first_values(rows - trained_on, own.shape[1], 0.15, seed)])
    tail = trained(P, 1.0)["tail"]
    assert abs(tail["first"] - trained_on) <= 2
    assert (tail["short"], tail["cosine"] < 0.3) == (True, True)
    assert tail["factor"] > max(2, tail["chance"]["limit"])


@pytest.mark.parametrize(("name", "last"), [("context-64", 63), ("learned", 255), ("learned-seed-1", 255)])
def test_the_last_position_predicts_nothing_within_its_window(name, last):
    P = table(name)
    assert trained(P, 1.0)["tail"]["first"] == last
    assert verdicts(P)[0] == "holds"
    assert verdicts(P[:-1])[0] == "fails"


def test_rows_before_the_break_may_fray_and_be_padding():
    P = 1 + 0.5 * smooth_noise(256, 5.0, np.random.default_rng(0), 48)
    P[:2] = 0
    P[2:6] *= 6
    assert verdicts(P) == ["fails", "fails"]
    P[200:] = first_values(56, 48, 30, 1)
    tail = trained(P, 5.0)["tail"]
    assert (tail["first"], tail["short"]) == (200, False)
    assert verdicts(P)[0] == "holds"
    P[200:] = 0
    assert trained(P, 5.0)["tail"]["factor"] > 100
    assert verdicts(P)[0] == "holds"


def test_long_rows_that_resemble_their_neighbors_were_trained():
    P = 1 + 0.2 * smooth_noise(256, 5.0, np.random.default_rng(0), 48)
    P[254:] *= 3
    assert verdicts(P)[0] == "partly"


@pytest.mark.parametrize("at", [60, 128, 190])
def test_a_seam_is_found_where_norms_jump(at):
    P = smooth_noise(256, 5.0, np.random.default_rng(at), 128)
    P[at:] *= 1.4
    found = trained(P, 5.0)["seams"][0]
    assert (found["series"], found["change"]) == ("norms", pytest.approx(1.4, abs=0.15))
    assert abs(found["at"] - at) <= 3
    assert verdicts(P)[1] == "holds"


def test_jumps_are_those_of_medians_without_drift():
    logs = np.random.default_rng(0).standard_normal(50)
    at = 21
    change = [abs(np.median(logs[i : i + 8]) - np.median(logs[i - 8 : i])) for i in (at - 8, at, at + 8)]
    assert jumps(logs)[at - 16] == pytest.approx(change[1] - max(change[0], change[2]))
    assert jumps(np.linspace(0, 5, 60)).max() == pytest.approx(0)
    assert jumps(np.exp(-np.arange(60) / 5)).max() <= 0


def test_factors_of_the_last_rows_one_by_one():
    norms = np.random.default_rng(0).lognormal(0, 1, 30)
    for place, factor in enumerate(tail_factors(norms), start=8):
        before = np.median(norms[place - 8 : place])
        assert factor == pytest.approx(max(before / norms[place:].max(), norms[place:].min() / before))


def test_tables_in_which_nothing_can_break_off():
    noise = np.random.default_rng(0).standard_normal((256, 48))
    assert verdicts(noise) == ["untested", "untested"]
    assert verdicts(smooth_curve(FEWEST - 1, 5.0, np.random.default_rng(0))) == ["untested"] * 2
    formula = synthetic.architecture(positions="formula")
    assert verdicts(smooth_noise(256, 5.0, np.random.default_rng(0), 48), formula) == ["untested"] * 2


def test_the_figure_marks_what_breaks_off():
    P = smooth_noise(256, 5.0, np.random.default_rng(3), 128)
    P[-2:] = first_values(2, 128, 1, 0)
    metrics = synthetic.measure(HELIX, {"position_embedding": P}).metrics
    assert [at for at, what in breaks(metrics) if what == "last rows"] == [254]
    figure = draw_norms(np.linalg.norm(P, axis=1), metrics)
    assert "last rows from 254 on" in figure.axes[0].get_legend_handles_labels()[1]
