"""What git keeps of four models beside values that were measured apart from the atlas.

`tests/test_stored_numbers.py` measures the same models anew and compares them with what git keeps.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from generators.compute.judged import JudgedFinding, judged_finding
from generators.compute.results import Store
from generators.findings import FINDINGS
from tests.conftest import ROOT

STORE = Store(ROOT / "results")
GPT2, GPT1, MINILM, STDLIB = "gpt2", "openai-gpt", "all-minilm-l6-v2", "stdlib-gpt2"


@cache
def kept(finding: str, model: str) -> JudgedFinding:
    return judged_finding(STORE, model, next(one for one in FINDINGS if one.name == finding))


def near(value: float, by: float) -> Any:
    return pytest.approx(value, abs=by)


def first(values: str) -> dict[int, str]:
    return dict(enumerate(values.split()))


def gains(*values: str) -> dict[int, Any]:
    """Return what predicts a position by those 1, 5 and 10 before it, over no movement."""
    return {i: {"k": k, "gain": value} for i, (k, value) in enumerate(zip((1, 5, 10), values, strict=True))}


# Parts of metrics and arrays, by key or place. A number that stands as text is rounded to as many digits.
VALUES = {
    ("attention", GPT2): {
        # The document's shares are of P with row 0 and its mean (Q 0.0527, K 0.1550, V 0.0311, O 0.1031).
        "shares": {
            "P": {
                "Q": {0: {"raw": "0.0519", "folded": "0.008"}},
                "K": {0: {"raw": "0.1518", "folded": "0.025"}},
                "V": {0: {"raw": "0.0283"}},
                "O": {0: {"raw": "0.1030"}},
            }
        },
        "chance_share": "0.0391",
        "reads": {"Q": {"folded": "0.84"}, "K": {"folded": "3.78"}},
        "top5": {"P": {"Q": {"raw": "2.343"}, "K": {"raw": "3.343"}}},
        "chance_top5": "0.033",
        "positional_kernels": {"heads": {7: {"layer": 0, "head": 7, "weight_at_1": "0.25"}}},
    },
    ("attention", MINILM): {
        "positional_kernels": {"heads": {2: {"layer": 0, "head": 2, "weight_at_1": "0.992"}}},
        "token_kernels": {"heads": {2: {"weight_at_1": "0.927"}, 5: {"weight_at_1": "0.273"}}},
    },
    ("attention", STDLIB): {"shares": {"P": {"MLP in": {0: {"folded": "0.0843"}}}}},
    ("channels", GPT2): {
        "channels_for_90": 47,
        "channels_for_95": 52,
        "channels_for_99": 66,
        "n_channels": 768,
        "largest_gap": "0.121",
        "participation_ratio": first("20.4 20.9 24.2 11.5 27.9"),
        "chance": {"channels_for_90": {"limit": "0.68"}},
        "token_std": None,
    },
    # A gap of a twelfth of a decade and more, and still no position channels: those above it hold less than half.
    ("channels", GPT1): {"position_channels": [], "largest_gap": "0.122", "channels_for_90": 197},
    ("channels", MINILM): {"position_channels": []},
    ("channels", STDLIB): {"position_channels": []},
    ("frequency", MINILM): {
        "norm_rho": near(0.82, 0.01),
        "probe": {"rho": "0.91"},
    },
    ("frequency", STDLIB): {
        "frequency_channel": {"rho": "0.634"},
        "chance": {"frequency_channel": {"median": near(0.655, 0.03)}},
        "probe": {"rho": "0.91"},
    },
    ("gains", GPT2): {
        "correlation": {"ln1": {"0": "-0.879"}},
        "intervals": {"dials_down": {1: "-0.852"}},
        "chance": {"dials_down": {"median": near(0, 0.05), "limit": near(-0.1, 0.1)}},
        "consistent_channel": {"ln2": {"channel": 138, "layers_topped": 9, "n_layers": 12}},
        # Scherlis: “it has very little position-embedding presence”.
        "ln2_channel": {"channel": 138, "position_std": 654, "token_mean": None, "token_std": None},
    },
    ("gains", MINILM): {"consistent_channel": {"ln2": {"channel": 99, "layers_topped": 4, "n_layers": 6}}},
    ("gains", GPT1): {"consistent_channel": {"ln2": {"tied": [266, 380], "layers_topped": 5, "n_layers": 12}}},
    ("helix", GPT2): {
        "explained_variance_3d": {"all": "0.9039", "no_first": "0.9106", "late": "0.9511", "early": "0.9640"},
        "fraying": "0.035",
        "singular_values": first("61.95 60.94 53.24 22.70 15.98"),
        "energy_top30": "0.9991",
        "rows_without_outliers": [3, 1022],
        "intervals": {"winding": {0: "1.39"}, "median_gain": {0: "0.43", 1: "0.784"}},
        "outlier_positions": [0, 1, 2, 1023],
        "winding": "1.736",
        "chance": {
            "winding": {"smooth": {"limit": near(0.71, 0.15)}},
            "median_gain": {"smooth": {"limit": near(0.25, 0.2)}},
        },
        "planes": {0: {"share": "0.628", "turns": "2.76", "steadiness": "1.00"}},
        "norm_cv": "0.029",
        "look_back": gains("0.498", "0.582", "0.603"),
        "norms": {0: "9.876", 1: "5.192", 100: "3.358", 1022: "3.858", 1023: "0.118"},
    },
    ("helix", GPT1): {
        "explained_variance_3d": {"no_first": "0.517"},
        "winding": "16.76",
        "chance": {"winding": {"smooth": {"limit": near(0.38, 0.15)}}},
        "planes": {
            0: {"turns": "79.1", "share": "0.226", "steadiness": "0.94", "share_of_scores": "0.25"},
            1: {"turns": "47.7", "share": "0.169", "steadiness": "0.90", "share_of_scores": "0.18"},
        },
        "rows_without_outliers": [0, 511],
        "look_back": gains("0.718", "0.593", "0.271"),
    },
    ("helix", MINILM): {
        "explained_variance_3d": {"no_first": "0.3634"},
        "winding": "22.48",
        "chance": {"winding": {"smooth": {"limit": near(0.54, 0.15)}}},
        "planes": {0: {"turns": "87.2", "share": "0.258", "steadiness": "1.00", "share_of_scores": "0.33"}},
        "rows_without_outliers": [1, 511],
        "look_back": gains("0.952", "0.616", "0.761"),
    },
    ("helix", STDLIB): {
        "winding": "0.451",
        "chance": {"winding": {"smooth": {"limit": near(0.79, 0.15)}}},
        "planes": {0: {"turns": "0.753", "share": "0.905", "steadiness": "0.66"}},
        "look_back": gains("-0.143", "-1.144", "-0.010"),
        "median_gain": "-0.143",
        "rows_without_outliers": [3, 254],
        "outlier_positions": {-1: 255},  # no loss reaches the last position: see the open questions
    },
    ("outliers", MINILM): {
        "clump": {"size": near(1755, 5), "named_unused": {"tokens": 994, "in_clump": near(993, 1)}},
        "in_positions": {"members": "0.287", "others": "0.052"},
    },
    ("outliers", STDLIB): {
        "clump": {"size": 125},
        "known_unused": {"count": 125, "in_clump": 125, "largest_count_in_clump": 0},
        "ends": {
            "longest": {"in_clump": 19, "by_frequency": "0.00"},
            "shortest": {"in_clump": 0, "by_frequency": "0.96"},
        },
        "in_positions": {"members": "0.662", "others": "0.529"},
    },
    ("position_reading", GPT2): {
        "plane": {"share": "0.6658"},
        "heads": {
            3: {"times_median": "16.34", "in_plane": "0.888", "best_offset": 0},
            4: {"times_median": "10.98", "in_plane": "0.883", "best_offset": 0},
            7: {"times_median": "12.66", "in_plane": "0.899", "best_offset": 0},
        },
        "effects": {"in_plane": "0.8873"},
        "rotation": "0.9998",
    },
    ("subspaces", MINILM): {
        "rivalry": "0.112",
        "intervals": {"rivalry": {0: "0.0925", 1: "0.141"}},
        "position_energy_in_tail": "0.953",
        "first_capture": {"value": "0.482", "without_mean": "0.174", "mean_in_first": "0.605"},
    },
    ("subspaces", STDLIB): {"first_capture": {"value": "0.872", "without_mean": "0.648", "mean_in_first": "0.998"}},
    ("token_svd", MINILM): {
        "overlap": {"auc": {"value": "0.960", "high": "0.757"}},
        "extremes": {"longest": {"value": "-1.44", "low": "0.15"}, "shortest": {"value": "1.60", "high": "-0.50"}},
    },
    ("token_svd", STDLIB): {
        # The mean is so long that it is the first direction wherever it points.
        "chance": {"turned_mean": {"median": "0.9999"}, "cosine_first_mean": {"limit": "0.74"}},
        "overlap": {"auc": {"value": "0.927", "high": "0.703"}},
    },
    ("zero_layer", MINILM): {
        "exceptions": 18,
        "self_share": "0.9994",
        "exceptions_by_group": {"plural": 13},
        "variants": {
            0: {"gaussian": 1},
            1: {"position": 0, "final_norm": False, "readable": "[CLS]", "absorbed": near(0.67, 0.01)},
        },
    },
}


def differences(value: Any, shown: Any, path: str = "") -> Iterator[str]:
    if isinstance(shown, dict):
        for key, part in shown.items():
            yield from differences(value[key], part, f"{path}.{key}")
        return
    if isinstance(shown, str) and not isinstance(value, str):
        value = f"{value:.{len(shown.partition('.')[2])}f}"
    if value != shown:
        yield f"{path}: {value}, not {shown}"


@pytest.mark.parametrize(("finding", "model"), VALUES)
def test_values_that_were_measured_apart(finding, model):
    measured = kept(finding, model).measured
    assert [*differences({**measured.arrays, **measured.metrics}, VALUES[finding, model])] == []


def test_gpt2s_heads_and_gains_by_the_documents_counts():
    attention, gains = (kept(name, GPT2).measured.metrics for name in ("attention", "gains"))
    heads = attention["positional_kernels"]["heads"]
    assert max(heads, key=lambda head: head["weight_at_1"]) is heads[7]
    assert 65 <= sum(head["peak_offset"] == 0 for head in heads) <= 67
    assert (len(heads), sum(head["previous_token_head"] for head in heads)) == (144, 0)
    queries, keys = (attention["top5"]["P"][name]["folded"] / attention["chance_top5"] for name in ("Q", "K"))
    assert (f"{queries:.2f}", f"{keys:.0f}") == ("0.05", "18")
    ratios = gains["consistent_channel"]["ln2"]["ratios"]
    assert [f"{ratio:.2f}" for ratio in (min(ratios), max(ratios))] == ["1.58", "2.74"]
    assert len(kept("channels", GPT2).measured.metrics["position_channels"]) == 52


def test_minilm_has_heads_that_look_back_and_heads_that_look_forward():
    measured = kept("attention", MINILM).measured
    heads, offsets = measured.metrics["positional_kernels"]["heads"], measured.arrays["kernel_offsets"].tolist()
    assert sum(head["previous_token_head"] for head in heads) >= 3
    ahead = measured.arrays["kernels"][:, offsets.index(-1)]
    assert sum(head["peak_offset"] == -1 and weight >= 0.5 for head, weight in zip(heads, ahead, strict=True)) >= 2


VERDICTS = {
    ("attention", GPT2): "fails holds untested untested untested holds untested untested fails untested holds",
    ("attention", MINILM): "holds holds fails fails fails fails fails fails holds holds holds",
    ("attention", STDLIB): "holds holds holds fails fails fails holds holds fails fails holds",
    # few-channels, tokens-avoid, quiet-where-loud
    ("channels", GPT2): "holds untested untested",
    ("channels", GPT1): "fails untested untested",
    ("channels", MINILM): "fails untested fails",
    ("channels", STDLIB): "fails untested fails",
    # frequency-channel, frequency-is-ln2, frequent-shorter
    ("frequency", STDLIB): "fails untested holds",
    ("frequency", MINILM): "fails untested fails",
    # ln1-dials-down, ln2-one-channel, ln2-mutes-channel; GPT-1 has no norm before its first attention
    ("gains", GPT2): "holds holds holds",
    ("gains", MINILM): "fails holds fails",
    ("gains", GPT1): "untested partly fails",
    ("gains", STDLIB): "fails fails fails",
    # three-components, winding, fraying, first-position, constant-norms, look-back, low-rank, untrained-rows, seam
    ("helix", GPT2): "holds holds holds holds holds holds holds holds fails",
    ("helix", GPT1): "holds holds fails fails partly holds holds fails fails",
    ("helix", MINILM): "holds holds fails holds untested holds partly fails holds",
    ("helix", STDLIB): "holds fails fails holds untested fails partly holds fails",
    ("outliers", MINILM): "holds",
    ("outliers", STDLIB): "holds",
    # position-heads, reads-main-plane
    ("position_reading", GPT2): "holds holds",
    ("position_reading", MINILM): "holds holds",
    ("position_reading", STDLIB): "fails holds",
    # keep-apart, p-in-tail, tokens-in-tail
    ("subspaces", MINILM): "holds holds fails",
    ("subspaces", STDLIB): "partly holds fails",
    # first-is-mean, space-plane
    ("token_svd", MINILM): "fails fails",
    ("token_svd", STDLIB): "holds fails",
}


@pytest.mark.parametrize(("finding", "model"), VERDICTS)
def test_verdicts(finding, model):
    expected = VERDICTS[finding, model].split()
    assert [claim.verdict for claim in kept(finding, model).claims][: len(expected)] == expected


def test_without_tensors_a_finding_is_missing_by_name():
    found = kept("attention", GPT1)
    lacks = "The checkpoint lacks h.0.attn.c_attn.weight (blocks.0.attn.q) and 23 more like it."
    assert (found.record.status, found.record.reason) == ("missing", lacks)
    assert {claim.verdict for claim in found.claims} == {"untested"}
