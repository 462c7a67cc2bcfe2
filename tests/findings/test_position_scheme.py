import math
from dataclasses import replace

import numpy as np
import pytest

from generators.base.architecture import Architecture, Buckets
from generators.checkpoint.families import choose_family
from generators.checkpoint.positions import alibi_slopes, rotary, split_sinusoids
from generators.checkpoint.reading import read_architecture
from generators.findings.inputs import Inputs
from generators.findings.position_scheme import FINDING
from generators.findings.position_scheme.measure import bucketed, permuted
from generators.site.words import caption
from tests import synthetic

PLAIN = synthetic.architecture(n_ctx=512, d_model=64, n_layer=6, n_head=4)
T5 = Buckets(count=32, max_distance=128, both_ways=True)
T5_DECODER = replace(T5, both_ways=False)
TABLE = np.random.default_rng(0).standard_normal((512, 64))
BIAS = "blocks.0.attn.relative_bias"


def measured(arch: Architecture, **weights: np.ndarray):
    return FINDING.measure(Inputs(weights, arch))


def biased(table, buckets=T5):
    arch = replace(PLAIN, positions="relative", n_ctx=None, n_head=table.shape[1], causal=not buckets.both_ways)
    return FINDING.measure(Inputs({BIAS: table.astype(np.float32)}, replace(arch, buckets=buckets)))


# Which scheme

OF_SINES, TURNS = split_sinusoids(512, 64).astype(np.float16), (rotary(16, 1e4, 512),) * 6
SCHEMES = {  # what differs in the architecture, the table, and schemes
    "learned": ({}, TABLE, ["learned"]),
    "not here": ({}, None, ["learned"]),
    "all alike": ({}, 0 * TABLE, ["none"]),
    "learned, but of sines": ({}, OF_SINES, ["formula"]),
    "formula": ({"positions": "formula"}, TABLE, ["formula"]),
    "rotary": ({"positions": "rotary", "rotary": TURNS}, None, ["rotary"]),
    "alibi": ({"positions": "alibi", "slopes": alibi_slopes(4)}, None, ["alibi"]),
    "relative": ({"positions": "relative", "buckets": T5}, None, ["relative"]),
    "disentangled": ({"positions": "relative"}, None, ["disentangled"]),
    "both": ({"positions": "relative"}, TABLE, ["learned", "disentangled"]),
    "none": ({"positions": "none"}, None, ["none"]),
    "MPNet": ({"buckets": T5}, TABLE, ["learned", "relative"]),
}


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_is_named(name):
    changed, table, schemes = SCHEMES[name]
    result = measured(replace(PLAIN, **changed), **({} if table is None else {"position_embedding": table}))
    assert result.metrics["schemes"] == schemes
    assert len(FINDING.figures(result)) == (name in ("rotary", "alibi"))


def test_windows_are_counted():
    result = measured(replace(PLAIN, windows=(None, 64, 64, None, 32, None)))
    assert result.metrics["windows"] == [{"width": 32, "layers": 1}, {"width": 64, "layers": 2}]


# Rotations

OF_256 = {"original_max_position_embeddings": 256}
SCALINGS = {
    "default": {},
    "linear": {"factor": 4.0},
    "dynamic": {"factor": 2.0},
    "llama3": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **OF_256},
    "yarn": {"factor": 8.0, **OF_256},
    "longrope": {
        "factor": 4.0,
        "short_factor": np.linspace(1, 2, 16).tolist(),
        "long_factor": np.linspace(4, 9, 16).tolist(),
        "original_max_position_embeddings": 512,
    },
}


@pytest.mark.parametrize("kind", SCALINGS)
def test_periods_are_those_of_llama_itself(kind):
    pytest.importorskip("transformers")
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    rules = {"rope_type": kind, "rope_theta": 10_000.0, **SCALINGS[kind]}
    sizes = {"hidden_size": 128, "num_attention_heads": 4, "num_hidden_layers": 2, "max_position_embeddings": 2048}
    config = LlamaConfig(**sizes, rope_parameters=rules)
    itself = LlamaRotaryEmbedding(config)
    written = config.to_dict()
    arch = read_architecture(written, choose_family(written, None))
    result = measured(arch)
    periods = np.array(result.tables["rotations"].column("period"))
    np.testing.assert_allclose(periods, 2 * math.pi / itself.inv_freq.numpy(), rtol=1e-5)
    assert arch.rotary[0].strength == pytest.approx(itself.attention_scaling)
    assert arch.rotary[0].scaling == kind
    assert result.metrics["rotations"][0]["layers"] == [0, 1]
    assert result.tables["rotations"].column("turns") == pytest.approx(2048 / periods)


def test_part_of_a_head_and_some_layers():
    turns = rotary(4, 100.0, 512)
    arch = replace(PLAIN, positions="rotary", rotary=(turns, turns, None) * 2)
    result = measured(arch)
    (rotation,) = result.metrics["rotations"]
    assert (rotation["layers"], rotation["share_of_head"]) == ([0, 1, 3, 4], 0.25)
    assert (rotation["shortest"], rotation["longest"]) == pytest.approx((2 * math.pi, 20 * math.pi))
    assert set(result.tables["rotations"].column("layers")) == {"0-1, 3-4"}
    assert (rotation["pairs"], result.metrics["d_head"], result.metrics["n_layers"]) == (2, 16, 6)


