"""One model, from its weights to its results: open, plan, compute what isn't known yet, save."""

import hashlib
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib import metadata
from pathlib import Path

from numpy import ndarray as Array

from generators.base.errors import AtlasError, InputError
from generators.findings import FINDINGS, Finding
from generators.findings.finding import NO_TOKENS, Claim, NotApplicableError, Result, TokenFacts
from generators.findings.thresholds import RULES, untested
from generators.checkpoint.registry import Model
from generators.compute.results import (
    FindingRecord,
    ModelFindings,
    ModelRecord,
    SourceRecord,
    Store,
    TensorEntry,
    as_claim_record,
    as_record,
    as_result,
    content_key,
)
from generators.checkpoint.checkpoint import Checkpoint, open_checkpoint
from generators.checkpoint.sources import Files, Hub, locate

Report = Callable[[str], None]
TOKEN_FILES = ("tokenizer.json", "vocab.json", "merges.txt", "vocab.txt")
COUNTS_FILE = "token_counts.npy"
TOKEN_FACTS_VERSION = 1  # raise it when tokens.py or frequency.py make other facts of the same files


@dataclass(frozen=True)
class Places:
    """Where weights are looked for, beside a model's own sources."""

    models_dirs: Sequence[Path] = ()
    hub: Hub = field(default_factory=Hub)


@dataclass(frozen=True)
class TokenSources:
    """Where a model's token facts come from; they are loaded only when a finding is computed from them."""

    files: Files
    model: Model
    vocab_size: int

    @cached_property
    def facts(self) -> TokenFacts:
        """Load vocabulary and frequencies."""
        from generators.tokens.frequency import token_frequencies
        from generators.tokens.vocabulary import load_vocabulary

        vocabulary = load_vocabulary(self.files, self.vocab_size)
        return TokenFacts(
            vocabulary,
            token_frequencies(self.files, self.model.frequency, vocabulary, self.vocab_size, self.model.counts),
        )

    def key(self, *, frequencies: bool) -> dict[str, str | None]:
        """Return what the facts depend on: digests of the files they are made from, and versions."""
        parts: dict[str, str | None] = {name: self._digest(name) for name in TOKEN_FILES}
        parts["version"] = str(TOKEN_FACTS_VERSION)
        if frequencies:
            parts[COUNTS_FILE] = self._digest(COUNTS_FILE)
            if self.model.counts is not None:
                parts["counts"] = _digest_of(self.model.counts)
            wordfreq = self.model.frequency == "wordfreq"
            parts["frequency"] = f"wordfreq {metadata.version('wordfreq')}" if wordfreq else self.model.frequency
        return parts

    def _digest(self, name: str) -> str | None:
        path = self.files.fetch(name)
        return None if path is None else _digest_of(path)


def _digest_of(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}.") from error


@dataclass(frozen=True)
class Outcome:
    """What computing a model came to: findings computed now, found stored, and failed (with why)."""

    name: str
    computed: tuple[str, ...]
    stored: tuple[str, ...]
    failed: dict[str, str]


def compute_model(model: Model, places: Places, store: Store, report: Report = lambda line: None) -> Outcome:
    """Compute every finding of a model that its stored results don't hold already.

    Results are saved after each finding, so that a killed run loses one at the most.

    Raises:
        InputError: the checkpoint can't be used.
        WeightsUnavailableError: it can't be had now.
        AtlasError: results can't be written.
    """
    files = locate(model, places.models_dirs, places.hub)
    checkpoint = open_checkpoint(files, model.family)
    tokens = TokenSources(files, model, checkpoint.architecture.vocab_size)
    with store.locked(model.name):
        return _compute_all(model, checkpoint, tokens, store, report)


@dataclass(frozen=True)
class Plan:
    """What a finding will be computed from: its tensors and the key they give, or why it can't be."""

    finding: Finding
    tensors: dict[str, TensorEntry] = field(default_factory=dict)
    key: str | None = None
    blocked: FindingRecord | None = None


@dataclass(frozen=True)
class Answer:
    """A finding's record and claims; arrays only if it was computed just now."""

    record: FindingRecord
    claims: list[Claim]
    new_arrays: dict[str, Array] | None = None


def _compute_all(model: Model, checkpoint: Checkpoint, tokens: TokenSources, store: Store, report: Report) -> Outcome:
    plans = [
        _plan(finding, checkpoint, tokens) for finding in FINDINGS
    ]  # reads and checks every tensor before anything else
    header = _describe(model, checkpoint)
    before = _stored_or_none(store, model.name, report)
    answers: dict[str, Answer] = {}
    for plan in plans:
        answer = _answer(plan, checkpoint, tokens, before, store, report)
        answers[plan.finding.name] = answer
        if answer.new_arrays is not None and plan.key is not None:
            store.save(_assembled(header, plans, answers, before), {plan.key: answer.new_arrays})
    after = _assembled(header, plans, answers, None)
    if before is None or after.model_dump() != before.model_dump():
        store.save(after, {})
    store.prune(model.name)
    computed = tuple(name for name, answer in answers.items() if answer.new_arrays is not None)
    return Outcome(
        model.name,
        computed,
        tuple(n for n, a in answers.items() if a.record.status == "computed" and n not in computed),
        {n: a.record.reason or "" for n, a in answers.items() if a.record.status == "failed"},
    )


