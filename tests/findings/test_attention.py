import numpy as np
import pytest
from scipy.stats import ortho_group

from generators.base.text import two
from generators.findings import plantings
from generators.findings.attention import FINDING as ATTENTION
from generators.findings.attention.heads import random_keys
from generators.findings.attention.measure import PANEL_PIXELS
from generators.findings.inputs import NotApplicableError
from tests import synthetic
from tests.findings.by_reference import attention_to_positions

MATRICES = {"Q": "attn.q", "K": "attn.k", "V": "attn.v", "O": "attn.o", "MLP in": "mlp.in"}
NORM_BEFORE = {"Q": "ln1", "K": "ln1", "V": "ln1", "MLP in": "ln2"}

# name -> architecture, and the size k that goes with its number of positions
MODELS = {
    "decoder": (synthetic.architecture(n_ctx=210, d_model=48, n_layer=2, n_head=2), 21),
    "encoder": (synthetic.architecture(n_ctx=120, d_model=40, n_layer=2, n_head=4, causal=False, post_norm=True), 12),
    "long": (synthetic.architecture(n_ctx=320, d_model=36, n_layer=1, n_head=2, causal=False), 30),
    "scaled": (synthetic.architecture(n_ctx=48, d_model=32, n_layer=3, n_head=2, scaled_by_layer=True), 4),
    "wide": (synthetic.architecture(n_ctx=24, d_model=64, n_layer=1, n_head=2), 2),
    "shortest": (synthetic.architecture(n_ctx=16, d_model=32, n_layer=1, n_head=2, causal=False), 1),
    "no first norm": (synthetic.architecture(n_ctx=40, d_model=24, post_norm=True), 4),
    "no first norm, both ways": (synthetic.architecture(n_ctx=40, d_model=24, causal=False, post_norm=True), 4),
}


def compute(weights, arch):
    return synthetic.measure(ATTENTION, weights, arch)


def weights_of(name):
    """Return Gaussian weights with queries and keys strong enough to give every kernel a shape of its own."""
    arch = MODELS[name][0]
    weights = synthetic.gaussian_weights(arch, seed=len(name), biases=name != "wide")
    rng = np.random.default_rng(0)
    weights["position_embedding"] *= np.linspace(2, 0.5, arch.d_model, dtype=np.float32)
    weights["token_embedding"] *= rng.permutation(np.linspace(2, 0.5, arch.d_model)).astype(np.float32)
    lacking = ("ln1.gain", "ln1.bias", "attn.q.bias", "attn.k.bias") if name.startswith("no first norm") else ()
    return without(weights, *(f"blocks.0.{role}" for role in lacking))


@pytest.fixture(scope="module", params=MODELS)
def computed(request):
    arch, k = MODELS[request.param]
    weights = weights_of(request.param)
    exact = {role: array.astype(np.float64) for role, array in weights.items()}
    return exact, arch, k, compute(weights, arch)


@pytest.fixture(scope="module")
def decoder():
    arch = MODELS["decoder"][0]
    return synthetic.gaussian_weights(arch, seed=0), arch


@pytest.fixture(scope="module")
def noise(decoder):
    """Return what is measured of a decoder without any structure."""
    return compute(*decoder)


def without(weights, *endings):
    return {role: array for role, array in weights.items() if not role.endswith(endings)}


def folded(weights, layer, name):
    gain = weights.get(f"blocks.{layer}.{NORM_BEFORE.get(name)}.gain")
    return None if gain is None else gain[:, None] * weights[f"blocks.{layer}.{MATRICES[name]}"]


@pytest.mark.parametrize("d", [16, 20, 30])
def test_a_subspace_holds_no_more_than_everything(d):
    arch = synthetic.architecture(n_ctx=400, d_model=d)
    weights = synthetic.gaussian_weights(arch, seed=0)
    m = compute(weights, arch).metrics
    assert m["shares"]["P"]["Q"][0]["raw"] == pytest.approx(1)
    assert m["chance_share"] <= 1
    assert synthetic.claims_of(ATTENTION, weights, arch)["mlp-ignores-positions"].verdict == "fails"


