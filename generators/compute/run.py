"""One model, from its weights to its results: open, plan, compute what isn't known yet, save."""

import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from numpy import ndarray as Array
from threadpoolctl import threadpool_limits

from generators.base.errors import AtlasError, InputError
from generators.base.plain import plain
from generators.base.progress import Report, TimeLeft, silent
from generators.checkpoint.checkpoint import Checkpoint, open_checkpoint
from generators.checkpoint.registry import Model
from generators.checkpoint.sources import Files, Places, locate
from generators.compute.plan import Opened, Plan, inputs, plan, prefetch
from generators.compute.records import ModelRecord, SourceRecord, StoredFinding, TrafficRecord, table_records
from generators.compute.results import Store
from generators.compute.running import AS_USUAL, CUT_TO, Settings, has_time_for_more
from generators.compute.settled import AsItWas, settle
from generators.compute.tally import Outcome
from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.findings.inputs import RUN, NotApplicableError
from generators.runner import CannotRunError

MEASURING_THREADS = 1  # of BLAS: sums of another order differ in their last digits


def open_model(model: Model, places: Places, settings: Settings = AS_USUAL, files: Files | None = None) -> Opened:
    """Find a model's files, unless they are given, and open its checkpoint.

    Raises:
        InputError: the checkpoint can't be used.
        WeightsUnavailableError: it can't be had now.
    """
    if files is None:
        files = locate(model, places.models_dirs, places.hub)
    return Opened(model, files, open_checkpoint(files, model.family), settings)


@dataclass(frozen=True)
class Prepared:
    """What is known of a model once all of its tensors were read: its record, and a plan for each finding."""

    record: ModelRecord
    plans: tuple[Plan, ...]


def prepare(opened: Opened, findings: Sequence[Finding[Any]], report: Report = silent) -> Prepared:
    """Plan findings of a model, which reads and checks every tensor that they read.

    Raises:
        InputError, WeightsUnavailableError: as for making the plans.
    """
    prefetch(findings, opened, report)
    plans = tuple(plan(finding, opened) for finding in findings)
    return Prepared(_describe(opened.model, opened.checkpoint), plans)


def compute_model(
    model: Model,
    places: Places,
    store: Store,
    report: Report = silent,
    findings: Sequence[Finding[Any]] | None = None,
    settings: Settings = AS_USUAL,
    files: Files | None = None,
    as_it_was: AsItWas | None = None,
) -> Outcome:
    """Compute every finding of a model that its stored results don't hold already.

    Each finding is saved as soon as it is measured, so that a killed run loses one at the most; of one that runs the
    model, one run over its text. Where nothing is left to do, that is remembered with what the model was before
    (`as_it_was`). `files` are the model's, if they were located before: a hub is asked once.

    Raises:
        InputError: the checkpoint can't be used.
        WeightsUnavailableError: it can't be had now.
        AtlasError: results can't be written.
    """
    opened = open_model(model, places, settings, files)
    prepared = prepare(opened, touched(model.name, store, settings, findings), report)
    all_stored = nothing_to_do(prepared, settings, store)
    if all_stored is not None:
        settle(as_it_was, all_stored.stored, store, written=False)
        return all_stored
    with store.locked(model.name, report):
        known = begun(prepared, settings, store, report)
        done = []
        for planned, stored in zip(prepared.plans, known, strict=True):
            if stored is not None:
                done.append((stored, False))
                continue
            unfinished = store.unfinished(model.name, planned.finding.name, planned.key)
            done.append((save(model.name, *answer(planned, opened, unfinished, report), store), True))
        drop_unknown(prepared, store)
        remember(as_it_was, prepared, settings, store)
    return outcome_of(model.name, done)


def remember(as_it_was: AsItWas | None, prepared: Prepared, settings: Settings, store: Store) -> None:
    """Remember that nothing is left to do of a model, whose lock is held, if that is so; it may have been written."""
    if as_it_was is None:
        return
    all_stored = nothing_to_do(prepared, settings, store)
    if all_stored is not None:
        settle(as_it_was, all_stored.stored, store, written=True)