def _assembled(
    header: ModelRecord, plans: list[Plan], answers: dict[str, Answer], before: ModelFindings | None
) -> ModelFindings:
    """Return what is known so far; what is not answered yet stays as it was before."""
    records = {} if before is None else dict(before.findings)
    tensors = {} if before is None else dict(before.tensors)
    claims = [] if before is None else [c for c in before.claims if c.finding not in answers]
    for plan in plans:
        answer = answers.get(plan.finding.name)
        if answer is not None:
            records[plan.finding.name] = answer.record
            tensors |= plan.tensors
            claims += [as_claim_record(claim) for claim in answer.claims]
    order = [rule.id for rule in RULES]
    return ModelFindings(
        model=header,
        tensors=tensors,
        findings={f.name: records[f.name] for f in FINDINGS if f.name in records},
        claims=sorted((c for c in claims if c.id in order), key=lambda c: order.index(c.id)),
    )


def _plan(finding: Finding, checkpoint: Checkpoint, tokens: TokenSources) -> Plan:
    blocked = _blocked(finding, checkpoint)
    if blocked is not None:
        return Plan(finding, blocked=blocked)
    roles = finding.roles(finding.needs + finding.uses, checkpoint.architecture.n_layer)
    tensors = {role: TensorEntry(**asdict(checkpoint.record(role))) for role in roles if role in checkpoint}
    key = content_key(
        {
            "finding": finding.name,
            "version": finding.version,
            "parameters": dict(finding.parameters),
            "architecture": asdict(checkpoint.architecture),
            "tensors": {role: tensor.sha256 for role, tensor in tensors.items()},
            **({"tokens": tokens.key(frequencies=finding.reads_frequencies)} if finding.reads_vocabulary else {}),
        }
    )
    return Plan(finding, tensors, key)


def _answer(
    plan: Plan,
    checkpoint: Checkpoint,
    tokens: TokenSources,
    before: ModelFindings | None,
    store: Store,
    report: Report,
) -> Answer:
    finding, name = plan.finding, tokens.model.name
    if plan.blocked is not None or plan.key is None:
        record = plan.blocked or FindingRecord(status="missing", version=finding.version)
        return Answer(record, _untested(finding, record.reason or ""))
    known = before.findings.get(finding.name) if before else None
    if known is not None and known.key == plan.key:
        try:
            arrays = store.arrays(name, plan.key) if known.status == "computed" else {}
            return Answer(known, _claims(finding, known, arrays))
        except InputError as error:
            report(f"{name}: {finding.name} is computed again: {error}")
        except Exception as error:
            report(f"{name}: {finding.name} is computed again: its stored metrics are damaged ({error!r}).")
    report(f"{name}: computing {finding.name}")
    return _computed(plan, plan.key, checkpoint, tokens, report)


def _computed(plan: Plan, key: str, checkpoint: Checkpoint, tokens: TokenSources, report: Report) -> Answer:
    finding = plan.finding
    try:
        facts = tokens.facts if finding.reads_vocabulary else NO_TOKENS
        result = finding.compute(checkpoint, checkpoint.architecture, facts)
        record = as_record(result, finding.version, key, _today())
        return Answer(record, _claims(finding, record, result.arrays), result.arrays)
    except NotApplicableError as sentence:
        reason = str(sentence)
        record = FindingRecord(
            status="not_applicable", reason=reason, version=finding.version, key=key, computed_on=_today()
        )
        return Answer(record, _untested(finding, reason))
    except AtlasError:
        raise
    except Exception as error:  # a finding that breaks must not cost the others
        reason = f"{type(error).__name__}: {error}"
        report(f"{tokens.model.name}: {finding.name} failed\n{traceback.format_exc()}")
        record = FindingRecord(status="failed", reason=reason, version=finding.version)
        return Answer(record, _untested(finding, f"The finding failed: {reason}"))


def _claims(finding: Finding, record: FindingRecord, arrays: dict[str, Array]) -> list[Claim]:
    if record.status != "computed":
        return _untested(finding, record.reason or "")
    return finding.claims(as_result(record, arrays))


def _untested(finding: Finding, reason: str) -> list[Claim]:
    return [untested(rule.id, reason) for rule in RULES if rule.finding == finding.name]


def _blocked(finding: Finding, checkpoint: Checkpoint) -> FindingRecord | None:
    """Return why a finding can't be computed from this checkpoint, None if it can."""
    n_layer = checkpoint.architecture.n_layer
    of_family = dict(checkpoint.family.roles(n_layer))
    for pattern in finding.needs:
        roles = [role for role in finding.roles((pattern,), n_layer) if role in of_family]
        if not roles:
            name = checkpoint.family.name
            reason = checkpoint.family.without.get(pattern, f"The {name} architecture has no {pattern}.")
            return FindingRecord(status="not_applicable", reason=reason, version=finding.version)
        absent = [role for role in roles if role not in checkpoint]
        if absent:
            more = f" and {len(absent) - 1} more like it" if len(absent) > 1 else ""
            reason = f"The checkpoint lacks {checkpoint.lacking(absent[0])}{more}."
            return FindingRecord(status="missing", reason=reason, version=finding.version)
    return None


def _describe(model: Model, checkpoint: Checkpoint) -> ModelRecord:
    a = checkpoint.architecture
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
        licence=model.licence,
        notes=model.notes,
    )


def _stored_or_none(store: Store, name: str, report: Report) -> ModelFindings | None:
    try:
        return store.load(name)
    except InputError as error:
        report(f"{name}: {error}")
        return None


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def stored_result(store: Store, name: str, record: FindingRecord) -> Result:
    """Return a computed finding's stored result with its arrays.

    Raises:
        InputError: its arrays are absent or damaged.
    """
    return as_result(record, store.arrays(name, record.key or ""))