def test_shares_of_every_layer_and_overlaps_of_layer_0(computed):
    weights, arch, k, result = computed
    m = result.metrics
    assert (m["k"], m["chance_share"], m["chance_top5"]) == (k, k / arch.d_model, 25 / arch.d_model)
    for source, role in (("P", "position_embedding"), ("E", "token_embedding")):
        rows = weights[role][source == "P" :].astype(float)
        right = np.linalg.svd(rows - rows.mean(axis=0))[2]
        assert list(m["shares"][source]) == list(MATRICES)
        for name, matrix in MATRICES.items():
            assert [found["layer"] for found in m["shares"][source][name]] == list(range(arch.n_layer))
            for layer, found in enumerate(m["shares"][source][name]):
                both = {"raw": weights[f"blocks.{layer}.{matrix}"], "folded": folded(weights, layer, name)}
                for how, W in both.items():
                    share = None if W is None else np.sum((right[:k] @ W) ** 2) / np.sum(W**2)
                    top5 = None if W is None else np.sum((right[:5] @ np.linalg.svd(W)[0][:, :5]) ** 2)
                    assert found[how] == (share and pytest.approx(share, rel=1e-4))
                    if layer == 0:
                        assert m["top5"][source][name][how] == (top5 and pytest.approx(top5, rel=1e-3))


def test_panels_of_wide_models_are_averaged_over_blocks():
    d = 2 * PANEL_PIXELS
    arch = synthetic.architecture(n_ctx=d + 8, d_model=d, n_layer=1)
    weights = synthetic.gaussian_weights(arch, seed=0, tokens=False)
    result = compute(weights, arch)
    rows = weights["position_embedding"][1:].astype(np.float64)
    right = np.linalg.svd(rows - rows.mean(axis=0))[2]
    left = np.linalg.svd(weights["blocks.0.attn.q"].astype(np.float64))[0]
    overlaps = d * (right @ left) ** 2
    expected = [[overlaps[i : i + 2, j : j + 2].mean() for j in range(0, d, 2)] for i in range(0, d, 2)]
    np.testing.assert_allclose(result.arrays["panel_P_Q"], expected, rtol=0.02, atol=0.02)


def turned(limit, median=0.5):
    null = dict.fromkeys(("most", "least", "read"), synthetic.null(median, limit))
    return {"raw": null, "folded": null}


@pytest.mark.parametrize(("raw", "folded", "verdict", "depends"), [
    (7.5, 3.8, "holds", False), (7.5, 0.8, "fails", True), (0.8, 7.5, "holds", True), (0.8, 0.7, "fails", False),
    (7.5, None, "holds", False), (0.8, None, "fails", False),  # no norm before the first attention
])  # fmt: skip
@pytest.mark.parametrize("matrix", ["Q", "K"])
def test_reading_positions_is_judged_folded_for_each_matrix_and_says_what_depends_on_it(
    noise, matrix, raw, folded, verdict, depends
):
    chance = turned(1.1) if folded else {**turned(1.1), "folded": None}
    inside = {
        "reads": {matrix: {"raw": raw, "folded": folded}},
        "chance": {"turned": {**noise.metrics["chance"]["turned"], matrix: chance}},
    }
    measured = synthetic.measured_with(noise.metrics, inside, query_bias=None)
    claim = synthetic.by_id(ATTENTION, measured)[f"{matrix.lower()}-reads-positions"]
    assert (claim.verdict, claim.value) == (verdict, raw if folded is None else folded)
    assert (claim.chance.limit, claim.threshold) == (1.1, pytest.approx(1.1 + 0.2 * (1.1 - 0.5)))
    assert bool(claim.depends_on) is depends
    assert (f" ({two(raw)} times)." in claim.answer) is depends
    assert claim.interval is None  # weights are no sample


def test_what_queries_and_keys_read_of_positions_is_a_ratio_of_variances(computed):
    weights, arch, _, result = computed
    P = weights["position_embedding"][1:] - weights["position_embedding"][1:].mean(axis=0)
    for name in ("Q", "K"):
        for how, W in (("raw", weights[f"blocks.0.{MATRICES[name]}"]), ("folded", folded(weights, 0, name))):
            strength = None if W is None else np.sum((P @ W) ** 2) / np.sum(P**2) / (np.sum(W**2) / arch.d_model)
            assert result.metrics["reads"][name][how] == (strength and pytest.approx(strength, rel=1e-4))


SHARE_CLAIMS = {  # claim -> embedding and matrix
    "q-reads-tokens": ("E", "Q"),
    "k-reads-tokens": ("E", "K"),
    "v-reads-tokens": ("E", "V"),
    "writes-positions": ("P", "O"),
    "mlp-reads-tokens": ("E", "MLP in"),
    "mlp-ignores-positions": ("P", "MLP in"),
}
LITTLE = "mlp-ignores-positions"  # of which small values are evidence; its value is the share itself


def for_share_claims(much, little):
    """Return one row for each claim and what much of a share, or little, comes to."""
    return [(claim, *row) for claim in SHARE_CLAIMS for row in (little if claim == LITTLE else much)]


def value_of(claim, share):
    return share if claim == LITTLE else (share - 21 / 48) / (1 - 21 / 48)


