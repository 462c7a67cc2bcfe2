"""Stored results as they are shown: every claim judged now, by today's rules.

What can't be shown is said: nothing stored, damaged, measured by an older version in another form. Needs no weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from generators import findings as all_findings
from generators.base.errors import InputError
from generators.checkpoint.registry import ON_OWN_SAMPLES
from generators.compute import records
from generators.compute.results import Store
from generators.findings.contract import Finding
from generators.findings.growing import NumberPath, as_stored, with_nulls
from generators.findings.inputs import RUN
from generators.findings.judging import Claim, Verdict
from generators.findings.measured import UNKNOWN, KnownOfModel, Measurements

NOT_YET = "It has not been computed for this model yet."
NOT_MEASURED = "This number was not measured when the model was computed; compute it again with: atlas compute {}."
OTHER_FORM = "What is stored was measured by an older version of this finding, in another form; compute it again."


@dataclass(frozen=True)
class JudgedFinding:
    """One finding of one model: what is stored of it (None: nothing that can be shown), and its claims judged now.

    The record's `older_code` says that an older version of the finding measured it, `damaged` why what is stored
    can't be trusted.
    """

    finding: Finding[Any]
    record: records.FindingRecord
    claims: tuple[Claim, ...]
    stored: records.StoredFinding | None = None
    measured: Measurements[Any] | None = None
    damaged: str | None = None


@dataclass(frozen=True)
class JudgedModel:
    record: records.ModelRecord
    findings: tuple[JudgedFinding, ...]
    mixed: str | None = None  # a sentence if they were measured from different weights

    @property
    def damaged(self) -> list[str]:
        found = [judged.damaged for judged in self.findings if judged.damaged]
        return found if self.mixed is None else [*found, self.mixed]

    def published(self) -> records.ModelFindings:
        tensors: dict[str, records.TensorEntry] = {}
        for judged in self.findings:
            tensors |= judged.stored.tensors if judged.stored else {}
        return records.ModelFindings(
            model=self.record,
            tensors=tensors,
            findings={judged.finding.name: judged.record for judged in self.findings},
            claims=[records.claim_record(claim) for judged in self.findings for claim in judged.claims],
        )


def judged_model(store: Store, name: str, findings: Sequence[Finding[Any]] | None = None) -> JudgedModel | None:
    """Read a model's results and judge its claims; None without any. Raises InputError: its record is damaged."""
    record = store.model(name)
    if record is None:
        return None
    chosen = all_findings.FINDINGS if findings is None else findings
    judged = tuple(_on_both_texts(store, name, finding, record) for finding in chosen)
    stored = [each.stored for each in judged if each.stored is not None]
    return JudgedModel(record, judged, store.of_different_weights(name, stored))


def _on_both_texts(store: Store, name: str, finding: Finding[Any], of: records.ModelRecord) -> JudgedFinding:
    """Read and judge one finding; a different verdict on the model's own samples makes it a close call."""
    judged = judged_finding(store, name, finding, of)
    if RUN not in finding.needs or name.endswith(ON_OWN_SAMPLES):
        return judged
    other = {claim.id: claim.verdict for claim in judged_finding(store, name + ON_OWN_SAMPLES, finding).claims}
    claims = tuple(_beside(claim, other[claim.id]) for claim in judged.claims)
    return replace(judged, claims=claims)


def _beside(claim: Claim, other: Verdict) -> Claim:
    if "untested" in (claim.verdict, other):
        return claim
    return replace(claim, close=claim.close or claim.verdict != other, on_own_samples=other)


def judged_finding(
    store: Store, name: str, finding: Finding[Any], of: records.ModelRecord | None = None
) -> JudgedFinding:
    """Read and judge one finding; `of` is the record of the model, for what only its architecture decides."""
    try:
        whole = store.load(name, finding.name)
    except InputError as error:
        return _without_numbers(finding, "missing", str(error), damaged=str(error))
    if whole is None:
        return _without_numbers(finding, "missing", NOT_YET)
    stored, arrays = whole
    if stored.status != "computed":
        return _without_numbers(finding, stored.status, stored.reason, stored)
    try:
        metrics, absent = read_metrics(finding.metrics, stored.metrics)
    except ValidationError:
        return _without_numbers(finding, "missing", OTHER_FORM)
    known = UNKNOWN if of is None else KnownOfModel(*(getattr(of, one.name) for one in fields(KnownOfModel)))
    measured = as_stored(metrics, records.tables_of(stored), arrays, absent, NOT_MEASURED.format(name), known)
    try:
        claims = tuple(finding.claims(measured))
    except Exception as error:  # a broken rule must not cost other findings their verdicts
        reason = f"Its claims can't be judged: {type(error).__name__}: {error}"
        return _without_numbers(finding, "failed", reason, stored, damaged=reason)
    record = records.FindingRecord(
        status="computed",
        key=stored.key,
        computed_on=stored.computed_on,
        older_code=stored.version != finding.version,
        run=stored.run,
        metrics=with_nulls(stored.metrics, absent),
        not_measured=absent,
        tables=stored.tables,
    )
    return JudgedFinding(finding, record, claims, stored, measured)


def read_metrics(kind: type[Any], stored: Any) -> tuple[Any, tuple[NumberPath, ...]]:
    """Return stored metrics checked by their type, and the numbers that they lack: those were added to it since.

    Numbers that are no longer measured are left off.

    Raises ValidationError: a number is of another type, or some are lacking and others are there in their place.
    """
    as_kind = TypeAdapter(kind)
    try:
        return as_kind.validate_python(stored, extra="forbid"), ()
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False)
        if {fault["type"] for fault in faults} == {"extra_forbidden"}:
            return as_kind.validate_python(stored, extra="ignore"), ()
        if any(fault["type"] != "missing" for fault in faults):
            raise
        return stored, tuple(fault["loc"] for fault in faults)


def _without_numbers(
    finding: Finding[Any],
    status: records.Status,
    reason: str | None,
    stored: records.StoredFinding | None = None,
    damaged: str | None = None,
) -> JudgedFinding:
    record = records.FindingRecord(status=status, reason=reason, key=None if stored is None else stored.key)
    return JudgedFinding(finding, record, tuple(finding.untested(reason or "")), stored, damaged=damaged)