def test_layers_of_different_bases_and_windows_are_distinguished():
    near, far = rotary(16, 1e4, 512), rotary(16, 1e6, 512)
    kinds = (near, near, far) * 2
    result = measured(replace(PLAIN, positions="rotary", rotary=kinds, windows=(32, 32, None) * 2))
    first, second = result.metrics["rotations"]
    assert (first["layers"], first["window"], second["layers"], second["window"]) == ([0, 1, 3, 4], 32, [2, 5], None)
    assert {"periods_0", "periods_1"} == set(result.arrays)


@pytest.mark.parametrize("heads", [8, 12])
def test_half_distances_are_those_of_the_paper_s_slopes(heads):
    slopes = [2.0**-k for k in range(1, 9)] + [2.0 ** -(k + 0.5) for k in range(heads - 8)]
    result = measured(replace(PLAIN, positions="alibi", n_ctx=None, n_head=heads, slopes=alibi_slopes(heads)))
    found = result.metrics["slopes"]
    assert [head["slope"] for head in found["heads"]] == pytest.approx(slopes)
    for head in found["heads"]:
        assert math.exp(-head["slope"] * head["half_distance"]) == pytest.approx(0.5)
    assert found["longest_half"] == pytest.approx(math.log(2) * 256)
    assert found["shortest_half"] == pytest.approx(math.log(2) / max(slopes))


def planted(kinds, buckets=T5, noise=0.1, seed=0):
    """Return a table in which a head's bias falls with the log of distance (-1), grows (1), or does neither (0)."""
    rng = np.random.default_rng(seed)
    rows, nearest = bucketed(buckets)
    table = noise * rng.standard_normal((buckets.count, len(kinds)))
    table[rows] += np.log1p(np.abs(nearest))[:, None] * np.array(kinds)
    return table


@pytest.mark.parametrize("buckets", [T5, T5_DECODER], ids=["both ways", "causal"])
def test_planted_preferences_are_recovered(buckets):
    found = biased(planted([-1, 1, -1, 0.0], buckets, noise=0.01), buckets).metrics["biases"]
    assert [head["prefers"] for head in found["heads"]][:3] == ["near", "far", "near"]
    assert found["far"] + found["near"] in (3, 4)


@pytest.mark.parametrize("buckets", [T5, T5_DECODER], ids=["both ways", "causal"])
def test_biases_without_order_prefer_nothing(buckets):
    """One head in a hundred passes on either side: of 1,000 about ten, hardly ever thirty."""
    rng = np.random.default_rng(1)
    found = biased(rng.standard_normal((32, 1000)), buckets).metrics["biases"]
    assert max(found["near"], found["far"]) <= 25
    assert found["near"] + found["far"] >= 3
    table = planted([-1] * 200, buckets)
    near, permuted = (
        biased(rows, buckets).metrics["biases"]["near"] for rows in (table, rng.permuted(table, axis=0))
    )
    assert near == 200
    assert permuted <= 8


def test_equal_biases_prefer_nothing():
    found = biased(np.ones((32, 3))).metrics["biases"]
    assert [head["prefers"] for head in found["heads"]] == ["neither"] * 3
    assert [head["rho"] for head in found["heads"]] == [0, 0, 0]


def test_figures_show_the_biases_of_every_bucket_that_is_used():
    """T5's bucket 16, of keys after the query at distance 0, is never used; a causal table has nothing ahead."""
    result = biased(np.arange(64.0).reshape(32, 2))
    offsets = result.arrays["bias_offsets"].tolist()
    assert len(offsets) == 31
    assert offsets == sorted(offsets)
    assert offsets[15 - 8 : 15 + 9] == [-8, *range(-7, 8), 8]
    assert (result.arrays["biases"][0][15], result.arrays["biases"][0][14]) == (0, 2 * 17)
    assert 2 * 16 not in result.arrays["biases"][0]
    causal = biased(planted([-1, 1], T5_DECODER), T5_DECODER)
    assert causal.arrays["bias_offsets"].min() == 0
    assert causal.arrays["biases"].shape == (2, 32)


def test_what_permuted_buckets_give_is_symmetric_and_wide():
    """Of 31 buckets 98 % lie within 0.42, of the normal approximation 2.33 / sqrt(30)."""
    low, high = permuted(bucketed(T5)[1])
    assert low == pytest.approx(-2.33 / math.sqrt(30), abs=0.04)
    assert high == pytest.approx(2.33 / math.sqrt(30), abs=0.04)


@pytest.mark.parametrize("name", ["rotary", "alibi", "relative"])
def test_the_figure_s_words_have_the_numbers_of_the_model(name):
    result = biased(planted([-1, 1])) if name == "relative" else measured(replace(PLAIN, **SCHEMES[name][0]))
    (figure,) = FINDING.figures(result)
    figure.draw()
    alt = caption("position_scheme", figure.name, result).alt
    assert {"rotary": "8 pairs", "alibi": "4 heads", "relative": "1 prefer near keys and 1 far ones"}[name] in alt
