"""Weights without structure, and what findings make of weights; what is planted in them: `findings/plantings.py`."""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from scipy.ndimage import gaussian_filter1d
from scipy.signal import lfilter

from generators.base.architecture import Architecture
from generators.findings.contract import Finding
from generators.findings.inputs import Inputs, NotApplicableError
from generators.findings.judging import Claim
from generators.findings.measured import Measurements
from generators.site.words import caption
from generators.tokens.readable import readable_form
from generators.tokens.vocabulary import ModelVocabulary, Token, assemble

Array = np.ndarray
Weights = dict[str, Array]
VOCABULARY = 400
HOSTILE = (  # texts that break pages and figures
    "$x^2$", "\\alpha$", "a_b^c", "<b>&amp;</b>", "漢字", "שלום", "\n\t", "{}%s", "", "e\u0301", "`*_`",
)  # fmt: skip


def architecture(
    n_ctx: int = 256, d_model: int = 48, n_layer: int = 2, n_head: int = 2, **others: Any
) -> Architecture:
    sizes = {"n_layer": n_layer, "n_head": n_head, "d_model": d_model, "n_ctx": n_ctx, "d_head": d_model // n_head}
    usual = {"vocab_size": VOCABULARY, "norm_eps": 1e-5, "causal": True, "post_norm": False}
    return Architecture(family="synthetic", **(sizes | usual | others))


def by_id(finding: Finding, measured: Measurements) -> dict[str, Claim]:
    return {claim.id: claim for claim in finding.claims(measured)}


def verdicts(finding: Finding, measured: Measurements) -> dict[str, str]:
    return {claim.id: claim.verdict for claim in finding.claims(measured)}


def claims_of(finding: Finding, weights: Mapping[str, Array], arch: Architecture | None = None) -> dict[str, Claim]:
    return by_id(finding, measure(finding, weights, arch))


def measure(
    finding: Finding,
    weights: Mapping[str, Array],
    arch: Architecture | None = None,
    vocabulary: Any = None,
    frequencies: Sequence[Any] = (),
) -> Measurements:
    return finding.measure(Inputs(weights, arch or architecture(), vocabulary, tuple(frequencies)))


def gaussian_weights(
    arch: Architecture,
    seed: int,
    *,
    tokens: bool = True,
    biases: bool = True,
    vocab_size: int = VOCABULARY,
) -> Weights:
    """Return weights without any structure, float32 as checkpoints are; gains are Gaussian about 1."""
    rng = np.random.default_rng(seed)
    d = arch.d_model

    def noise(*shape: int) -> Array:
        return rng.standard_normal(shape, dtype=np.float32)

    weights = {"position_embedding": noise(arch.n_ctx, d)}
    if tokens:
        weights["token_embedding"] = noise(vocab_size, d)
    for i in range(arch.n_layer):
        for norm in ("ln1", "ln2"):
            weights[f"blocks.{i}.{norm}.gain"] = 1 + 0.2 * noise(d)
            if biases:
                weights[f"blocks.{i}.{norm}.bias"] = 0.1 * noise(d)
        for name in "qkvo":
            weights[f"blocks.{i}.attn.{name}"] = noise(d, d) / np.float32(np.sqrt(d))
            if biases and name != "o":
                weights[f"blocks.{i}.attn.{name}.bias"] = 0.1 * noise(d)
        weights[f"blocks.{i}.mlp.in"] = noise(d, 4 * d)
    added = np.random.default_rng([seed, 1])  # of its own, so that what is above stays as it was
    for i in range(arch.n_layer):
        weights[f"blocks.{i}.mlp.out"] = added.standard_normal((d, 4 * d), dtype=np.float32)
    return weights


def vocabulary(
    size: int, texts: Mapping[int, str | bytes] | None = None, special: Iterable[int] = ()
) -> ModelVocabulary:
    """Return a vocabulary of these texts, and words of other ids; `special` ids are special."""
    of = {i: f"w{i}x" for i in range(size)} | dict(texts or {})
    raw = {i: text if isinstance(text, bytes) else text.encode() for i, text in of.items()}
    marked = set(special)
    return assemble({i: Token(t, readable_form(t), t.startswith(b" "), i in marked) for i, t in raw.items()}, size)


# Curves


def line(n: int) -> Array:
    return np.linspace(-1, 1, n)[:, None]


def random_walk(n: int, d: int, seed: int) -> Array:
    return np.cumsum(np.random.default_rng(seed).standard_normal((n, d)), axis=0)


def autoregressive(n: int, d: int, seed: int, memory: float) -> Array:
    """Return d AR(1) processes, x_t = memory x_(t-1) + noise, started long before the first row."""
    before = int(5 / (1 - memory))
    noise = np.random.default_rng(seed).standard_normal((before + n, d))
    return lfilter([1], [1, -memory], noise, axis=0)[before:]


def smoothed_noise(n: int, d: int, seed: int, width: float) -> Array:
    noise = np.random.default_rng(seed).standard_normal((n, d))
    return gaussian_filter1d(noise, width, axis=0)


# Results


def measured_with(
    metrics: Mapping[str, Any], inside: Mapping[str, Mapping[str, object]] | None = None, /, **changed: object
) -> Measurements:
    """Return measurements of these metrics with some of them, or some `inside` others, changed, to judge claims."""
    merged = {name: {**metrics[name], **entries} for name, entries in (inside or {}).items()}
    return Measurements({**metrics, **merged, **changed})


def null(median: float, limit: float) -> dict[str, object]:
    return {"null": "others", "median": median, "limit": limit, "draws": 200}


def alts(finding: Finding, measured: Measurements) -> dict[str, str]:
    return {figure.name: caption(finding.name, figure.name, measured).alt for figure in finding.figures(measured)}


def assert_of_its_type(finding: Finding, measured: Measurements) -> None:
    """Check that metrics are of their type, and nothing else, when they come back from JSON."""
    stored = json.loads(json.dumps(measured.metrics, allow_nan=False))
    assert TypeAdapter(finding.metrics).validate_python(stored, strict=True, extra="forbid") == stored


def assert_drawn_and_described(finding: Finding, measured: Measurements) -> None:
    for figure in finding.figures(measured):
        figure.draw().savefig(io.BytesIO(), format="svg")
        words = caption(finding.name, figure.name, measured)
        assert words.how_to_read and words.alt


def verdicts_on(finding: Finding, given: Inputs) -> dict[str, str]:
    """Return the verdicts of a finding's claims, untested where it can't be measured."""
    try:
        return verdicts(finding, finding.measure(given))
    except NotApplicableError:
        return dict.fromkeys((rule.id for rule in finding.rules), "untested")


def realistic_embedding(V: int, d: int, rng: np.random.Generator) -> Array:
    """Return token embeddings (V, d) built like real ones: a search prunes them as it does those of a real model.

    Variances fall as (k + 9)^-0.7 about a common mean, norms vary by 15 %, two fifths of the tokens come in similar
    pairs, and a hundred unused tokens lie close together.
    """
    E = rng.standard_normal((V, d), dtype=np.float32) * ((np.arange(d) + 9) ** -0.35).astype(np.float32)
    first, second, unused = np.split(rng.permutation(V)[: 2 * (V // 5) + min(100, V // 20)], [V // 5, 2 * (V // 5)])
    apart = rng.uniform(0.15, 0.7, (len(second), 1)).astype(np.float32)
    E[second] = E[first] * np.sqrt(1 - apart**2) + E[second] * apart
    E += 0.5 * np.linalg.norm(E, axis=1).mean() / np.sqrt(d)
    E *= np.exp(0.15 * rng.standard_normal((V, 1), dtype=np.float32))
    E[unused] = E[unused].mean(axis=0) + 0.04 * E[unused]
    return E


def winding_positions(n: int, d: int, rng: np.random.Generator) -> Array:
    """Return position embeddings (n, d) float32 that wind in a few channels, with noise in all."""
    P = 0.02 * rng.standard_normal((n, d))
    for wave in range(1, 5):
        for channel in rng.choice(d, 3, replace=False):
            P[:, channel] += 0.5 / wave * np.cos(2 * np.pi * wave * np.arange(n) / n + channel)
    return P.astype(np.float32)
