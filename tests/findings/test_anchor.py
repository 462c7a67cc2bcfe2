from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from generators.findings import plantings
from generators.findings.anchor import FINDING
from generators.findings.inputs import Inputs
from generators.findings.measured import KnownOfModel
from tests import synthetic
from tests.findings.stand_in import StandIn, measure_run

N, D, LAYERS, CHANNEL = 120, 48, 2, 7
ARCH = synthetic.architecture(n_ctx=N, d_model=D, n_layer=LAYERS)
claims_of = partial(synthetic.by_id, FINDING)
LINE = plantings.embed(np.linspace(-1, 1, N)[:, None], D)


def attend(share):
    """Return attention whose head 1 of layer 1 gives the first token this share more than chance."""

    def of(layer, ids, silenced):
        n = ids.shape[1]
        scores = np.random.default_rng(layer).standard_normal((len(ids), 2, n, n))
        weights = softmax(np.where(np.triu(np.ones((n, n), bool), 1), -np.inf, scores), axis=-1)
        if layer == 1:
            weights[:, 1] *= 1 - share
            weights[:, 1, :, 0] += share
        return weights

    return of


def states(*sizes, d=D):
    """Return a stream in which one channel has these sizes at position 0, by stage; None is as it comes."""

    def of(stage, ids):
        made = np.random.default_rng([0, stage]).standard_normal((*ids.shape, d))
        if sizes[stage] is not None:
            made[:, 0, CHANNEL] = sizes[stage]
        return made

    return of


def measured(share=0.0, size=1.0, P=LINE):
    given = {"attend": attend(share), "states": states(None, size, None), "affords": 16}
    return measure_run(FINDING, ARCH, P, {"position_embedding": P}, **given)


@pytest.mark.parametrize(("share", "verdict"), [(0.5, "holds"), (0.2, "partly"), (0.0, "fails")])
def test_a_planted_sink_is_found(share, verdict):
    result = measured(share)
    expected = share + (1 - share) * result.metrics["uniform"]
    assert result.metrics["heads"][3]["on_first"] == pytest.approx(expected, abs=0.01)
    assert claims_of(result)["head-rests-on-first"].verdict == verdict


@pytest.mark.parametrize(("size", "verdict"), [(200.0, "holds"), (30.0, "fails"), (1.0, "fails")])
def test_a_planted_massive_activation_is_found(size, verdict):
    result = measured(size=size)
    assert claims_of(result)["massive-at-first"].verdict == verdict
    if verdict == "holds":
        row = result.metrics["stages"][1]
        assert row["channel"] == CHANNEL
        assert row["over_median"] == pytest.approx(size / 0.6745, rel=0.03)
        assert row["over_elsewhere"] == pytest.approx(size / np.sqrt(2 / np.pi), rel=0.03)


def test_channel_large_everywhere_is_not_massive():
    def large(stage, ids):
        made = np.random.default_rng(stage).standard_normal((*ids.shape, D))
        made[..., CHANNEL] += 200
        return made

    claims = claims_of(measure_run(FINDING, ARCH, attend=attend(0), states=large, affords=16))
    assert claims["massive-at-first"].verdict == "untested", "other positions reach the threshold, too"
    assert claims["position-0-needed"].verdict == "untested"


def test_a_row_that_the_model_needs_is_found():
    P = LINE.copy()
    P[0] += 40 * LINE.std()
    result = measured(P=P)
    assert result.metrics["rows"]["share"] > 0.5
    assert result.metrics["rows"]["few_first"] > max(result.metrics["rows"]["others"])
    assert claims_of(result)["position-0-needed"].verdict == "holds"


WIDE = synthetic.architecture(n_ctx=N, d_model=104, n_layer=LAYERS)
HEADS = synthetic.architecture(n_ctx=N, d_model=D, n_layer=LAYERS, n_head=4, vocab_size=60)
SPECIAL = (0, 1, 2)


def sinks(share, *, by_content):
    """Return attention of which every head gives the first token a share: always, or where tokens differ."""

    def of(layer, ids, silenced):
        n = ids.shape[1]
        weights = np.tile(np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None], (len(ids), 4, 1, 1))
        shares = np.where((ids[:, 2:] != ids[:, 1:-1]).any(axis=1), share, 0 if by_content else share)
        weights *= 1 - shares[:, None, None, None]
        weights[..., 0] += shares[:, None, None]
        return weights

    return of


def with_sinks(attend, bos=None):
    run: Any = StandIn(HEADS, None, kind=None, length=N, affords=99, attend=attend)
    run.bos = bos
    return FINDING.measure(Inputs({}, HEADS, synthetic.vocabulary(60, special=SPECIAL), run=run))


def with_table(found):
    """Return measurements as those of a model that has a table of positions."""
    return synthetic.measured_with(found.metrics, rows=measured(0.5).metrics["rows"])