def touched(
    name: str, store: Store, settings: Settings, findings: Sequence[Finding[Any]] | None = None
) -> list[Finding[Any]]:
    """Return the findings to look at: not what runs the model, where that is skipped and anything is stored of it."""
    stored = store.finding_names(name)
    chosen = FINDINGS if findings is None else findings
    return [f for f in chosen if not (settings.skip and RUN in f.needs and f.name in stored)]


def nothing_to_do(prepared: Prepared, settings: Settings, store: Store) -> Outcome | None:
    """Return the outcome where everything is stored already, which no lock is needed for; else None."""
    name = prepared.record.name
    records = []
    for each in prepared.plans:
        record = _known(each, settings, name, store, silent)
        if record is None:
            return None
        records.append(record)
    if len(records) != len(store.finding_names(name)) or not store.is_tidy(name, records):
        return None
    if _wanted(prepared.record, store, anew=False) is not None:
        return None
    return outcome_of(name, [(record, False) for record in records])


def begun(prepared: Prepared, settings: Settings, store: Store, report: Report) -> list[StoredFinding | None]:
    """Write what is known of a model, whose lock is held; return what is stored of each plan, or None."""
    name = prepared.record.name
    known = [_known(each, settings, name, store, report) for each in prepared.plans]
    _save_model(prepared.record, store, anew=None in known)
    for stored in known:
        if stored is not None:
            store.drop_older_arrays(name, stored)
    return known


def save(name: str, record: StoredFinding, arrays: dict[str, Array], store: Store) -> StoredFinding:
    """Store what was measured of one finding, whose lock is held; return it as it is stored."""
    saved = store.save_finding(name, record, arrays)
    store.drop_unfinished(name, record.finding)
    return saved


def outcome_of(name: str, done: Sequence[tuple[StoredFinding, bool]]) -> Outcome:
    """Return what computing a model came to, from what is stored of each finding and whether it was made just now."""
    records = {record.finding: record for record, _ in done}
    computed = tuple(record.finding for record, is_new in done if is_new and record.status == "computed")
    return Outcome(
        name,
        computed,
        tuple(name for name, r in records.items() if r.status == "computed" and name not in computed),
        {name: r.reason or "" for name, r in records.items() if r.status == "failed"},
    )


def _known(planned: Plan, settings: Settings, name: str, store: Store, report: Report) -> StoredFinding | None:
    """Return the stored result if it is what this plan would give; damaged ones are computed again."""
    finding = planned.finding.name
    try:
        stored = store.finding(name, finding)
        if stored is None:
            return None
        if planned.here and stored.status == "computed":
            store.arrays(name, stored)
            return stored
        if planned.key is None:
            return stored if (stored.status, stored.reason) == (planned.status, planned.reason) else None
        if stored.key != planned.key or stored.status not in ("computed", "not_applicable"):
            return None
        if has_time_for_more(settings, stored.run):
            return None
        store.arrays(name, stored)
        return stored
    except InputError as error:
        report(f"{name}: {finding} is computed again: {error}")
        return None


