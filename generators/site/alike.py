"""Models in a plane of two numbers: the effect sizes of claims, and the sizes of the models themselves.

What a script draws them from, which pair is shown first, and what goes together over all models, against chance.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray as Array

from generators.compute.records import ClaimRecord, ModelRecord
from generators.drawing.interactive import house_style, rounded
from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.findings.judging import Rule
from generators.maths.rank_pairs import Strongest, strongest
from generators.site.view import ModelPage

FEWEST = 8  # models from which on it is said what goes together: fewer points line up by chance
WIDE_RANGE = 20  # largest over smallest value from which on an axis is logarithmic
SIZE = "Size of the model"
SIZES: Mapping[str, tuple[str, Callable[[ModelRecord], int | None]]] = MappingProxyType(
    {
        "layers": ("layers", lambda model: model.n_layer),
        "channels": ("channels (d_model)", lambda model: model.d_model),
        "heads": ("heads in a layer", lambda model: model.n_head),
        "context": ("positions at most", lambda model: model.n_ctx),
        "vocabulary": ("tokens of the vocabulary", lambda model: model.vocab_size),
    }
)


@dataclass(frozen=True)
class Axis:
    """A number of every model, None where it is not known; of a claim also its verdicts, and where it holds.

    `finding` is None for the size of a model. `threshold` and `chance` are given where they are the same for all.
    """

    id: str
    group: str
    label: str
    values: tuple[float | None, ...]
    finding: str | None = None
    statement: str = ""
    unit: str = ""
    verdicts: tuple[str, ...] = ()
    sense: str = ""
    threshold: float | None = None
    chance: float | None = None

    @property
    def title(self) -> str:
        """Return the words at the axis."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    @property
    def known(self) -> int:
        """Return of how many models it is known."""
        return sum(value is not None for value in self.values)

    @property
    def is_log(self) -> bool:
        """Return whether it is drawn logarithmic: what is positive throughout and spans a wide range."""
        values = [value for value in self.values if value is not None]
        return bool(values) and min(values) > 0 and max(values) >= WIDE_RANGE * min(values)

    def as_json(self) -> dict[str, Any]:
        """Return plain data for `alike.js`."""
        return {
            **{key: value for key, value in vars(self).items() if key not in ("values", "verdicts")},
            "title": self.title,
            "log": self.is_log,
            "values": [None if value is None else rounded([value], 6)[0] for value in self.values],
            "verdicts": self.verdicts or None,
        }


@dataclass(frozen=True)
class Together:
    """The two axes that go together most, and how."""

    x: Axis
    y: Axis
    found: Strongest


@dataclass(frozen=True)
class Alike:
    """What the page is made from: models, axes, and the pair shown first."""

    pages: Sequence[ModelPage]
    axes: tuple[Axis, ...]
    start: tuple[Axis, Axis] | None
    claims: Together | None = None  # the claims that go together most
    size: Together | None = None  # the size and the claim that do

    def shown(self) -> list[int]:
        """Return the models that have both numbers of the first pair."""
        return [] if self.start is None else _both(*self.start)

    def lacking(self) -> list[tuple[str, list[str]]]:
        """Return the models that the first pair leaves out, by what they lack."""
        if self.start is None:
            return []
        x, y = self.start
        lacks = {x.label: (x,), y.label: (y,), "either": (x, y)}
        found: dict[str, list[str]] = {}
        for i, page in enumerate(self.pages):
            without = tuple(axis for axis in (x, y) if axis.values[i] is None)
            for words, axes in lacks.items():
                if without and without == axes:
                    found.setdefault(words, []).append(page.title)
        return list(found.items())

    def unmeasured(self) -> list[Axis]:
        """Return the claims that no model has a number for."""
        return [axis for axis in self.axes if not axis.known]

    def as_json(self) -> dict[str, Any]:
        """Return plain data for `alike.js`."""
        models = [{"name": p.name, "title": p.title, "family": p.findings.model.family} for p in self.pages]
        return {
            "style": house_style(),
            "models": models,
            "axes": [axis.as_json() for axis in self.axes if axis.known],
            "start": [axis.id for axis in self.start or ()],
        }


def alike(pages: Sequence[ModelPage]) -> Alike:
    """Return models in a plane of any two of their numbers."""
    claims, sizes = list(_of_claims(pages)), list(_of_sizes(pages))
    once = [i for i, page in enumerate(pages) if page.counted_as not in [other.counted_as for other in pages[:i]]]
    apart = np.array([[i < j and a.finding != b.finding for j, b in enumerate(claims)] for i, a in enumerate(claims)])
    together = _together(claims, claims, apart, once)
    size = _together(sizes, claims, np.ones((len(sizes), len(claims)), dtype=bool), once)
    start = (together.x, together.y) if together is not None else _start(claims)
    return Alike(pages, (*sizes, *claims), start, together, size)


def _of_sizes(pages: Sequence[ModelPage]) -> Iterator[Axis]:
    for name, (label, of) in SIZES.items():
        yield Axis(f"size-{name}", SIZE, label, tuple(of(page.findings.model) for page in pages))


def _of_claims(pages: Sequence[ModelPage]) -> Iterator[Axis]:
    for finding in FINDINGS:
        for rule in finding.rules:
            yield _of_claim(finding, rule, [page.claims.get(rule.id) for page in pages])


def _of_claim(finding: Finding[Any], rule: Rule[Any], claims: Sequence[ClaimRecord | None]) -> Axis:
    tested = [claim for claim in claims if claim is not None and claim.value is not None]
    limits = [claim.baseline if claim.chance is None else claim.chance.limit for claim in tested]
    return Axis(
        id=rule.id,
        group=finding.title,
        label=f"{finding.title}: {rule.short}",
        values=tuple(None if claim is None else claim.value for claim in claims),
        finding=finding.name,
        statement=rule.statement,
        unit=rule.unit,
        verdicts=tuple("untested" if claim is None else claim.verdict for claim in claims),
        sense=rule.sense,
        threshold=_same([claim.threshold for claim in tested]),
        chance=_same(limits),
    )


def _same(values: Sequence[float | None]) -> float | None:
    """Return the one value that all have; None where they differ."""
    return values[0] if len(set(values)) == 1 else None


def _both(x: Axis, y: Axis) -> list[int]:
    pairs = enumerate(zip(x.values, y.values, strict=True))
    return [i for i, (a, b) in pairs if a is not None and b is not None]


def _together(
    xs: Sequence[Axis], ys: Sequence[Axis], allowed: Bool[Array, "a b"], once: Sequence[int]
) -> Together | None:
    """Return what goes together most over the models `once`, of which there is one for each recipe."""
    if not xs or not ys:
        return None
    found = strongest(_matrix(xs)[:, once], _matrix(ys)[:, once], allowed, FEWEST)
    return None if found is None else Together(xs[found.row], ys[found.column], found)


def _matrix(axes: Sequence[Axis]) -> Float[Array, "a n"]:
    return np.array([axis.values for axis in axes], dtype=np.float64)  # None is NaN


def _start(claims: Sequence[Axis]) -> tuple[Axis, Axis] | None:
    """Return two claims of different findings that most models have, on whose verdicts these differ most."""
    pairs = [(x, y) for i, x in enumerate(claims) for y in claims[i + 1 :] if x.finding != y.finding]

    def worth(pair: tuple[Axis, Axis]) -> tuple[int, int]:
        x, y = pair
        both = _both(x, y)
        return len(both), len({(x.verdicts[i], y.verdicts[i]) for i in both})

    return max((pair for pair in pairs if _both(*pair)), key=worth, default=None)
