from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from generators.findings import plantings
from generators.findings.heads import FINDING
from generators.findings.measured import KnownOfModel
from tests import synthetic
from tests.findings.stand_in import measure_run

N, D, LAYERS = 120, 48, 2
ARCH = synthetic.architecture(n_ctx=N, d_model=D, n_layer=LAYERS)
HEADS = LAYERS * ARCH.n_head
WEIGHTS = synthetic.gaussian_weights(ARCH, 0)
claims_of = partial(synthetic.by_id, FINDING)


LINE = plantings.embed(np.linspace(-1, 1, N)[:, None], D)


def measured(looks, weights=WEIGHTS, kind="table", arch=ARCH, P=LINE):
    given = {} if P is None else {"position_embedding": P}
    return measure_run(FINDING, arch, P, {**weights, **given}, kind=kind, looks=looks)


def test_a_planted_head_is_found_with_its_weight():
    result = measured([0.0, 0.0, 0.0, 0.8])
    uniform = result.metrics["uniform"]
    assert uniform == pytest.approx(np.mean(1 / np.arange(2, N + 1)))
    row = result.metrics["heads"][3]
    assert row["on_text"] == pytest.approx(0.8 + 0.2 * uniform, abs=1e-5)
    assert row["strongest_offset"] == 1
    assert row["removed"] == pytest.approx(uniform, abs=1e-5)
    assert result.metrics["heads"][0]["on_text"] == pytest.approx(uniform, abs=1e-5)
    claims = claims_of(result)
    assert claims["previous-token-on-text"].verdict == "holds"
    assert claims["previous-token-inexact"].verdict == "holds"
    assert claims["previous-token-inexact"].baseline < 0.1


@pytest.mark.parametrize(("share", "verdict"), [(0.55, "holds"), (0.4, "partly"), (0.2, "fails")])
def test_the_claim_of_a_previous_token_head(share, verdict):
    claims = claims_of(measured([share]))
    assert claims["previous-token-on-text"].verdict == verdict
    assert (claims["previous-token-inexact"].verdict == "untested") == (verdict == "fails")


def test_heads_that_need_exact_positions_and_random_tokens_seen_twice():
    result = measured([0.9], P=np.random.default_rng(0).standard_normal((N, D)))
    assert claims_of(result)["previous-token-inexact"].verdict == "fails"
    encoder = replace(result, model=KnownOfModel(causal=False))  # which sees both sides of a group
    assert claims_of(encoder)["previous-token-inexact"].verdict == "untested"
    assert [row["positions"] for row in result.metrics["repeated"]] == ["as they are", "in groups", "removed"]
    assert all(0 <= row["share"] <= 1 for row in result.metrics["repeated"])


def test_an_encoder_looks_both_ways():
    arch = synthetic.architecture(n_ctx=N, d_model=D, n_layer=LAYERS, causal=False)
    result = measured([0.5], arch=arch)
    assert result.arrays["offsets"].tolist() == list(range(-16, 17))
    assert result.metrics["repeated"] is None
    assert result.metrics["uniform"] == 1 / N
    assert result.metrics["heads"][0]["on_text"] == pytest.approx(0.5 + 0.5 / N, abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "P", "patterns"), [("rotary", None, 3), (None, None, 1), ("table", np.zeros((N, D)), 1)]
)
def test_without_a_table_that_varies_there_is_no_forecast(kind, P, patterns):
    weights = {role: array for role, array in WEIGHTS.items() if role != "position_embedding"}
    result = measured([0.9], weights, kind, P=P)
    claims = claims_of(result)
    assert claims["positions-foretell-heads"].verdict == "untested"
    assert claims["previous-token-inexact"].verdict == ("untested" if patterns == 1 else "holds")
    assert len(result.arrays["attention"]) == patterns
    assert P is None or [row["positions"] for row in result.metrics["repeated"]] == ["as they are"]
    synthetic.assert_drawn_and_described(FINDING, result)


def test_weights_that_foretell_text():
    heads = [(layer, head) for layer in range(LAYERS) for head in range(ARCH.n_head)]
    planted = plantings.with_positional_heads(WEIGHTS, ARCH, dict.fromkeys(heads[: HEADS // 2], 1))
    looks = [0.9 - 0.05 * i if i < HEADS // 2 else 0.02 * i for i in range(HEADS)]
    result = measured(looks, planted, P=planted["position_embedding"])
    kernel = [row["by_position_alone"] for row in result.metrics["heads"]]
    assert min(kernel[: HEADS // 2]) > max(kernel[HEADS // 2 :])
    assert result.metrics["forecast"]["rho"] > 0.5
