"""All results as one table, a row for each claim of each model, and what its columns mean.

`COLUMNS` is the one place that says what is written and what it means: the files, `dictionary.json` and the page
about data are made from it.
"""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from generators.base.plain import as_compact_json, as_json
from generators.compute.records import ClaimRecord, ModelRecord
from generators.findings.judging import VERDICTS, Rule
from generators.site.data import as_csv
from generators.site.staging import Staging
from generators.site.view import ModelPage, Section
from generators.site.words import rules

CSV_FILE, JSON_FILE, PARQUET_FILE = (f"data/atlas.{kind}" for kind in ("csv", "json", "parquet"))
DICTIONARY_FILE = "data/dictionary.json"
ROW = "one claim about one model"
Kind = Literal["text", "whole number", "number", "yes or no", "date"]
IN_PARQUET: Mapping[Kind, str] = {
    "text": "string",
    "whole number": "int64",
    "number": "float64",
    "yes or no": "bool",
    "date": "date32",
}


@dataclass(frozen=True)
class ClaimRow:
    page: ModelPage
    section: Section
    claim: ClaimRecord
    rule: Rule[Any]

    @property
    def model(self) -> ModelRecord:
        return self.page.findings.model


Of = str | Callable[[ClaimRow], Any]  # a path of attributes of a row, or what makes a cell of a row


@dataclass(frozen=True)
class Column:
    """A column: how it is called, of what kind and unit, what it means, what null means; `of` is where its cells are.

    Without `null` there is a value in every row.
    """

    name: str
    kind: Kind
    meaning: str
    of: Of
    unit: str | None = None
    null: str | None = None

    def cell(self, row: ClaimRow) -> Any:
        if not isinstance(self.of, str):
            return self.of(row)
        at: Any = row
        for name in self.of.split("."):
            at = None if at is None else getattr(at, name)
        return at

    def described(self) -> dict[str, str | None]:
        return {
            "name": self.name,
            "type": self.kind,
            "parquet": IN_PARQUET[self.kind],
            "unit": self.unit,
            "meaning": self.meaning,
            "null": self.null,
        }


def _end(row: ClaimRow, at: int) -> float | None:
    return None if row.claim.interval is None else row.claim.interval[at]


def day(stored: str | None) -> str | None:
    """Return the day on which something was measured, as YYYY-MM-DD; None also where what is stored is no day."""
    try:
        return date.fromisoformat(stored or "").isoformat()
    except ValueError:
        return None


NO_INTERVAL = "the value is a count, a sum over a whole matrix, or absent"
NO_CHANCE = "no distribution of chance was drawn, or the claim is untested"


def _text(name: str, meaning: str, of: Of, null: str | None = None) -> Column:
    return Column(name, "text", meaning, of, null=null)


def _count(name: str, meaning: str, of: Of, unit: str, null: str | None = None) -> Column:
    return Column(name, "whole number", meaning, of, unit, null)


def _number(name: str, meaning: str, of: Of, null: str) -> Column:
    return Column(name, "number", meaning, of, "see unit", null)


def _flag(name: str, meaning: str, of: Of, null: str | None = None) -> Column:
    return Column(name, "yes or no", meaning, of, null=null)


NO_TABLE = "the atlas has no table for models of this type"