@pytest.mark.parametrize(("claim", "times", "limit", "verdict"), for_share_claims(
    [(1.07, 1.05, "holds"), (1.06, 1.01, "fails"), (1.34, 1.29, "fails"), (1.36, 1.29, "holds")],
    [(0.5, 0.9, "holds"), (0.51, 0.9, "fails"), (0.5, 0.5, "fails"), (0.49, 0.5, "holds")],
))  # fmt: skip
def test_thresholds_of_shares(noise, claim, times, limit, verdict):
    m = noise.metrics
    source, name = SHARE_CLAIMS[claim]
    by_chance = m["chance_share"]
    share, raw = times * by_chance, (0.9 if claim != LITTLE else 0.01)
    null = turned(limit * by_chance, by_chance)
    first = {"layer": 0, "raw": raw, "folded": share}
    if name == "O":
        first, null["folded"] = {"layer": 0, "raw": share, "folded": None}, None
    rows = {name: [first, {"layer": 1, "raw": 0.9, "folded": 1 - share}]}
    inside = {
        "shares": {source: {**m["shares"][source], **rows}},
        "chance": {"turned": {**m["chance"]["turned"], name: null}},
    }
    found = synthetic.by_id(ATTENTION, synthetic.measured_with(m, inside, query_bias=None))[claim]
    assert (found.verdict, found.value) == (verdict, pytest.approx(value_of(claim, share)))
    needed = by_chance / 2 if claim == LITTLE else max(0.05, value_of(claim, (limit + 0.2 * (limit - 1)) * by_chance))
    assert found.threshold == pytest.approx(needed)
    assert found.baseline == found.chance.median == pytest.approx(value_of(claim, by_chance))
    assert bool(found.depends_on) is (verdict == "fails" and name != "O")
    assert found.interval is None


def test_chance_turns_each_matrix_or_reorders_its_channels(decoder):
    weights, arch = decoder
    rng = np.random.default_rng(3)
    low_rank = {name: rng.standard_normal((48, 3)) @ rng.standard_normal((3, 48)) for name in MATRICES}
    changed = {f"blocks.0.{MATRICES[name]}": W for name, W in low_rank.items()}
    chance = compute({**weights, **changed}, arch).metrics["chance"]["turned"]
    P, E = weights["position_embedding"][1:].astype(float), weights["token_embedding"].astype(float)
    P, E = P - P.mean(axis=0), E - E.mean(axis=0)
    of_P, of_E = (np.linalg.svd(rows)[2][:21] for rows in (P, E))
    for index, (name, W) in enumerate(low_rank.items()):
        nulls = (
            [ortho_group.rvs(48, random_state=np.random.default_rng([seed, index])) @ W for seed in range(200)],
            [np.random.default_rng([seed, index]).permutation(W) for seed in range(200)],
        )
        drawn = {"most": (of_P if name == "O" else of_E, 1, -2), "least": (of_P, 1, 1), "read": (P, 48, -2)}
        for number, (rows, times, at) in drawn.items():
            found = chance[name]["raw"][number]
            if number == "read" and name not in ("Q", "K"):
                assert found is None
                continue
            scale = times / np.sum(W**2) / (np.sum(P**2) if number == "read" else 1)
            values = [np.array([np.sum((rows @ one) ** 2) for one in draws]) * scale for draws in nulls]
            stricter = (max if at < 0 else min)(values, key=lambda each, at=at: np.sort(each)[at])
            assert found["draws"] == 200
            assert found["median"] == pytest.approx(np.median(stricter), abs=0.6 * stricter.std())
            assert found["limit"] == pytest.approx(np.sort(stricter)[at], abs=1.3 * stricter.std())


def test_loud_channels_that_meet_a_large_gain_are_no_reading():
    read = ("q-reads-positions", "k-reads-positions", "q-reads-tokens", "mlp-reads-tokens")
    held = []
    for seed in range(20):
        arch, rng = synthetic.architecture(n_ctx=120, d_model=48, n_head=4), np.random.default_rng(seed)
        weights = synthetic.gaussian_weights(arch, seed)
        for role in ("position_embedding", "token_embedding"):
            weights[role] = weights[role] * rng.lognormal(0, 1, 48)
        claims = synthetic.by_id(ATTENTION, compute(weights, arch))
        held += [name for name in read if claims[name].verdict == "holds"]
    assert len(held) <= 2, "of 80; 14 against matrices that are only turned"


