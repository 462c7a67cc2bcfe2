"""What a finding of a model would be measured from: its inputs, and the key that they and the code give.

A key says everything that a result depends on: the tensors that are read and how the family's table lays them out,
the config fields that are used, what tokens and their frequencies are made from, and the finding's version. All of it
is bytes and integers that files hold: no computed number, whose last digits depend on the processor, and no words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from numpy import ndarray as Array

from generators.base.architecture import Architecture
from generators.base.frequencies import TokenFrequency
from generators.base.once import once
from generators.base.plain import content_digest, unusual
from generators.base.progress import Report, silent
from generators.checkpoint.checkpoint import Checkpoint, open_checkpoint
from generators.checkpoint.families import has_table
from generators.checkpoint.registry import Model
from generators.checkpoint.sources import Files, Places, locate
from generators.compute import running
from generators.compute.records import ModelRecord, SourceRecord, Status, TensorEntry
from generators.findings.contract import Finding, roles
from generators.findings.inputs import CAPABILITIES, FREQUENCIES, RUN, TOKENS, Inputs
from generators.tokens.frequency import token_frequencies
from generators.tokens.tokenizer_files import load_vocabulary
from generators.tokens.vocabulary import ModelVocabulary

if TYPE_CHECKING:
    from generators.runner.run import OpenedModel

# Published fields of an architecture.
SAID_BY_TABLE = ("causal", "post_norm", "tied")
SHOWN = ("family", "n_layer", "n_head", "d_model", "n_ctx", "vocab_size", "shares_block", *SAID_BY_TABLE)
FIELDS = frozenset(each.name for each in fields(Architecture))
COMPUTED = ("rotary", "slopes", "score_scale", "embedding_scale")  # fields that tables compute from config.json


@dataclass(frozen=True)
class Reading:
    """The roles that a finding reads of a checkpoint, or why it can't be measured (`status`, `reason`)."""

    roles: tuple[str, ...]
    status: Status = "computed"
    reason: str | None = None


@dataclass(frozen=True)
class Opened:
    """A model whose checkpoint is open; token facts are loaded when they are first asked for."""

    model: Model
    files: Files
    checkpoint: Checkpoint
    settings: running.RunSettings = running.AS_USUAL
    _readings: dict[str, Reading] = field(default_factory=dict, init=False, repr=False, compare=False)

    def reading(self, finding: Finding[Any]) -> Reading:
        if finding.name not in self._readings:
            self._readings[finding.name] = _reading(finding, self.checkpoint)
        return self._readings[finding.name]

    @once
    def vocabulary(self) -> ModelVocabulary | None:
        size = self.checkpoint.architecture.vocab_size
        return None if size is None else load_vocabulary(self.files, size)

    @once
    def frequencies(self) -> tuple[TokenFrequency, ...]:
        """Return sources of token frequencies, best first."""
        size = self.checkpoint.architecture.vocab_size
        if size is None:
            return ()
        return token_frequencies(self.files, self.model.frequency, self.vocabulary, size, self.model.counts)

    @once
    def run(self) -> "OpenedModel":
        run = running.opened_model(self.files, self.checkpoint, self.settings.device)
        if self.settings.own_samples:
            run.text = run.own_samples
        return run

    @once
    def why_no_run(self) -> str | None:
        """Return why the model can't be run here, as far as known without opening it."""
        if self.settings.skip:
            return running.SKIPPED
        return running.why_not(self.files, self.checkpoint, self.settings.device)

    def depends_on(self, capability: str) -> Any:
        if capability == TOKENS:
            return None if self.vocabulary is None else self.vocabulary.digest
        if capability == FREQUENCIES:
            return [list(frequency.made_from) for frequency in self.frequencies]
        return None if self.why_no_run else self._run_depends_on

    @once
    def _run_depends_on(self) -> dict[str, Any]:
        forced = {"text": running.OWN_SAMPLES} if self.settings.own_samples else {}
        return running.depends_on(self.files, self.checkpoint) | forced


def open_model(model: Model, places: Places, settings: running.RunSettings = running.AS_USUAL) -> Opened:
    files = locate(model, places.models_dirs, places.hub)
    return Opened(model, files, open_checkpoint(files, model.family), settings)


@dataclass(frozen=True)
class Plan:
    """What a finding will be measured from and the key that this gives; or why it can't be (`status`, `reason`).

    `here` says that it is this machine that can't, and not the weights: then a stored result stays.
    """

    finding: Finding[Any]
    tensors: dict[str, TensorEntry] = field(default_factory=dict)
    key: str | None = None
    status: Status = "computed"
    reason: str | None = None
    here: bool = False


@dataclass(frozen=True)
class Prepared:
    """A model after its tensors were read: its record, and a plan for each finding."""

    record: ModelRecord
    plans: tuple[Plan, ...]


def prepare(opened: Opened, findings: Sequence[Finding[Any]], report: Report = silent) -> Prepared:
    """Plan findings, which reads and checks every tensor that they read; those from elsewhere come first."""
    read, whole = to_read(findings, opened)
    opened.checkpoint.prefetch(read, report, whole=whole)
    plans = tuple(plan(finding, opened) for finding in findings)
    return Prepared(_describe(opened.model, opened.checkpoint), plans)


def to_read(findings: Sequence[Finding[Any]], opened: Opened) -> tuple[list[str], bool]:
    """Return the roles that the plans of findings read, and whether whole files are needed, with all tensors."""
    free = [(finding, read) for finding in findings if (read := opened.reading(finding)).reason is None]
    if any(RUN in finding.needs for finding, _ in free) and not opened.why_no_run:
        return list(opened.checkpoint), True
    roles_read = (role for finding, read in free if RUN not in finding.needs for role in read.roles)
    return list(dict.fromkeys(roles_read)), False


