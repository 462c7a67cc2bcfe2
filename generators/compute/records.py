import operator
import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from generators.base.plain import content_digest, plain
from generators.base.progress import printable
from generators.base.verdicts import SYMBOLS, WEAK
from generators.checkpoint.registry import SLUG, Title
from generators.findings.judging import Claim, IntervalKind, Verdict, beyond_chance
from generators.findings.measured import Measurements, Table

SCHEMA_VERSION: Literal[2] = 2
Status = Literal["computed", "missing", "not_applicable", "failed"]
SHA256 = "^[0-9a-f]{64}$"
HYPHEN_AS_MINUS = re.compile(r"(?<![\w.)\]])-(?=\d)")  # matches no hyphen in GPT-2, 3-4 or 1e-05
# Terminals and pages never get invisible characters, whatever the source.
Shown = Annotated[str, AfterValidator(printable)]


def _shown(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return value if value.isprintable() else printable(value)
    if isinstance(value, dict):
        return {printable(key): _shown(item) for key, item in value.items()}
    return [_shown(item) for item in value] if isinstance(value, list) else value


def _shown_rows(rows: tuple[tuple[JsonValue, ...], ...]) -> tuple[tuple[JsonValue, ...], ...]:
    return tuple(tuple(_shown(cell) if isinstance(cell, str | list | dict) else cell for cell in row) for row in rows)


ShownJson = Annotated[JsonValue, AfterValidator(_shown)]


class Record(BaseModel):
    """Plain data as it is stored or published; absent numbers are null."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceRecord(Record):
    """Where the weights that were read came from."""

    kind: Shown
    place: Shown
    revision: Shown | None = None
    commit: Shown | None = None


class ModelRecord(Record):
    """What is known of a model beside its findings."""

    name: str = Field(pattern=f"^{SLUG.pattern}$")
    title: Title
    family: Shown
    n_layer: int
    n_head: int
    d_model: int
    n_ctx: int | None
    vocab_size: int | None
    causal: bool | None = Field(description="null where the atlas has no table for models of this type")
    post_norm: bool | None = Field(description="null where the atlas has no table for models of this type")
    shares_block: bool = Field(
        default=False,
        exclude_if=lambda shares: not shares,
        description="whether one block is used in all layers; findings about weights measure it once, as layer 0",
    )
    tied: bool | None = Field(
        default=None,
        exclude_if=lambda tied: tied is None,
        description="whether its output embedding, if any, is the token embedding; absent where that isn't known",
    )
    source: SourceRecord
    licence: Shown | None = None
    notes: Shown | None = None


class TensorEntry(Record):
    """A tensor that was read, as it stands in the file."""

    name: Shown
    shape: tuple[int, ...]
    dtype: Shown
    sha256: str = Field(pattern=SHA256)


class TableRecord(Record):
    """A table: a title that says what one row is, columns, rows."""

    title: Shown
    columns: tuple[Shown, ...]
    rows: Annotated[tuple[tuple[JsonValue, ...], ...], AfterValidator(_shown_rows)]


class StoredFinding(Record):
    """What was measured of one finding in one model: numbers, tables, what they were measured from. No verdicts.

    `key` is the digest of all that it depends on, `arrays_sha256` that of the file of arrays beside it; `version` is
    the finding's when it was measured, 0 before findings had versions. `model` is the one that it is stored under.
    """

    schema_version: Literal[2] = SCHEMA_VERSION
    finding: str = Field(pattern="^[a-z][a-z0-9_]*$")
    model: Shown | None = None
    status: Status
    reason: Shown | None = None
    key: str | None = Field(default=None, pattern=SHA256)
    version: int | None = Field(default=None, ge=0)
    computed_on: str | None = Field(default=None, pattern=r"^\d{4}-\d\d-\d\d$", description="UTC date")
    tensors: dict[str, TensorEntry] = {}
    run: dict[Shown, Shown] | None = Field(default=None, description="how the model was run: libraries, dtype, text")
    metrics: dict[Shown, ShownJson] | None = None
    tables: dict[str, TableRecord] = {}
    arrays_sha256: str | None = Field(default=None, pattern=SHA256)

    def digest(self) -> str:
        return content_digest(self.model_dump(mode="json"))


def differing(found: Iterable[StoredFinding]) -> tuple[str, str, str] | None:
    """Return two findings, and the name that they give two tensors; None where each name is of one tensor."""
    first: dict[str, tuple[TensorEntry, str]] = {}
    for record in found:
        for tensor in record.tensors.values():
            before, finding = first.setdefault(tensor.name, (tensor, record.finding))
            if before != tensor:
                return finding, record.finding, tensor.name
    return None


class FindingRecord(Record):
    """One finding of one model as it is published."""

    status: Status
    reason: Shown | None = None
    key: str | None = None
    computed_on: str | None = Field(default=None, description="UTC date")
    older_code: bool = Field(default=False, description="measured by an older version of this finding")
    run: dict[Shown, Shown] | None = Field(default=None, description="how the model was run: libraries, dtype, text")
    metrics: dict[str, JsonValue] | None = None
    not_measured: tuple[tuple[str | int, ...], ...] = Field(
        default=(),
        exclude_if=lambda paths: not paths,
        description="where metrics are null because the number did not exist yet when the model was measured",
    )
    tables: dict[str, TableRecord] = {}


class ChanceRecord(Record):
    """What a null gives for a claim's value; `limit` is the percentile that `holds` has to pass."""

    null: str
    median: float
    limit: float
    draws: int = Field(description="0 where it is computed exactly")


class ClaimRecord(Record):
    """One claim: verdict, effect size with its interval, from where it holds and is partly, what chance gives."""

    id: str
    finding: str
    statement: str
    verdict: Verdict
    value: float | None
    interval: tuple[float, float] | None = None
    interval_kind: IntervalKind | None = Field(
        default=None,
        description="what the interval is over: blocks of positions, tokens or channels of fixed matrices (stability "
        "range), or text on which the model was run (95 % interval)",
    )
    threshold: float | None
    partly_threshold: float | None = Field(default=None, description="from where it is partly, chance included")
    baseline: float | None
    chance: ChanceRecord | None = None
    close: bool = Field(
        default=False,
        description="a cutoff lies inside the interval, or within 10 % of itself from a value without one, or the "
        "verdict is another one on the model's own samples",
    )
    unit: str
    answer: str
    on_own_samples: Verdict | None = Field(
        default=None,
        exclude_if=lambda verdict: verdict is None,
        description="the verdict on the model's own samples, where it was run on them beside its text",
    )
    weak: bool = Field(
        default=False, exclude_if=operator.not_, description="it fails by its threshold alone: it is beyond chance"
    )
    depends_on: str = Field(
        default="",
        exclude_if=operator.not_,
        description="the choice under which the verdict is another one; the answer gives both numbers",
    )

    @property
    def in_words(self) -> str:
        """Return the verdict as it is read: what fails beyond chance is there, but weak."""
        return "present, weak" if self.weak else self.verdict

    @property
    def beyond_chance(self) -> float | None:
        """Return how far a share lies on the way from what chance gives to all."""
        if self.value is None or self.chance is None:
            return None
        return beyond_chance(self.value, self.chance.median)

    @property
    def symbol(self) -> str:
        return WEAK if self.weak else SYMBOLS[self.verdict]


class ModelFindings(Record):
    """All that the atlas publishes about one model: `findings.json`."""

    schema_version: Literal[2] = SCHEMA_VERSION
    model: ModelRecord
    tensors: dict[str, TensorEntry]
    findings: dict[str, FindingRecord]
    claims: list[ClaimRecord]


def json_schema() -> dict[str, Any]:
    schema = ModelFindings.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Helix Atlas findings"}


def claim_record(claim: Claim) -> ClaimRecord:
    answer = HYPHEN_AS_MINUS.sub("−", claim.answer)
    return ClaimRecord(**plain(asdict(claim)) | {"answer": answer})


def table_records(measured: Measurements[Any]) -> dict[str, TableRecord]:
    return {name: TableRecord(**plain(asdict(table))) for name, table in measured.tables.items()}


def tables_of(record: StoredFinding) -> dict[str, Table]:
    return {name: Table(table.title, table.columns, table.rows) for name, table in record.tables.items()}