COLUMNS: tuple[Column, ...] = (
    _text("model", "the model's name, as in the address of its page", "page.name"),
    _text("title", "the model's name, as pages show it", "page.title"),
    _text("family", "the architecture whose table gave tensors their roles", "model.family"),
    _flag("causal", "whether a token sees only those before it", "model.causal", NO_TABLE),
    _flag("post_norm", "whether norms come after attention and MLP (post-norm)", "model.post_norm", NO_TABLE),
    _count("layers", "how many layers the model has", "model.n_layer", "layers"),
    _count("heads", "how many heads of attention a layer has; 0 where it has none", "model.n_head", "heads"),
    _count("d_model", "channels of the residual stream", "model.d_model", "channels"),
    _count(
        "positions",
        "the longest text that the model was made for",
        "model.n_ctx",
        "tokens",
        "the configuration names no longest text",
    ),
    _count("tokens", "tokens of the vocabulary", "model.vocab_size", "tokens", "the model reads no tokens"),
    _flag(
        "only_in_series",
        "whether the model is only in a series: it differs from another in one thing, such as the seed; leave it "
        "out where you count models, as the atlas does",
        lambda row: row.page.series_page is not None,
    ),
    _text("licence", "the licence of the weights", "page.licence", "the registry doesn't say"),
    _text("source", "where weights were read from: hub, package, folder", "model.source.kind"),
    _text("place", "the repository, package or folder there", "model.source.place"),
    _text("revision", "the revision or version that was requested", "model.source.revision", "the source has none"),
    _text("commit", "the commit that was read", "model.source.commit", "the source has none"),
    _text("finding", "the finding's name, as in its address", "section.finding.name"),
    _text("finding_title", "the finding's name, as pages show it", "section.finding.title"),
    _text(
        "status",
        "whether the finding was computed: computed, missing (not with these weights), not_applicable (the "
        "architecture lacks what it is about), failed",
        "section.record.status",
    ),
    _text("reason", "why the finding was not computed", "section.record.reason", "it was computed"),
    _text("claim", "the claim's id, as in its address", "claim.id"),
    _text("claim_title", "the claim in a word or two", "rule.short"),
    _text("statement", "the claim as a sentence", "claim.statement"),
    _text("verdict", ", ".join(VERDICTS), "claim.verdict"),
    _flag(
        "close",
        "whether it is a close call: a cutoff lies in the interval, or within 10 % of a value without one",
        "claim.close",
    ),
    _flag("weak", "whether the value exceeds 99 % of chance and fails only by its threshold", "claim.weak"),
    _text("depends_on", "the choice under which the verdict would differ", "claim.depends_on"),
    _text("measure", "what the value is, in words", "rule.value"),
    _number(
        "value",
        "the effect size that is judged",
        "claim.value",
        "the claim is untested, or there is nothing of the kind to measure",
    ),
    _text(
        "unit",
        "the unit of value, interval, threshold, baseline and chance",
        lambda row: row.claim.unit or None,
        "the value is a pure number: a correlation, a ratio",
    ),
    _text(
        "interval_kind",
        "whether the interval is a stability range (blocks of positions, tokens or channels resampled) or a 95 % "
        "interval (the model's text resampled)",
        "claim.interval_kind",
        NO_INTERVAL,
    ),
    _number("interval_low", "lower end of the value's interval", lambda row: _end(row, 0), NO_INTERVAL),
    _number("interval_high", "upper end of the value's interval", lambda row: _end(row, 1), NO_INTERVAL),
    _text("sense", "at least or at most: on which side of the threshold the claim holds", "rule.sense"),
    _number(
        "threshold",
        "the value from which the claim holds",
        "claim.threshold",
        "it is relative to chance, and nothing was measured to set it by",
    ),
    _number(
        "partly_threshold",
        "the value from which the claim partly holds, with chance taken into account",
        "claim.partly_threshold",
        "no value of this model would be partly",
    ),
    _number(
        "baseline",
        "the value that chance gives: the median of the draws, if there are any",
        "claim.baseline",
        "the claim is untested, or no chance is named",
    ),
    _text("chance_null", "what was drawn at random, in words", "claim.chance.null", NO_CHANCE),
    _number("chance_median", "median of the draws", "claim.chance.median", NO_CHANCE),
    _number(
        "chance_limit",
        "the limit of chance, which a value must pass for the claim to hold: 1 % of draws lie beyond it",
        "claim.chance.limit",
        NO_CHANCE,
    ),
    _count("chance_draws", "how many draws; 0 if chance is exact", "claim.chance.draws", "draws", NO_CHANCE),
    _text("answer", "the verdict as a sentence about this model, or why the claim is untested", "claim.answer"),
    Column(
        "computed_on",
        "date",
        "the day on which the finding was measured",
        lambda row: day(row.section.record.computed_on),
        "UTC",
        "it was not measured",
    ),
    _flag(
        "older_code",
        "whether an older version of the code measured it, because the weights have been missing since",
        "section.record.older_code",
    ),
    _text(
        "digest",
        "SHA-256 of all that the measurement depends on: tensors, tokens, configuration, version",
        "section.record.key",
        "nothing was measured",
    ),
    _text(
        "page",
        "the claim's address, from the root of this site",
        lambda row: row.page.claim_address(row.claim.id),
    ),
)


def rows(pages: Iterable[ModelPage]) -> list[dict[str, Any]]:
    """Return a row for each claim of each model as plain values, in the order of the site."""
    by_id = {rule.id: rule for rule in rules()}
    claim_rows = [
        ClaimRow(page, section, claim, by_id[claim.id])
        for page in pages
        for section in page.sections
        for claim in section.claims
        if claim.id in by_id
    ]
    return [{column.name: column.cell(one) for column in COLUMNS} for one in claim_rows]


def dictionary() -> dict[str, Any]:
    return {"row": ROW, "columns": [column.described() for column in COLUMNS]}


def as_lines(table: Sequence[Mapping[str, Any]]) -> str:
    return "[\n" + ",\n".join(as_compact_json(row) for row in table) + "\n]\n"


def as_parquet(table: Sequence[Mapping[str, Any]]) -> bytes:
    """Return rows as Parquet, what each column means in its field's metadata; the same rows give the same bytes."""
    import pyarrow as arrow
    from pyarrow import parquet

    types = {kind: arrow.type_for_alias(name) for kind, name in IN_PARQUET.items()}
    fields = [
        arrow.field(column.name, types[column.kind], column.null is not None, {"meaning": column.meaning})
        for column in COLUMNS
    ]
    cells = [
        arrow.array([_typed(row[column.name], column.kind) for row in table], types[column.kind])
        for column in COLUMNS
    ]
    written = io.BytesIO()
    parquet.write_table(arrow.Table.from_arrays(cells, schema=arrow.schema(fields)), written)
    return written.getvalue()


def write_table(pages: Iterable[ModelPage], staging: Staging) -> None:
    table = rows(pages)
    staging.write(CSV_FILE, as_csv([column.name for column in COLUMNS], (list(row.values()) for row in table)))
    staging.write(JSON_FILE, as_lines(table))
    staging.write(DICTIONARY_FILE, as_json(dictionary()))
    staging.write(PARQUET_FILE, as_parquet(table))


def _typed(value: Any, kind: Kind) -> Any:
    return date.fromisoformat(value) if kind == "date" and value is not None else value
