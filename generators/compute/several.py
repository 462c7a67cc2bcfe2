"""Several models, one after another: one model's trouble never costs another its results."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from generators.base.errors import AtlasError, InputError, WeightsUnavailableError
from generators.base.progress import Report
from generators.checkpoint.registry import Model
from generators.checkpoint.sources import Places, locate
from generators.compute import settled
from generators.compute.results import Store
from generators.compute.running import AS_USUAL, Settings
from generators.compute.tally import Outcome, Tally, account

if TYPE_CHECKING:
    from generators.findings.contract import Finding


def compute_models(
    models: Sequence[Model],
    places: Places,
    store: Store,
    report: Report,
    advance: Callable[[], None],
    *,
    named: bool,
    findings: "Sequence[Finding[Any]] | None" = None,
    settings: Settings = AS_USUAL,
) -> Tally:
    """Compute every finding of every model that is not stored yet.

    Args:
        models: which.
        places: where weights are looked for.
        store: where results are.
        report: takes lines on the progress.
        advance: called after each model.
        named: whether the user named these models, so that one that can't be had is a failure.
        findings: which of them; all if not given.
        settings: how models are run.
    """
    tally = Tally()
    for model in models:
        try:
            done: Outcome | AtlasError = _computed(model, places, store, report, findings, settings)
        except (WeightsUnavailableError, InputError) as error:
            done = error
        account(tally, model, done, store, report, named=named)
        advance()
    return tally


def _computed(
    model: Model,
    places: Places,
    store: Store,
    report: Report,
    findings: "Sequence[Finding[Any]] | None",
    settings: Settings,
) -> Outcome:
    """Compute a model, unless all is as it was when nothing was left to do; what measures is imported only then."""
    files = before = None
    if findings is None:
        files = locate(model, places.models_dirs, places.hub)
        before = settled.as_it_is(model, files, store, settings)
        known = settled.outcome(before, store)
        if known is not None:
            return known
    from generators.compute.run import compute_model

    return compute_model(model, places, store, report, findings, settings, files, before)