def plain_kernel(weights, arch, layer, head):
    """Return {offset: mean attention} over the queries that count."""
    n, start = arch.n_ctx, 100 if arch.n_ctx >= 200 else 1
    attention = attention_to_positions(weights, arch, layer)[head]
    offsets = range(0 if arch.causal else start - n + 1, n)
    return {offset: np.diagonal(attention, -offset)[max(0, start - max(offset, 0)) :].mean() for offset in offsets}


def check_kernel(result, arch, layer, head, expected):
    index = layer * arch.n_head + head
    described = result.metrics["positional_kernels"]["heads"][index]
    assert (described["layer"], described["head"]) == (layer, head)
    peak = max(expected, key=expected.__getitem__)
    assert described["peak_offset"] == peak
    assert described["weight_at_1"] == pytest.approx(expected[1], rel=1e-3)
    assert described["previous_token_head"] is bool(peak == 1 and expected[1] >= 0.5)
    offsets, kernels = result.arrays["kernel_offsets"], result.arrays["kernels"]
    assert offsets.tolist() == [o for o in sorted(expected) if abs(o) <= 32]
    np.testing.assert_allclose(kernels[index], [expected[o] for o in offsets], rtol=2e-3, atol=1e-7)


def test_kernels_by_an_explicit_softmax(computed):
    weights, arch, _, result = computed
    for layer, head in ((0, arch.n_head - 1), (arch.n_layer - 1, 0)):
        check_kernel(result, arch, layer, head, plain_kernel(weights, arch, layer, head))
    n = arch.n_ctx
    assert len(result.metrics["positional_kernels"]["heads"]) == arch.n_layer * arch.n_head
    uniform = dict(zip(result.arrays["kernel_offsets"].tolist(), result.arrays["uniform_kernel"], strict=True))
    for offset, seen in uniform.items():
        asked = range(max(100 if n >= 200 else 1, offset), n + min(0, offset))
        assert seen == pytest.approx(
            np.mean([1 / (query + 1) if arch.causal else 1 / n for query in asked]), rel=1e-5
        )


@pytest.mark.parametrize("n", [40, 256])
@pytest.mark.parametrize(("causal", "offsets"), [(True, [1, 0, 3, 1]), (False, [1, -1, 0, -4])])
def test_planted_heads_peak_where_they_were_planted(n, causal, offsets):
    arch = synthetic.architecture(n_ctx=n, d_model=64, causal=causal)
    planted = dict(zip([(0, 0), (0, 1), (1, 0), (1, 1)], offsets, strict=True))
    weights = plantings.with_positional_heads(synthetic.gaussian_weights(arch, seed=0), arch, planted)
    heads = compute(weights, arch).metrics["positional_kernels"]["heads"]
    assert [head["peak_offset"] for head in heads] == offsets
    assert [head["previous_token_head"] for head in heads] == [offset == 1 for offset in offsets]
    assert [head["weight_at_1"] > 0.95 for head in heads] == [offset == 1 for offset in offsets]


def test_chance_of_a_head_is_its_weight_on_keys_at_random(decoder):
    weights, arch = decoder
    result = compute(without(weights, "token_embedding"), arch)
    keys = random_keys(np.arange(100, 210), 210, causal=True)
    attention = np.concatenate([attention_to_positions(weights, arch, layer) for layer in range(2)])
    best = np.take_along_axis(attention[:, 100:], keys[None], axis=2).mean(axis=1).max(axis=0)
    chance = result.metrics["chance"]["previous_token"]
    assert chance["draws"] == 100
    assert chance["median"] == pytest.approx(np.median(best), rel=1e-3)
    assert chance["limit"] == pytest.approx(best.max(), rel=1e-3)


def test_interval_of_the_best_head():
    arch = synthetic.architecture(n_ctx=128, n_layer=1)
    weights = plantings.with_positional_heads(synthetic.gaussian_weights(arch, 0, tokens=False), arch, {(0, 1): 1})
    weights["position_embedding"][64:] = np.random.default_rng(0).standard_normal((64, 48))
    at_1 = np.diagonal(attention_to_positions(weights, arch, 0)[1], -1)
    assert at_1[:63].mean() > 0.9 > 0.2 > at_1[64:].mean()
    kernels = compute(weights, arch).metrics["positional_kernels"]
    low, high = kernels["interval_of_best"]
    assert kernels["heads"][1]["weight_at_1"] == pytest.approx(at_1.mean(), rel=1e-3)
    assert low < at_1.mean() < high
    assert (high - low) / 2 > 2 * 1.96 * at_1.std() / np.sqrt(127)


