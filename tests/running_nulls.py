"""Nulls for findings that run the model: untrained models, a trained one with the tested part exchanged, stand-ins.

A model before its training is a GPT-2 with the weights that it starts with, run on tokens drawn at random. The
trained one is `stdlib-gpt2`: it is recorded once, and each trial exchanges what a claim speaks of: offsets,
heads within their layers, channels, tokens, positions within windows, groups and directions of positions, directions
of the stream. `tests/stand_in_nulls.py` has the stand-ins, for claims whose conditions neither of these meets.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from generators.base.runs import Windows
from generators.compute.plan import inputs
from generators.findings import FINDINGS, channel_use, heads, position_use, stream, undertrained
from generators.findings.channel_use.measure import ChannelUseRow
from generators.findings.contract import Finding
from generators.findings.heads.measure import forecast
from generators.findings.inputs import CAPABILITIES, RUN, Inputs
from generators.findings.measured import Measurements
from generators.findings.position_use import variants
from generators.findings.position_use.measure import PositionCosts, damage
from generators.findings.running import SEED, mean_over_windows
from generators.findings.undertrained.measure import MOST, SPEAKABLE
from generators.maths.curve import grouped
from generators.runner.texts import TokenizedText
from generators.tokens.frequency import TokenFrequency
from tests import synthetic
from tests.stand_in_nulls import Verdicts, verdicts
from tests.test_stored_numbers import opened

Array = np.ndarray
RUNNING = tuple(finding for finding in FINDINGS if RUN in finding.needs and finding.rules)
WINDOWS, LENGTH, FILES = 8, 32, 8  # of a text drawn at random
FEW = 4  # windows on which a trial runs the trained model
BUDGET_S = 3.0  # of what is recorded of it by each finding
UNTRAINED = synthetic.architecture(n_ctx=LENGTH, d_model=128, n_layer=2, n_head=4, vocab_size=200)


def weights_of(model: Any) -> dict[str, Array]:
    """Return the weights of a GPT-2 by role."""
    named = {
        name: values.detach().numpy().astype(np.float32) for name, values in model.transformer.named_parameters()
    }
    weights = {"position_embedding": named["wpe.weight"], "token_embedding": named["wte.weight"]}
    for i in range(model.config.n_layer):
        for ours, theirs in (("ln1", "ln_1"), ("ln2", "ln_2")):
            weights[f"blocks.{i}.{ours}.gain"] = named[f"h.{i}.{theirs}.weight"]
            weights[f"blocks.{i}.{ours}.bias"] = named[f"h.{i}.{theirs}.bias"]
        parts = np.split(named[f"h.{i}.attn.c_attn.weight"], 3, axis=1)
        biases = np.split(named[f"h.{i}.attn.c_attn.bias"], 3)
        for name, part, bias in zip("qkv", parts, biases, strict=True):
            weights |= {f"blocks.{i}.attn.{name}": part, f"blocks.{i}.attn.{name}.bias": bias}
    return weights


# Models before their training


def text_of(rng: np.random.Generator, vocab_size: int) -> TokenizedText:
    """Return a text of tokens drawn by Zipf's law, in a few files."""
    ids = rng.zipf(1.3, WINDOWS * LENGTH).clip(max=vocab_size) - 1
    starts = range(0, len(ids), len(ids) // FILES)
    return TokenizedText("tokens drawn at random", "0" * 64, ids.astype(np.int32), starts=tuple(starts))


@lru_cache(1)
def untrained(seed: int) -> Inputs:
    """Return a GPT-2 before its first step, with a text and its counts."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    from generators.runner.run import OpenedModel

    torch.manual_seed(seed)
    sizes = UNTRAINED
    config = GPT2Config(
        vocab_size=sizes.vocab_size,
        n_positions=sizes.n_ctx,
        n_embd=sizes.d_model,
        n_layer=sizes.n_layer,
        n_head=sizes.n_head,
        n_inner=sizes.d_model,
        attn_implementation="eager",
        bos_token_id=0,
        eos_token_id=0,
    )
    model, table = GPT2LMHeadModel(config).eval(), "transformer.wpe.weight"
    run = OpenedModel(model, Path(), sizes, position_tensor=table, device="cpu", budget_s=3600, largest_batch=WINDOWS)
    run.text = text_of(np.random.default_rng(seed), sizes.vocab_size or 0)
    counts = np.bincount(run.text.ids, minlength=sizes.vocab_size)
    known = TokenFrequency("counts", "counts of a text drawn at random", np.log1p(counts), 1.0, False)
    return Inputs(weights_of(model), sizes, None, (known,), run)


def before_training(finding: Finding[Any], seed: int) -> Verdicts:
    """Return verdicts on a model before its training."""
    if finding not in RUNNING:
        return {}
    given = untrained(seed)
    roles = [role for role in finding.needs if role not in CAPABILITIES and "*" not in role]
    return synthetic.verdicts_on(finding, given) if given.weights.keys() >= set(roles) else {}


# A trained model, recorded once


class Trained:
    """`stdlib-gpt2` and what findings measured of it once; trials only read it."""

    def __init__(self) -> None:
        self.opened = opened("stdlib-gpt2")
        self.run, self.sizes = self.opened.run, self.opened.checkpoint.architecture
        self.windows = self.run.windows(24, SEED)
        self.P = self.opened.checkpoint["position_embedding"].astype(np.float64)
        self.m = self.windows.ids.shape[1]

    def some_windows(self, rng: np.random.Generator) -> Windows:
        """Return a few windows of one file, or of files one after another where one has too few."""
        files = self.windows.files
        ordered = np.concatenate(
            [rng.permutation(np.flatnonzero(files == f)) for f in rng.permutation(np.unique(files))]
        )
        chosen = ordered[:FEW]
        return replace(self.windows, ids=self.windows.ids[chosen], files=np.arange(FEW))

    @cache  # noqa: B019 (there is one)
    def of(self, finding: Finding[Any]) -> Measurements[Any]:
        """Return what a finding measures, with fewer windows than it asks for."""
        self.run.begin(BUDGET_S)
        return finding.measure(inputs(finding, self.opened))

    @cache  # noqa: B019
    def states(self) -> list[Array]:
        """Return the stream at every stage, (windows, n, d), of some windows and every fourth position."""
        ids = self.windows.ids
        found: list[list[Array]] = [[] for _ in range(self.sizes.n_layer + 1)]
        self.run.hidden_states(ids, lambda stage, begin, states: found[stage].append(states[:, ::4].copy()))
        return [np.concatenate(seen) for seen in found]

    @cache  # noqa: B019
    def largest(self) -> Array:
        """Return the largest probability of each token in the windows."""
        logs = np.full(self.sizes.vocab_size or 0, -np.inf)
        self.run.loss(self.windows).per_window(
            lambda _, predictions, wanted: np.maximum(logs, predictions.max(axis=0), out=logs)
        )
        return np.exp(logs)


trained = cache(Trained)


def positions_exchanged(rng: np.random.Generator) -> Verdicts:
    """Groups from anywhere, directions and channels at random, and neighbors in smoothing that are none."""
    model, P, m = trained(), trained().P, trained().m
    windows = model.some_windows(rng)
    loss = model.run.loss(windows)
    costs = PositionCosts(model.run, loss, loss.per_window(), windows.files)
    lost, lost_but_first = (costs.of(grouped(P[:m], m, apart)) for apart in ((), (0,)))
    order = np.concatenate([[0], 1 + rng.permutation(m - 1)])
    directions = np.linalg.qr(rng.standard_normal((P.shape[1], variants.CLAIM_COMPONENTS)))[0].T
    channels = rng.permutation(P.shape[1])[: P.shape[1] // 2]
    changed = {
        ("groups", variants.GROUP): variants.in_random_groups(P[:m], rng, (0,)),
        ("smoothed", variants.CLAIM_WIDTH): variants.smoothed(P[order], variants.CLAIM_WIDTH)[np.argsort(order)],
        ("components", variants.CLAIM_COMPONENTS): variants.projected(P[:m], P[1:].mean(axis=0), directions),
        ("strongest", variants.CLAIM_PERCENT): variants.with_channels(P[:m], channels),
    }
    damages = [
        damage(variants.ChangedPositions(kind, amount, rows), costs, lost_but_first, lost)  # type: ignore[arg-type]
        for (kind, amount), rows in changed.items()
    ]
    metrics = {
        "positions": "table",
        "unit": loss.unit,
        "removed_but_first": mean_over_windows(lost_but_first, windows.files),
        "damages": damages,
    }
    return verdicts(position_use.FINDING, Measurements(metrics))


def heads_exchanged(rng: np.random.Generator) -> Verdicts:
    """Another offset in the place of the previous token; heads shuffled within layers; positions in random groups."""
    model = trained()
    stored = model.of(heads.FINDING)
    rows, offsets = stored.metrics["heads"], stored.arrays["offsets"]
    other = int(rng.choice(np.flatnonzero(offsets >= 2)))
    elsewhere = [{**row, "on_text": float(stored.arrays["attention"][0, i, other])} for i, row in enumerate(rows)]
    changed = replace(stored, metrics={**stored.metrics, "heads": elsewhere})
    found = verdicts(heads.FINDING, changed, ["previous-token-on-text"])
    kernel, on_text = (np.array([row[name] for row in rows], float) for name in ("by_position_alone", "on_text"))
    n_head = model.sizes.n_head
    shuffled = rng.permuted(on_text.reshape(-1, n_head), axis=1).ravel()
    metrics = {**stored.metrics, "forecast": forecast(kernel, shuffled, n_head)}
    found |= verdicts(heads.FINDING, Measurements(metrics, {}, stored.arrays), ["positions-foretell-heads"])
    windows = model.some_windows(rng)
    scattered = variants.in_random_groups(model.P[: model.m], rng, (0,))
    previous = []
    for context in (nullcontext(), model.run.replaced(rows=scattered), nullcontext()):
        with context:
            previous.append(_on_previous(windows.ids))
    arrays = {"previous": np.stack(previous), "files": windows.files}
    on_these = [{**row, "on_text": float(value)} for row, value in zip(rows, previous[0].mean(axis=0), strict=True)]
    changed = Measurements({**stored.metrics, "heads": on_these}, {}, arrays)
    return found | verdicts(heads.FINDING, changed, ["previous-token-inexact"])


def _on_previous(ids: Array) -> Array:
    """Return every head's mean weight on the previous token, (windows, heads)."""
    model = trained()
    found = np.zeros((len(ids), model.sizes.n_layer, model.sizes.n_head))

    def see(layer: int, begin: int, weights: Array) -> None:
        found[begin : begin + len(weights), layer] = np.diagonal(weights, -1, 2, 3).mean(axis=-1)

    model.run.attention(ids, see)
    return found.reshape(len(ids), -1)


def channels_exchanged(rng: np.random.Generator) -> Verdicts:
    """Any channel in the place of the one that findings name."""
    stored = trained().of(channel_use.FINDING).metrics
    swept = stored["swept"]
    chosen = swept[int(rng.integers(len(swept)))]
    row = ChannelUseRow(**chosen, why="frequency", low=chosen["cost"], high=chosen["cost"], divergence=None)
    return verdicts(channel_use.FINDING, Measurements({**stored, "channels": [row]}))


def tokens_exchanged(rng: np.random.Generator) -> Verdicts:
    """Any tokens in the place of those that look under-trained."""
    largest = np.sort(trained().largest())
    said = largest[len(largest) // 3 :]  # without those that no control could be: the claim is untested beside them
    drawn = said[rng.permutation(len(said))]
    metrics = {
        "candidates": MOST,
        "controls": MOST,
        "unspeakable": int((drawn[:MOST] < SPEAKABLE).sum()),
        "controls_unspeakable": int((drawn[MOST : 2 * MOST] < SPEAKABLE).sum()),
        "repeats": 1.0,
    }
    return verdicts(undertrained.FINDING, Measurements(metrics))


class Recorded:
    """Hidden states as recorded, positions of every window in any order, all turned by one random rotation.

    Shifts are those of the trained model itself, so the mean of what was turned is a shift in a random direction.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        states = trained().states()
        count, n, d = states[0].shape
        orders = rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)
        rotation = np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
        self._states = [np.take_along_axis(each, orders[:, :, None], axis=1) @ rotation for each in states]
        self._few = trained().some_windows(rng)
        self._windows = Windows(np.zeros((count, n), np.int32), (0, n), trained().windows.files[:count])
        self.text, self.record = trained().run.text, trained().run.record

    def windows(self, count: int, seed: int, passes: float = 1.0, fixed: float = 0.0) -> Windows:
        return self._windows

    def hidden_states(self, ids: Array, see: Callable[[int, int, Array], None]) -> None:
        for stage, states in enumerate(self._states):
            see(stage, 0, states)

    def mlp_outputs(self, ids: Array, see: Callable[[int, int, Array], None]) -> bool:
        return False

    def loss(self, windows: Any) -> Any:
        return trained().run.loss(self._few)

    def shifted(self, by: Array) -> AbstractContextManager[None]:
        return trained().run.shifted(by)


def order_exchanged(rng: np.random.Generator) -> Verdicts:
    """Positions of every window in an order of its own, directions turned; with P, and as a model without one."""
    run: Any = Recorded(rng)
    measured = stream.FINDING.measure(Inputs({"position_embedding": trained().P}, trained().sizes, run=run))
    found = verdicts(stream.FINDING, measured)
    without = {**measured.metrics, "has_position_embedding": False}
    return found | verdicts(stream.FINDING, Measurements(without, {}, measured.arrays), ["makes-its-own-positions"])


EXCHANGES = {
    "position_use": (positions_exchanged,),
    "heads": (heads_exchanged,),
    "channel_use": (channels_exchanged,),
    "undertrained": (tokens_exchanged,),
    "stream": (order_exchanged,),
}
