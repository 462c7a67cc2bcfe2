from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.architecture import Architecture
from generators.base.runs import Run
from generators.findings.inputs import Inputs, NotApplicableError, Weights, model_of
from generators.findings.measured import Measurements, numbers, table_of
from generators.findings.nulls import RESAMPLES, interval
from generators.findings.positional import queries_and_keys, scoring, stream_of
from generators.findings.running import GROUP, SEED, WINDOWS, Ran, ran
from generators.findings.sizes import nonconstant_positions
from generators.maths.curve import grouped
from generators.maths.kernels import attention, kernel_of
from generators.maths.ranks import spearman
from generators.maths.resampling import chance, resample_items, spearman_of

Positions = Literal["as they are", "in groups", "removed"]
POSITIONS: tuple[Positions, ...] = ("as they are", "in groups", "removed")
REACH = 16  # offsets on either side
PASSES = 7
PERMUTATIONS = 999  # permutations of heads for the null correlation


class HeadRow(TypedDict):
    layer: int
    head: int
    by_position_alone: float | None
    on_text: float
    in_groups: float | None
    removed: float | None
    on_first_token: float
    strongest_offset: int


class Forecast(TypedDict):
    rho: float
    low: float
    high: float
    chance_median: float
    chance_limit: float
    draws: int


class Repeated(TypedDict):
    """How often the second half of random tokens seen twice is predicted."""

    positions: Positions
    share: float


class HeadsMetrics(TypedDict):
    """Numbers of all heads; `uniform` is the weight on the previous token of a head that attends uniformly."""

    heads: list[HeadRow]
    uniform: float
    forecast: Forecast | None
    repeated: list[Repeated] | None
    ran: Ran


def measure(inputs: Inputs) -> Measurements[HeadsMetrics]:
    """Measure the mean attention of every head at offsets up to 16, and how repeated tokens are predicted."""
    run = model_of(inputs)
    windows = run.windows(WINDOWS, SEED, PASSES)
    n = windows.ids.shape[1]
    causal = inputs.architecture.causal
    offsets = np.arange(0 if causal else -REACH, REACH + 1)
    offsets = offsets[np.abs(offsets) < n]
    P = nonconstant_positions(inputs.weights) if run.position_kind == "table" else None
    by_positions: dict[Positions, Array] = {}
    on_first: dict[Positions, Array] = {}
    for name, replaced in _ways(run, P, n):
        with replaced:
            by_positions[name], on_first[name] = _attention(run, windows.ids, offsets)
    kernel, n_head = _kernel(inputs, P), inputs.architecture.n_head
    means = {name: each.mean(axis=0) for name, each in by_positions.items()}
    rows = _rows(means, on_first["as they are"], kernel, offsets, n_head)
    metrics = HeadsMetrics(
        heads=rows,
        uniform=float(np.mean(1 / np.arange(2, n + 1))) if causal else 1 / n,
        forecast=None if kernel is None else forecast(kernel, numbers(rows, "on_text"), n_head),
        repeated=_repeated(run, P, n) if run.predicts and causal else None,
        ran=ran(run, windows),
    )
    arrays = {
        "offsets": offsets.astype(np.int32),
        "attention": np.stack([*means.values()]).astype(np.float32),
        # of every window, so that intervals can be taken
        "previous": np.stack([each[:, :, offsets == 1][..., 0] for each in by_positions.values()]).astype(np.float32),
        "files": windows.files.astype(np.int32),
    }
    table = table_of("Every head on text", HeadRow, rows)
    return Measurements(metrics, {"heads": table}, arrays)


def _ways(
    run: Run, P: Float[Array, "n d"] | None, m: int
) -> Iterator[tuple[Positions, AbstractContextManager[None]]]:
    yield "as they are", nullcontext()
    if run.position_kind is None or (run.position_kind == "table" and P is None):
        return  # equal rows carry no position
    if P is None:
        ids = np.arange(m, dtype=np.float64)
        yield "in groups", run.replaced(ids=grouped(ids, GROUP))
        yield "removed", run.replaced(ids=grouped(ids, m))
    else:
        yield "in groups", run.replaced(rows=grouped(P[:m], GROUP, (0,)))
        yield "removed", run.replaced(rows=grouped(P[:m], m))


