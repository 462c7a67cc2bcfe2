"""What every finding is: what it needs and uses, how it is measured, claimed and drawn.

What goes in is in `inputs.py`, what comes out in `measured.py`, how it is judged in `judging.py`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Generic, get_args, get_type_hints

from generators.base.architecture import Architecture
from generators.findings.facts import Facts
from generators.findings.inputs import CAPABILITIES, RUN, Inputs
from generators.findings.judging import Claim, IntervalKind, Rule, judge, untested
from generators.findings.measured import M, Measurements
from generators.findings.wording import Words, words_of


@dataclass(frozen=True)
class Figure:
    """A picture of measurements. Its caption and its text for those who can't see it stand in the finding's template.

    `draw` returns a matplotlib figure and is called only when the picture is needed; `interactive` returns what a
    browser needs to make the picture one that can be turned or searched (an object with `as_json`).
    """

    name: str
    title: str
    draw: Callable[[], Any]
    interactive: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Finding(Generic[M]):
    """One finding, in a folder of its own.

    `needs` and `uses` are roles of tensors (`*` in a role stands for every layer) or capabilities (`TOKENS`,
    `FREQUENCIES`, `RUN`); without what it needs a finding is missing, without what it uses a part of it is None.
    `config` names the fields of `Architecture` that it reads. `metrics` is the type of its metrics, by which stored
    ones are checked. `words` are those of its YAML file. `passes` is how many windows of text a finding that runs the
    model would run it on, each as often as it is run: by it findings share the time that a model has.
    `version` is raised by hand when its numbers change on purpose; results of older versions are then measured anew.
    `unless` says why it has no meaning for an architecture, whatever its weights; None where it has one.
    `asks_about` names findings from whose folder it may take what it asks about: a finding knows of no other else.
    """

    name: str
    words: Words
    needs: tuple[str, ...]
    metrics: type[M]
    measure: Callable[[Inputs], Measurements[M]]
    figures: Callable[[Measurements[M]], list[Figure]]
    signature: str  # figure shown for every model on the finding's page
    rules: tuple[Rule[M], ...] = ()
    uses: tuple[str, ...] = ()
    config: tuple[str, ...] = ()
    passes: float = 0
    version: int = 1
    facts: Facts[M] = field(default_factory=Facts)  # used by the rest of the site
    asks_about: tuple[str, ...] = ()
    unless: Callable[[Architecture], str | None] | None = None

    def __post_init__(self) -> None:
        if unjudged := self.words.claims.keys() - {rule.id for rule in self.rules}:
            raise ValueError(
                f"The words of {self.name} have claims that no rule judges: {', '.join(sorted(unjudged))}."
            )

    @property
    def title(self) -> str:
        return self.words.title

    @property
    def order(self) -> int:
        return self.words.order

    @property
    def question(self) -> int:
        return self.words.question

    def claims(self, measurements: Measurements[M]) -> list[Claim]:
        kind: IntervalKind = "95 % interval" if RUN in self.needs else "stability range"
        return [judge(self.name, rule, measurements, kind) for rule in self.rules]

    def untested(self, reason: str) -> list[Claim]:
        return [untested(self.name, rule, reason) for rule in self.rules]

    def can_use(self, capability: str) -> bool:
        return capability in self.needs or capability in self.uses


def finding_of(
    measure: ModuleType, figures: ModuleType, claims: ModuleType | None = None, **declared: Any
) -> Finding[Any]:
    """Return the finding of a package from its modules: `measure`, `figures`, and `FACTS` of its claims.

    What `@claim` made in `claims` are its rules, in their order there. The type of its metrics is that which
    `measure` returns; `declared` are the other fields.
    """
    package = str(measure.__package__)
    (metrics,) = get_args(get_type_hints(measure.measure)["return"])
    return Finding(
        package.rpartition(".")[2],
        words_of(package),
        metrics=metrics,
        measure=measure.measure,
        figures=figures.figures,
        rules=tuple(each for each in vars(claims).values() if isinstance(each, Rule)) if claims else (),
        facts=getattr(claims, "FACTS", Facts()),
        **declared,
    )


def roles(patterns: Iterable[str], n_layer: int) -> list[str]:
    """Return the roles of tensors that patterns mean in a model of `n_layer` layers; capabilities are left out."""
    found: list[str] = []
    for pattern in patterns:
        if "*" in pattern:
            found += [pattern.replace("*", str(i)) for i in range(n_layer)]
        elif pattern not in CAPABILITIES:
            found.append(pattern)
    return found