def answer(planned: Plan, opened: Opened, unfinished: Path, report: Report) -> tuple[StoredFinding, dict[str, Array]]:
    """Measure one finding, or say why it can't be; return its record and its arrays.

    Args:
        planned: what it is measured from.
        opened: the model.
        unfinished: a folder for what a run of the model has got to.
        report: takes lines on the progress.

    Raises:
        AtlasError: the weights can't be used, or something can't be written.
    """
    finding = planned.finding
    if planned.key is None:
        return without(planned), {}
    report(f"{opened.model.name}: computing {finding.name}")
    record = StoredFinding(
        finding=finding.name,
        status="computed",
        key=planned.key,
        code=planned.code,
        computed_on=datetime.now(UTC).date().isoformat(),
        tensors=planned.tensors,
    )
    try:
        given = inputs(finding, opened)
        if given.run is not None:
            _begin(finding, opened, unfinished, report)
        with threadpool_limits(MEASURING_THREADS):
            measured = finding.measure(given)
        numbers = {"metrics": plain(measured.metrics), "tables": table_records(measured)}
        if given.run is not None:
            numbers["run"] = _record_of(opened)
        return record.model_copy(update=numbers), measured.arrays
    except NotApplicableError as sentence:
        return record.model_copy(update={"status": "not_applicable", "reason": str(sentence)}), {}
    except CannotRunError as sentence:
        return StoredFinding(finding=finding.name, status="missing", reason=str(sentence)), {}
    except AtlasError:
        raise
    except Exception as error:  # a finding that breaks must not cost the others
        report(f"{opened.model.name}: {finding.name} failed\n{traceback.format_exc()}")
        reason = f"{type(error).__name__}: {error}"
        return StoredFinding(finding=finding.name, status="failed", reason=reason), {}


def without(planned: Plan) -> StoredFinding:
    """Return what is stored of a finding that can't be measured."""
    return StoredFinding(finding=planned.finding.name, status=planned.status, reason=planned.reason)


def _begin(finding: Finding[Any], opened: Opened, unfinished: Path, report: Report) -> None:
    """Give a finding that runs the model its part of the budget, and have the time that it still takes reported.

    Parts go by what all findings of the atlas would run of the model, so that none reads another number of windows
    when it is computed alone.
    """
    whole = sum(each.passes for each in FINDINGS) or finding.passes
    part = finding.passes / whole if whole else 1.0
    watch = TimeLeft(report, f"{opened.model.name}: computing {finding.name}")
    opened.run.begin(opened.settings.budget_s * part, watch, unfinished)


def _record_of(opened: Opened) -> dict[str, str]:
    """Return on what, with what, and whether cut short the model was run."""
    run = opened.run
    cut = {CUT_TO: opened.settings.operations} if run.was_cut else {}
    return {**run.record, "text": run.text.name, "text_sha256": run.text.sha256, **cut}


def _save_model(record: ModelRecord, store: Store, *, anew: bool) -> None:
    """Write what is known of a model, unless it stands there."""
    wanted = _wanted(record, store, anew=anew)
    if wanted is not None:
        store.save_model(wanted)


def _wanted(record: ModelRecord, store: Store, *, anew: bool) -> ModelRecord | None:
    """Return what is to be written of a model, None where it stands there.

    What came over the network when its weights were read before stays, unless something is measured `anew` for which
    more came, or they are other weights.
    """
    try:
        stored = store.model(record.name)
    except InputError:
        return record  # damaged: written anew
    if stored is not None and stored.source == record.source and not (anew and _came(record)):
        record = record.model_copy(update={"traffic": stored.traffic or record.traffic})
    return None if stored == record else record


def _came(record: ModelRecord) -> bool:
    return record.traffic is not None and record.traffic.fetched > 0


def drop_unknown(prepared: Prepared, store: Store) -> None:
    """Remove what is stored of findings that the atlas has no more; the model's lock is held."""
    name = prepared.record.name
    known = {each.finding.name for each in prepared.plans} | {finding.name for finding in FINDINGS}
    for finding in set(store.finding_names(name)) - known:
        store.remove_finding(name, finding)


def _describe(model: Model, checkpoint: Checkpoint) -> ModelRecord:
    a, traffic = checkpoint.architecture, checkpoint.traffic
    return ModelRecord(
        name=model.name,
        title=model.title,
        family=a.family,
        n_layer=a.n_layer,
        n_head=a.n_head,
        d_model=a.d_model,
        n_ctx=a.n_ctx,
        vocab_size=a.vocab_size,
        causal=a.causal,
        post_norm=a.post_norm,
        source=SourceRecord(**asdict(checkpoint.origin)),
        traffic=None if traffic is None else TrafficRecord(fetched=traffic.fetched, needed=traffic.needed),
        licence=model.licence,
        notes=model.notes,
    )