READS_TOKENS = {claim for claim in SHARE_CLAIMS if claim.endswith("reads-tokens")}
OF_POSITIONS = {claim for claim in SHARE_CLAIMS if claim.endswith("positions")}
OF_Q, OF_K = ({f"{name}-reads-positions", f"{name}-reads-tokens"} for name in "qk")
OF_MLP = {"mlp-reads-tokens", "mlp-ignores-positions"}
KERNELS = {"previous-token-head", "previous-token-with-tokens"}


def untested(result):
    synthetic.assert_of_its_type(ATTENTION, result)
    synthetic.assert_drawn_and_described(ATTENTION, result)
    return {claim for claim, verdict in synthetic.verdicts(ATTENTION, result).items() if verdict == "untested"}


@pytest.mark.parametrize(("role", "source", "silent"), [
    ("token_embedding", "E", READS_TOKENS | {"previous-token-with-tokens"}),
    ("position_embedding", "P", OF_POSITIONS | KERNELS | {"q-reads-positions", "k-reads-positions"}),
])  # fmt: skip
def test_without_one_embedding_the_other_is_judged(decoder, role, source, silent):
    weights, arch = decoder
    result = compute(without(weights, role), arch)
    assert untested(result) == silent
    assert [name for name, shares in result.metrics["shares"].items() if shares is None] == [source]
    assert (result.metrics["positional_kernels"] is None) == (source == "P")
    assert "token_kernels" not in {**result.arrays, **result.tables}
    assert f"in_{source}" not in result.tables["shares"].columns


def test_without_embeddings_there_is_nothing_to_compare(decoder):
    weights, arch = decoder
    with pytest.raises(NotApplicableError, match="neither tokens nor a table"):
        compute(without(weights, "position_embedding", "token_embedding"), arch)


@pytest.mark.parametrize(("absent", "layers"), [("mlp.in", []), ("blocks.0.mlp.in", [1])])
def test_without_the_first_mlp_only_its_claims_are_untested(decoder, absent, layers):
    weights, arch = decoder
    result = compute(without(weights, absent), arch)
    assert untested(result) == OF_MLP
    assert [row["layer"] for row in result.metrics["shares"]["P"].get("MLP in", [])] == layers


@pytest.mark.parametrize(("role", "silent"), [
    ("ln1.gain", OF_Q | OF_K | {"v-reads-tokens"}), ("ln2.gain", OF_MLP), ("attn.q", OF_Q),
    ("attn.v", {"v-reads-tokens"}), ("attn.o", {"writes-positions"}), ("mlp.in", OF_MLP),
])  # fmt: skip
def test_zeros_have_no_share(decoder, role, silent):
    weights, arch = decoder
    changed = {f"blocks.0.{role}": np.zeros_like(weights[f"blocks.0.{role}"])}
    result = compute({**without(weights, "q.bias"), **changed}, arch)
    assert untested(result) == silent | {"query-bias-channel"}
    if role == "attn.q":  # heads that see nothing attend alike
        np.testing.assert_allclose(result.arrays["kernels"][0], result.arrays["uniform_kernel"], rtol=1e-5)


def test_directions_that_are_rounding_are_not_read(decoder, noise):
    weights, arch = decoder
    rng = np.random.default_rng(3)
    flat = rng.standard_normal((arch.n_ctx, 3)) @ rng.standard_normal((3, arch.d_model))
    result = compute({**weights, "position_embedding": flat.astype(np.float32)}, arch)
    claims = synthetic.by_id(ATTENTION, result)
    assert claims["mlp-ignores-positions"].verdict == "untested"
    assert claims["writes-positions"].answer.startswith("P has only 3 directions beyond rounding errors")
    assert "directions_of_P" not in noise.metrics


def test_embeddings_of_a_width_of_their_own_are_not_compared(decoder):
    weights, arch = decoder
    narrow = {role: weights[role][:, :24] for role in ("position_embedding", "token_embedding")}
    with pytest.raises(NotApplicableError, match="The embeddings have 24 channels and the stream has 48"):
        compute({**weights, **narrow}, arch)


def test_tables_hold_what_metrics_do(noise):
    metrics, tables = noise.metrics, noise.tables
    for row in tables["shares"].named():
        for source in ("P", "E"):
            share = metrics["shares"][source][row["matrix"]][row["layer"]]
            assert (row[f"in_{source}"], row[f"in_{source}_folded"]) == (share["raw"], share["folded"])
    for row in tables["top5"].named():
        both = metrics["top5"][row["embedding"]][row["matrix"]]
        assert (row["raw"], row["folded"], row["chance"]) == (*both.values(), 25 / 48)
    of_Q = two(metrics["top5"]["P"]["Q"]["raw"] * 48 / 25)
    assert f"Q {of_Q}, K " in synthetic.alts(ATTENTION, noise)["overlap-panels"]
