"""What computing models came to, and how that is told."""

from dataclasses import dataclass, field

from generators.base.errors import AtlasError, InputError, WeightsUnavailableError
from generators.base.progress import Report
from generators.checkpoint.registry import Model
from generators.compute.results import Store


@dataclass(frozen=True)
class Outcome:
    """What computing a model came to: findings computed now, found stored, and failed (with why)."""

    name: str
    computed: tuple[str, ...]
    stored: tuple[str, ...]
    failed: dict[str, str]


@dataclass
class Tally:
    """What computing several models came to.

    `unavailable` says why a model's weights could not be had or used, by name; `bad_input` and `failed` are names,
    `sentences` what to tell the user about them.
    """

    unavailable: dict[str, str] = field(default_factory=dict)
    bad_input: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)


def account(
    tally: Tally, model: Model, done: Outcome | AtlasError, store: Store, report: Report, *, named: bool
) -> None:
    """Write down, and report, what computing one model came to, or why it can't be computed.

    Raises:
        AtlasError: it is neither of the model nor of its weights; nothing can go on.
    """
    if isinstance(done, Outcome):
        report(f"{model.name}: {in_words(done)}")
        for finding, reason in done.failed.items():
            tally.failed.append(model.name)
            tally.sentences.append(f"{model.name}: {finding} failed: {reason}")
    elif isinstance(done, WeightsUnavailableError):
        _unavailable(tally, model, done, store, report, named=named)
    elif isinstance(done, InputError):
        (tally.bad_input if named else tally.failed).append(model.name)
        tally.unavailable[model.name] = str(done)
        tally.sentences.append(f"{model.name}: {done}")
    else:
        raise done


def _unavailable(
    tally: Tally, model: Model, error: WeightsUnavailableError, store: Store, report: Report, *, named: bool
) -> None:
    tally.unavailable[model.name] = str(error)
    stored = _has_results(store, model.name)
    report(f"{model.name}: {error} {'Its stored results stand.' if stored else ''}".rstrip())
    if named and not stored:
        tally.failed.append(model.name)


def _has_results(store: Store, name: str) -> bool:
    try:
        return store.model(name) is not None
    except InputError:
        return False


def in_words(done: Outcome) -> str:
    """Return what computing a model came to."""
    parts = []
    if done.computed:
        parts.append(f"computed {', '.join(done.computed)}")
    if done.stored:
        parts.append(f"already stored: {', '.join(done.stored)}")
    return "; ".join(parts) or "nothing can be computed from these weights"
