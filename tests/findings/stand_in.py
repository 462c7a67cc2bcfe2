"""A model to be run that is none: what it gives is planted, so that what a finding measures is known."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from generators.base.architecture import Architecture
from generators.base.runs import Rotations, Windows
from generators.findings.contract import Finding
from generators.findings.inputs import Inputs
from generators.findings.measured import Measurements
from generators.runner.texts import TokenizedText

Array = np.ndarray


@dataclass(eq=False)
class StandIn:
    """Stands in for `generators.runner.run.Run`.

    Its loss grows with the mean squared distance of its positions from what they should be, times `needs_positions`,
    and by `costs[channel]` while a channel is held, which adds `guesses[channel]` times log-frequency to the logits.
    Heads attend `looks[head]` tokens back, with what is left spread evenly; the less, the further the positions of
    neighbours are from where they should be. Stage i of the stream is `shares[i]` of variance between positions.
    Where `states` is given, it makes the stream: of a stage and token ids, (windows, n, d). `attend` likewise makes
    attention, of a layer, token ids and the heads of all layers that are silenced. The loss grows by `pairs[pair]`
    for every rotary pair that stands still, by `rotating` of any other rotations, and by a quadratic form of what
    shifts the stream, `shifts` (d, d) or its squared length. `mlps` makes what MLPs write, of a layer and token ids,
    which are few; `compare` makes queries, keys and values.
    """

    architecture: Architecture
    P: Array | None
    kind: str | None = "table"
    length: int = 64
    needs_positions: float = 1.0
    noise: float = 0.01
    costs: Mapping[int, float] = field(default_factory=dict)
    guesses: Mapping[int, float] = field(default_factory=dict)
    log_frequency: Array | None = None
    looks: Sequence[float] = ()
    shares: Sequence[float] = ()
    never: Sequence[int] = ()
    predicts: bool = True
    states: Callable[[int, Array], Array] | None = None
    attend: Callable[[int, Array, set[tuple[int, int]]], Array] | None = None
    pairs: Sequence[float] = ()
    rotating: Callable[[Rotations], Array | float] = lambda _: 0.0
    mlps: Callable[[int, Array], Array] | None = None
    compare: Callable[[int, Array], tuple[Array, Array, Array]] | None = None
    shifts: Array | None = None
    affords: int = 32  # windows

    def __post_init__(self) -> None:
        d, vocab = self.architecture.d_model, int(self.architecture.vocab_size or 900)
        self.position_kind, self.record, self.bos = self.kind, {"torch": "none"}, None
        ids = np.arange(self.length, dtype=float)[:, None]
        self._right = self._now = ids if self.P is None else np.asarray(self.P, float)[: self.length]
        self._frequency = np.zeros(vocab) if self.log_frequency is None else self.log_frequency
        self._form = np.eye(d) if self.shifts is None else self.shifts
        self._pairs, self._by = np.asarray(self.pairs, float), np.zeros(d)
        self._held: list[int] = []
        self._still: list[int] = []
        self._rotations = Rotations()
        self._silenced: set[tuple[int, int]] = set()
        count = 64 * self.length
        drawn = np.random.default_rng(5).integers(3, vocab if self.mlps is None else 11, count).astype(np.int32)
        self.text = self.shipped = TokenizedText("a text of random tokens", "0" * 64, drawn)
        self.begin(600)

    def begin(
        self, budget_s: float, watch: Callable[[float], None] | None = None, unfinished: Path | None = None
    ) -> None:
        self.budget_s, self.was_cut, self.unfinished = budget_s, False, unfinished

    def affordable(self, count: int, length: int, passes: float) -> int:
        return min(count, self.affords)

    def windows(
        self, count: int, seed: int, passes: float = 1.0, fixed: float = 0.0, *, shipped: bool = False
    ) -> Windows:
        return self.text.windows(self.affordable(count, self.length, passes), self.length, seed)

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(3 + code % 50 for code in text.encode())

    @property
    def off(self) -> float:
        """How far positions are from what they should be, in units of their variance."""
        spread = float(np.mean((self._right - self._right.mean(axis=0)) ** 2))
        return float(np.mean((self._now - self._right) ** 2)) / spread if spread else 0.0

    @contextmanager
    def _with(self, **changed: Any) -> Iterator[None]:
        before = {name: getattr(self, name) for name in changed}
        self.__dict__.update(changed)
        try:
            yield
        finally:
            self.__dict__.update(before)

    def replaced(
        self, *, rows: Array | None = None, ids: Array | None = None, rotations: Rotations | None = None
    ) -> AbstractContextManager[None]:
        if rotations is not None:
            assert self.position_kind == "rotary"
            turning = range(len(self._pairs)) if rotations.pairs is None else rotations.pairs
            still = [pair for pair in range(len(self._pairs)) if pair not in set(turning)]
            return self._with(_rotations=rotations, _still=still)
        assert (rows is None) != (self.position_kind == "table")
        if rows is not None:
            return self._with(_now=np.asarray(rows, float))
        only_distances = np.asarray(ids, float) - np.mean(ids) + self._right.mean()
        return self._with(_now=only_distances[:, None])

    def held(self, channels: Sequence[int], values: Array, *, last: bool = True) -> AbstractContextManager[None]:
        assert values.shape[0] == self.architecture.n_layer + 1
        assert values.shape[-1] == len(channels)
        return self._with(_held=[*self._held, *channels])

    def silenced(self, layer: int, heads: Sequence[int]) -> AbstractContextManager[None]:
        return self._with(_silenced=self._silenced | {(layer, head) for head in heads})

    def shifted(self, by: Array) -> AbstractContextManager[None]:
        return self._with(_by=self._by + by)

    def loss(self, windows: Windows) -> "StandInLoss":
        return StandInLoss(self, windows)

    def logits(self, ids: Array, see: Callable[[int, Array], None]) -> None:
        assert ids.shape[1] <= self.architecture.n_ctx, "more tokens than the model has positions"
        see(0, np.stack([self._logits(row) for row in ids]))

    def last_logits(self, ids: Array, see: Callable[[int, Array], None]) -> None:
        self.logits(ids, lambda begin, logits: see(begin, logits[:, -1]))

    def _logits(self, row: Array) -> Array:
        """Predict the token that is there once more, but for tokens that are never said; frequency as it is held."""
        V = len(self._frequency)
        logits = np.random.default_rng(int(row[0])).standard_normal((len(row), V)).astype(np.float32)
        logits[np.arange(len(row)), np.roll(row, len(row) // 2)] += 30
        logits += sum(self.guesses.get(c, 0.0) for c in self._held) * self._frequency
        logits[:, list(self.never)] -= 50
        return logits.astype(np.float32)

    def hidden_states(self, ids: Array, see: Callable[[int, int, Array], None]) -> None:
        rng = np.random.default_rng(11)
        n, d = ids.shape[1], self.architecture.d_model
        angle = np.linspace(0, 6 * np.pi, n)
        curve = np.column_stack([np.cos(angle), np.sin(angle), np.linspace(-1, 1, n)])
        curve = (curve - curve.mean(axis=0)) / np.sqrt(np.mean(np.sum((curve - curve.mean(axis=0)) ** 2, axis=1)))
        axes = np.linalg.qr(rng.standard_normal((d, 3)))[0]
        for stage in range(self.architecture.n_layer + 1):
            if self.states is not None:
                see(stage, 0, self.states(stage, ids).astype(np.float32))
                continue
            share = self.shares[stage] if self.shares else 0.3
            within = np.random.default_rng([12, stage]).standard_normal((*ids.shape, d)) * np.sqrt((1 - share) / d)
            states = (np.sqrt(share) * curve @ axes.T + within).astype(np.float32)
            see(stage, 0, states[:3])
            see(stage, 3, states[3:])

    def stage_means(self, ids: Array) -> Array:
        return np.zeros((self.architecture.n_layer + 1, ids.shape[1], self.architecture.d_model))

    def mlp_outputs(self, ids: Array, see: Callable[[int, int, Array], None]) -> bool:
        if self.mlps is None:
            return False
        for layer in range(self.architecture.n_layer):
            see(layer, 0, self.mlps(layer, ids).astype(np.float32))
        return True

    def queries_keys_values(self, ids: Array, see: Callable[..., None]) -> bool:
        for layer in range(self.architecture.n_layer) if self.compare else ():
            see(layer, 0, *self.compare(layer, ids))
        return self.compare is not None

    def attention(
        self,
        ids: Array,
        see: Callable[[int, int, Array], None],
        *,
        scores: bool = False,
        layers: Sequence[int] | None = None,
    ) -> None:
        if scores:
            whole = see

            def see(layer: int, begin: int, weights: Array) -> None:
                with np.errstate(divide="ignore"):
                    whole(layer, begin, np.log(weights))

        n, heads = ids.shape[1], self.architecture.n_head
        stored = max(0.0, 1 - self.off)
        everywhere = np.tril(np.ones((n, n))) if self.architecture.causal else np.ones((n, n))
        everywhere /= everywhere.sum(axis=1, keepdims=True)
        for layer in range(self.architecture.n_layer) if layers is None else layers:
            if self.attend is not None:
                see(layer, 0, self.attend(layer, ids, self._silenced).astype(np.float32))
                continue
            weights = np.empty((len(ids), heads, n, n), np.float32)
            for head in range(heads):
                index = layer * heads + head
                share = stored * (self.looks[index] if index < len(self.looks) else 0.0)
                back = np.eye(n, k=-1)
                back[0, 0] = 1
                weights[:, head] = share * back + (1 - share) * everywhere
            see(layer, 0, weights)


class StandInLoss:
    unit = "nats per token"

    def __init__(self, run: StandIn, windows: Windows) -> None:
        self._run, self._windows = run, windows

    def per_window(self, see: Callable[[int, Array, Array], None] | None = None) -> Array:
        run, ids = self._run, self._windows.ids
        if see is not None:
            for window, row in enumerate(ids):
                logits = run._logits(row).astype(np.float64)
                see(window, logits - np.logaddexp.reduce(logits, axis=1, keepdims=True), row)
        wobble = 1 + run.noise * np.random.default_rng(3).standard_normal(len(ids))
        costs = sum(run.costs.get(c, 0.0) for c in run._held) + run._pairs[run._still].sum()
        costs += run._by @ run._form @ run._by
        loss = 2 + wobble * (run.needs_positions * run.off + costs)
        return loss if run._rotations == Rotations() else loss + run.rotating(run._rotations)


def measure_run(
    finding: Finding[Any],
    architecture: Architecture,
    P: Array | None = None,
    weights: Mapping[str, Array] | None = None,
    frequencies: Sequence[Any] = (),
    **planted: Any,
) -> Measurements[Any]:
    given = {"kind": None if P is None else "table", "length": architecture.n_ctx, **planted}
    run: Any = StandIn(architecture, P, **given)
    return finding.measure(Inputs(weights or {}, architecture, frequencies=tuple(frequencies), run=run))