def _attention(
    run: Run, ids: Int[Array, "windows n"], offsets: Int[Array, " offsets"]
) -> tuple[Float[Array, "windows heads offsets"], Float[Array, " heads"]]:
    shape = (len(ids), run.architecture.n_layer, run.architecture.n_head)
    by_offset, on_first = np.zeros((*shape, len(offsets))), np.zeros(shape)

    def see(layer: int, begin: int, weights: Float[Array, "batch heads n n"]) -> None:
        at = slice(begin, begin + len(weights))
        for index, offset in enumerate(offsets):
            by_offset[at, layer, :, index] = np.diagonal(weights, -offset, 2, 3).mean(axis=-1)
        on_first[at, layer] = weights[:, :, 1:, 0].mean(axis=-1)

    run.attention(ids, see)
    return by_offset.reshape(len(ids), -1, len(offsets)), on_first.mean(axis=0).ravel()


def _kernel(inputs: Inputs, P: Float[Array, "n d"] | None) -> Float[Array, " heads"] | None:
    layers = range(inputs.architecture.n_layer)
    if P is None or any(f"blocks.{i}.attn.{name}" not in inputs.weights for i in layers for name in "qk"):
        return None
    try:
        return weights_on_previous(inputs.weights, inputs.architecture, P)
    except NotApplicableError:
        return None


def _rows(
    means: dict[Positions, Float[Array, "heads offsets"]],
    first: Float[Array, " heads"],
    kernel: Float[Array, " heads"] | None,
    offsets: Int[Array, " offsets"],
    n_head: int,
) -> list[HeadRow]:
    previous = {name: mean[:, offsets == 1][:, 0] for name, mean in means.items()}

    def weight(name: Positions, index: int) -> float | None:
        return float(previous[name][index]) if name in previous else None

    return [
        HeadRow(
            layer=index // n_head,
            head=index % n_head,
            by_position_alone=None if kernel is None else float(kernel[index]),
            on_text=float(previous["as they are"][index]),
            in_groups=weight("in groups", index),
            removed=weight("removed", index),
            on_first_token=float(first[index]),
            strongest_offset=int(offsets[np.argmax(means["as they are"][index])]),
        )
        for index in range(len(first))
    ]


def forecast(kernel: Float[Array, " heads"], on_text: Float[Array, " heads"], n_head: int) -> Forecast | None:
    """Return how weights by positions alone and on text correlate, against heads shuffled within their layers.

    Both depend on the layer. Heads shuffled over layers would make that look like knowledge of heads.
    """
    rho = spearman(kernel, on_text)
    if rho is None:
        return None
    rng = np.random.default_rng(SEED)
    by_layer = on_text.reshape(-1, n_head)
    null = chance(
        np.array([spearman(kernel, rng.permuted(by_layer, axis=1).ravel()) or 0.0 for _ in range(PERMUTATIONS)])
    )
    low, high = interval(resample_items(spearman_of(kernel, on_text), len(kernel), RESAMPLES, rng))
    return Forecast(
        rho=rho,
        low=low,
        high=high,
        chance_median=null.median,
        chance_limit=null.limit,
        draws=null.draws,
    )


def _repeated(run: Run, P: Float[Array, "n d"] | None, n: int) -> list[Repeated]:
    before = np.array(run.text.before, np.int32)
    half = (n - len(before)) // 2
    rng = np.random.default_rng([SEED, 1])
    count = run.affordable(WINDOWS, n, PASSES)
    drawn = rng.choice(run.text.ids, size=(count, half)).astype(np.int32)
    ids = np.hstack([np.tile(before, (count, 1)), drawn, drawn])
    begins = len(before) + half
    found = []
    for name, replaced in _ways(run, P, ids.shape[1]):
        hits: list[Array] = []
        with replaced:
            run.logits(
                ids,
                lambda begin, logits, hits=hits: hits.append(  # type: ignore[misc]
                    logits[:, begins:-1].argmax(axis=-1) == ids[begin : begin + len(logits), begins + 1 :]
                ),
            )
        found.append(Repeated(positions=name, share=float(np.concatenate(hits).mean())))
    return found


def weights_on_previous(
    weights: Weights, architecture: Architecture, P: Float[Array, "n d"]
) -> Float[Array, " heads"]:
    """Return the kernel's weight at offset 1 of every head, layer by layer; beyond layer 0 a caricature."""
    found, stream = [], stream_of(weights, architecture, P)
    for layer in range(architecture.n_layer):
        queries, keys = queries_and_keys(weights, architecture, stream, layer)
        scored = scoring(weights, architecture, layer, len(P))
        found += [
            kernel_of(attention(queries[head], keys[head], scored, head), len(P), architecture.causal).at(1)
            for head in range(architecture.n_head)
        ]
    return np.array(found)