@pytest.mark.parametrize(
    ("share", "by_content", "verdict"), [(0.5, False, "holds"), (0.5, True, "fails"), (0.1, False, "untested")]
)
def test_sinks_by_position_and_by_content_are_told_apart(share, by_content, verdict):
    found = with_sinks(sinks(share, by_content=by_content), bos=1)
    shares = {(row["tokens"], row["with_bos"]): row["share"] for row in found.metrics["first_token"]["rows"]}
    differing = float(share > 0.3)
    expected = {"text": differing, "random": differing, "repeated": 0.0 if by_content else differing}
    assert shares == {(kind, bos): found for kind, found in expected.items() for bos in (False, True)}
    assert claims_of(found)["sink-by-position"].verdict == "untested", (
        "without a table, equal tokens have equal states"
    )
    assert claims_of(with_table(found))["sink-by-position"].verdict == verdict


def test_what_sequences_hold():
    seen = []

    def attend(layer, ids, silenced):
        seen.append(ids)
        return sinks(0.5, by_content=False)(layer, ids, silenced)

    with_sinks(attend, bos=1)
    with_bos, bare, begun, equal, equal_begun = (ids for ids in seen[LAYERS::LAYERS])
    assert {ids.shape[1] for ids in seen[LAYERS:]} == {64}
    assert all((ids[:, 0] == 1).all() for ids in (with_bos, begun, equal_begun))
    np.testing.assert_array_equal(begun[:, 1:], bare[:, :-1])
    assert not np.isin(bare, SPECIAL).any()
    assert len(np.unique(bare)) > 50
    assert (equal == equal[:, :1]).all()
    run = StandIn(HEADS, None, length=N)
    assert np.bincount(run.text.ids)[equal[:, 0]].min() >= np.sort(np.bincount(run.text.ids))[-8]


def test_a_token_that_is_not_special_begins_no_text():
    rows = with_sinks(sinks(0.5, by_content=False), bos=7).metrics["first_token"]["rows"]
    assert not any(row["with_bos"] for row in rows)


def test_an_encoder_has_no_sink_by_position():
    encoder = replace(HEADS, causal=False)
    found = measure_run(FINDING, encoder, attend=sinks(0.5, by_content=False), affords=16)
    assert found.metrics["first_token"] is None
    assert claims_of(found)["sink-by-position"].verdict == "untested"


def with_massive(size=200.0, **planted):
    sizes = states(0.4 * size, size, 0.1 * size, d=WIDE.d_model)
    return measure_run(FINDING, WIDE, states=sizes, affords=99, **planted)


@pytest.mark.parametrize(("size", "verdict"), [(70_000.0, "holds"), (40_000.0, "partly"), (200.0, "fails")])
def test_an_activation_beyond_float16_is_found(size, verdict):
    found = with_massive(size)
    row = found.metrics["largest"][1]
    assert (row["size"], row["channel"], row["position"]) == (size, CHANNEL, 0)
    assert row["over_median"] == pytest.approx(size / 0.6745, rel=0.03)
    claim = claims_of(found)["beyond-float16"]
    assert (claim.verdict, "begin at layer 1" in claim.answer) == (verdict, verdict == "holds")


@pytest.mark.parametrize(
    ("costs", "verdict"),
    [({CHANNEL: 0.5}, "holds"), ({CHANNEL: 0.05}, "partly"), ({CHANNEL: 0.5, 9: 0.3}, "fails"), ({9: 0.5}, "fails")],
)
def test_a_loss_that_hangs_on_one_number_is_found(costs, verdict):
    found = with_massive(costs=costs)
    one = found.metrics["one_number"]
    assert (one["layer"], one["channel"], one["position"]) == (1, CHANNEL, 0)
    assert len(one["others"]) == 99
    assert one["zeroed"]["mean"] == pytest.approx(costs.get(CHANNEL, 0), rel=0.05, abs=1e-9)
    assert claims_of(found)["loss-hangs-on-one"].verdict == verdict


def test_where_a_norm_bounds_activations_none_could_be_large():
    claims = claims_of(replace(with_massive(), model=KnownOfModel(post_norm=True)))
    bounded = ("massive-at-first", "beyond-float16", "loss-hangs-on-one")
    assert {claims[name].verdict for name in bounded} == {"untested"}


def test_a_channel_that_is_massive_at_the_first_token_alone_is_judged_though_another_layer_has_a_larger_one():
    metrics = measured(size=200.0).metrics
    row, _, last = metrics["stages"]
    alone = {**row, "over_median": 120.0, "over_elsewhere": 40.0}
    larger = {**row, "over_median": 900.0, "over_elsewhere": 2.0}
    claim = claims_of(synthetic.measured_with(metrics, stages=[alone, larger, last]))["massive-at-first"]
    assert (claim.verdict, claim.value) == ("holds", 120.0)


def test_without_a_loss_or_with_few_channels_nothing_hangs_on_one():
    without = with_massive(predicts=False)
    assert without.metrics["one_number"] is None
    for found in (without, measured(size=200.0)):
        assert claims_of(found)["loss-hangs-on-one"].verdict == "untested"


def examples():
    yield measured(0.5, 200.0)
    yield with_table(with_sinks(sinks(0.5, by_content=False)))
    yield with_massive()