def plan(finding: Finding[Any], opened: Opened) -> Plan:
    """Plan one finding, which reads and checks all of its tensors."""
    read = opened.reading(finding)
    if read.reason is not None:
        return Plan(finding, status=read.status, reason=read.reason)
    if RUN in finding.needs and opened.why_no_run:
        return Plan(finding, status="missing", reason=opened.why_no_run, here=True)
    checkpoint = opened.checkpoint
    tensors = {role: TensorEntry(**asdict(checkpoint.record(role))) for role in read.roles}
    made_of = {
        "finding": finding.name,
        "version": finding.version,
        "config": _config(finding, seen_by(finding, checkpoint)),
        "tensors": {role: [checkpoint.content(role), checkpoint.layout(role)] for role in read.roles},
        **{name: opened.depends_on(name) for name in CAPABILITIES if finding.can_use(name)},
    }
    return Plan(finding, tensors, content_digest(made_of))


def seen_by(finding: Finding[Any], checkpoint: Checkpoint) -> Architecture:
    """Return the architecture as a finding sees it: a block that all layers share is one layer until it is run."""
    architecture = checkpoint.architecture
    once = architecture.shares_block and RUN not in finding.needs
    return replace(architecture, n_layer=1) if once else architecture


def _config(finding: Finding[Any], architecture: Architecture) -> dict[str, Any]:
    """Return the config fields that a finding declares; computed ones are replaced by their sources."""
    given = unusual(architecture)
    declared = {name: given[name] for name in finding.config if name in given}
    computed = [name for name in COMPUTED if name in declared]
    stated = {"computed": computed, **architecture.stated} if computed else {}
    return {name: value for name, value in declared.items() if name not in computed} | stated


def inputs(finding: Finding[Any], opened: Opened) -> Inputs:
    return Inputs(
        weights=_Declared(opened.checkpoint, opened.reading(finding).roles),
        architecture=_DeclaredFields(finding, seen_by(finding, opened.checkpoint)),
        vocabulary=opened.vocabulary if finding.can_use(TOKENS) else None,
        frequencies=opened.frequencies if finding.can_use(FREQUENCIES) else (),
        run=opened.run if finding.can_use(RUN) and not opened.why_no_run else None,
    )


def _reading(finding: Finding[Any], checkpoint: Checkpoint) -> Reading:
    family, n_layer = checkpoint.family, seen_by(finding, checkpoint).n_layer
    wanted = {pattern: roles((pattern,), n_layer) for pattern in (*finding.needs, *finding.uses)}
    absent = {role: checkpoint.missing_for(role) for each in wanted.values() for role in each}
    there = tuple(role for role, lacking in absent.items() if not lacking)
    if not has_table(family) and _needs_table(finding):
        return Reading(there, "not_applicable", family.without["*"])
    if finding.unless is not None and (why_not := finding.unless(checkpoint.architecture)) is not None:
        return Reading(there, "not_applicable", why_not)
    of_family = dict(family.roles(n_layer))
    for pattern in finding.needs:
        known = [role for role in wanted[pattern] if role in of_family]
        if wanted[pattern] and not known:
            reason = family.without.get(pattern, f"The {family.name} architecture has no {pattern}.")
            return Reading(there, "not_applicable", reason)
        lacking = list(dict.fromkeys(one for role in known for one in absent[role]))
        if lacking:
            more = f" and {len(lacking) - 1} more like it" if len(lacking) > 1 else ""
            return Reading(there, "missing", f"The checkpoint lacks {checkpoint.lacking(lacking[0])}{more}.")
    return Reading(there)


def _needs_table(finding: Finding[Any]) -> bool:
    roles = {role for role in finding.needs if role not in CAPABILITIES}
    return RUN in finding.needs or "unembedding" in finding.uses or roles != {"token_embedding"}


class _Declared(Mapping[str, Array]):
    def __init__(self, checkpoint: Checkpoint, declared: tuple[str, ...]) -> None:
        self._checkpoint, self._declared = checkpoint, declared

    def __getitem__(self, role: str) -> Array:
        if role not in self._declared:
            raise KeyError(role)
        return self._checkpoint[role]

    def __contains__(self, role: object) -> bool:
        return role in self._declared

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)


class _DeclaredFields(Architecture):
    """An architecture of which only the fields that a finding declares, and that enter its key, can be read."""

    def __init__(self, finding: Finding[Any], architecture: Architecture) -> None:
        self.__dict__.update({name: getattr(architecture, name) for name in finding.config}, _finding=finding.name)

    def __getattribute__(self, name: str) -> Any:
        if name in FIELDS and name not in self.__dict__:
            raise AttributeError(f"the finding {self._finding!r} reads {name!r} of the config without declaring it")
        return super().__getattribute__(name)


def _describe(model: Model, checkpoint: Checkpoint) -> ModelRecord:
    a = checkpoint.architecture
    shown = {name: getattr(a, name) for name in SHOWN}
    if not has_table(checkpoint.family):
        shown |= dict.fromkeys(SAID_BY_TABLE)
    return ModelRecord(
        name=model.name,
        title=model.title,
        **shown,
        source=SourceRecord(**asdict(checkpoint.origin)),
        licence=model.licence,
        notes=" ".join(said for said in (model.notes, checkpoint.note) if said) or None,
    )
