"""What is stored of a model against what is planned: what is left to do, asked of the store once.

Before any of that, and without a finding being imported: whether a model is as it was when nothing was left to do.
That is remembered beside its results: a digest of all that they depend on (weights and the other files of the
checkpoint, what the registry says, settings, the findings' versions, what is installed) and of themselves. Of a model
on the hub, the repository's commit stands for its files, so that one request says that nothing has to come.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import astuple, dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from generators import findings as all_findings
from generators.base import digests
from generators.base.errors import AtlasError, InputError
from generators.checkpoint.registry import Model
from generators.checkpoint.sources import LARGEST_TEXT, Files, Origin
from generators.compute import memory
from generators.compute.records import ModelRecord, StoredFinding
from generators.compute.results import Store
from generators.compute.running import GIB, LIBRARIES, RunSettings, has_time_for_more

if TYPE_CHECKING:
    from generators.compute.plan import Plan, Prepared

FINDINGS = Path(all_findings.__file__).parent


# Up to date?


@dataclass(frozen=True)
class Fingerprint:
    name: str
    inputs: str
    results: str

    def with_results(self, results: str) -> str:
        return digests.of_words(self.inputs, results)


def fingerprint(model: Model, files: Files, store: Store, settings: RunSettings) -> Fingerprint | None:
    """Return a model's current fingerprint; None if its files are neither local nor at a commit of the hub."""
    if files.folder is None:
        return at_commit(model, files.origin, store, settings)
    try:
        given = digests.of_files(_read(files, files.folder), files.folder)
        return _fingerprint(model, files.origin, store, settings, digests.of_code(), given)
    except (OSError, InputError):
        return None  # opening it reports the error


def at_commit(model: Model, origin: Origin, store: Store, settings: RunSettings) -> Fingerprint | None:
    if origin.kind != "hub" or origin.commit is None:
        return None
    with suppress(OSError):
        return _fingerprint(model, origin, store, settings)
    return None


def _fingerprint(model: Model, origin: Origin, store: Store, settings: RunSettings, *made_from: str) -> Fingerprint:
    counts = "" if model.counts is None else digests.of_folder(model.counts)
    given = *astuple(replace(settings, keep_outdated=False, ends_on_time=False)), *astuple(origin), counts
    inputs = digests.of_words(*made_from, *_here(), model.model_dump(), *given)
    return Fingerprint(model.name, inputs, digests.of_folder(store.folder(model.name)))


def up_to_date(now: Fingerprint, store: Store) -> tuple[str, ...] | None:
    """Return the stored findings if the model is unchanged since nothing was left to do; else None."""
    stored = store.up_to_date(now.name)
    return stored.findings if stored is not None and stored.made_from == now.with_results(now.results) else None


def remember(before: Fingerprint, computed: tuple[str, ...], store: Store, *, written: bool) -> None:
    """Record that nothing is left to do; `written`: results were written since `before`, under this lock."""
    results = digests.of_folder(store.folder(before.name)) if written else before.results
    with suppress(AtlasError):  # without it the checkpoint is opened once more
        store.remember(before.name, before.with_results(results), computed)


def _read(files: Files, folder: Path) -> Iterator[Path]:
    weights = {folder / name for name in files.weight_files()}
    for path in digests.inside(folder):
        if path in weights or path.stat().st_size <= LARGEST_TEXT:
            yield path


@cache
def _here() -> tuple[str, ...]:
    """Return a digest of what findings declare, and what decides whether a model can be run on this machine."""
    declared = digests.of_files(FINDINGS.glob("*/__init__.py"), FINDINGS)  # read as files: importing takes a second
    return declared, *(str(_version(name)) for name in (*LIBRARIES, "wordfreq")), str(memory.of_machine() // GIB)


def _version(name: str) -> str | None:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(name)
    return None


# Stored against planned


@dataclass
class Reconciled:
    """A model's stored results, compared with its plans.

    `stored` has the results, by finding, that are what its plan would give; `left` the plans that have none;
    `damaged` a sentence for each result that can't be trusted; `unknown` findings that the atlas no longer has;
    `outdated` findings whose stored results are of an older version and stay.
    `record` is what must be written of the model itself, if anything; `is_done` says that there is nothing to do.
    """

    stored: dict[str, StoredFinding] = field(default_factory=dict)
    left: "list[Plan]" = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    record: ModelRecord | None = None
    is_done: bool = False


def reconcile(prepared: "Prepared", settings: RunSettings, store: Store) -> Reconciled:
    name = prepared.record.name
    found, measured_before = Reconciled(), list[StoredFinding]()
    for planned in prepared.plans:
        finding, stored = planned.finding.name, None
        try:
            if (there := store.finding(name, finding)) is not None:
                measured_before.append(there)
                stored = _as_planned(planned, settings, there, name, store)
        except InputError as error:
            found.damaged.append(f"{name}: {finding} is computed again: {error}")
        if stored is None:
            found.left.append(planned)
            continue
        found.stored[finding] = stored
        if planned.key is not None and stored.version != planned.finding.version:
            found.outdated.append(finding)
    others = set(store.finding_names(name)) - {planned.finding.name for planned in prepared.plans}
    for finding in sorted(others):
        with suppress(InputError):  # damage is reported where it is asked for
            measured_before += filter(None, [store.finding(name, finding)])
    if changed := _of_other_weights(prepared, measured_before):
        found.damaged.append(f"{name}: what is stored of {', '.join(changed)} was measured from other weights.")
    found.unknown = sorted(others - {finding.name for finding in all_findings.FINDINGS}) if others else []
    found.record = _wanted(prepared.record, store)
    is_tidy = not others and store.is_tidy(name, found.stored.values())
    found.is_done = is_tidy and not found.left and found.record is None
    return found


def _of_other_weights(prepared: "Prepared", stored: list[StoredFinding]) -> list[str]:
    now = {tensor.name: tensor for planned in prepared.plans for tensor in planned.tensors.values()}
    return [each.finding for each in stored if any(now.get(t.name, t) != t for t in each.tensors.values())]


def _as_planned(
    planned: "Plan", settings: RunSettings, stored: StoredFinding, name: str, store: Store
) -> StoredFinding | None:
    if planned.key is None and not (planned.here and stored.status == "computed"):
        return stored if (stored.status, stored.reason) == (planned.status, planned.reason) else None
    stays = settings.keep_outdated and stored.version not in (None, planned.finding.version)
    if planned.key is not None and not stays:
        is_done = stored.key == planned.key and stored.status in ("computed", "not_applicable")
        if not is_done or has_time_for_more(settings, stored.run):
            return None
    store.arrays(name, stored)
    return stored


def _wanted(record: ModelRecord, store: Store) -> ModelRecord | None:
    """Return what is to be written of a model, None where it is stored."""
    try:
        return None if store.model(record.name) == record else record
    except InputError:
        return record  # damaged: written anew
