"""Results for programs under stable addresses: `api/v1/`, static JSON for each model, claim, finding and head.

Rows have the columns of the table of all results (`results_table.py`); those that are the same in a whole file stand
once, above the rows. What an address gives stays while the version does: columns may be added, none goes.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from generators.base.plain import as_compact_json, as_json
from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.site.results_table import COLUMNS, Kind, rows
from generators.site.staging import Staging
from generators.site.view import ModelPage
from generators.site.words import rules

VERSION = 1
FOLDER = f"api/v{VERSION}"
OF_MODEL = (
    *("model", "title", "family", "causal", "post_norm", "layers", "heads", "d_model", "positions", "tokens"),
    *("only_in_series", "licence", "source", "place", "revision", "commit"),
)
OF_CLAIM = ("claim", "claim_title", "statement", "group", "finding", "finding_title", "measure", "unit", "sense")
JSON_TYPES: Mapping[Kind, str] = {
    "text": "string",
    "whole number": "integer",
    "number": "number",
    "yes or no": "boolean",
    "date": "string",
}
Row = Mapping[str, Any]


def write_api(pages: Sequence[ModelPage], in_series: Sequence[ModelPage], staging: Staging) -> None:
    table = rows(pages, in_series)
    every = [*pages, *in_series]
    files = {
        "models": {page.name: _of_model(page, table) for page in every},
        "claims": {rule.id: _of_claim(rule.id, table) for rule in rules()},
        "findings": {finding.name: _of_finding(finding, every) for finding in FINDINGS},
        "heads": {page.name: _heads(page, staging) for page in every},
    }
    for kind, named in files.items():
        for name, content in named.items():
            staging.write(f"{FOLDER}/{kind}/{name}.json", as_compact_json({"version": VERSION, **content}))
    index = {kind: {name: f"{kind}/{name}.json" for name in named} for kind, named in files.items()}
    about = {"version": VERSION, "schema": "schema.json", "licence": "MIT"}
    staging.write(f"{FOLDER}/index.json", as_json(about | index))
    staging.write(f"{FOLDER}/schema.json", as_json(schema()))


def _of_model(page: ModelPage, table: Sequence[Row]) -> dict[str, Any]:
    """Return a model with its claims; one without claims has only its name and title."""
    mine = [row for row in table if row["model"] == page.name]
    about = {name: mine[0][name] for name in OF_MODEL} if mine else {"model": page.name, "title": page.title}
    return {**about, "claims": [_without(row, OF_MODEL) for row in mine]}


def _of_claim(claim: str, table: Sequence[Row]) -> dict[str, Any]:
    """Return a claim with every model; before there is one, only its id."""
    mine = [row for row in table if row["claim"] == claim]
    about = {name: mine[0][name] for name in OF_CLAIM} if mine else {"claim": claim}
    left_out = {*OF_CLAIM, *OF_MODEL} - {"model", "title", "only_in_series"}
    return {**about, "models": [_without(row, left_out) for row in mine]}


def _of_finding(finding: Finding[Any], pages: Sequence[ModelPage]) -> dict[str, Any]:
    """Return a finding: its claims, and of each model what came of it and the verdicts."""
    models = [
        {
            "model": page.name,
            "status": section.record.status,
            "verdicts": {claim.id: claim.verdict for claim in section.claims},
        }
        for page in pages
        for section in page.sections
        if section.finding.name == finding.name
    ]
    claims = [rule.id for rule in finding.rules]
    return {"finding": finding.name, "title": finding.title, "claims": claims, "models": models}


def _heads(page: ModelPage, staging: Staging) -> dict[str, Any]:
    """Return every head of a model by its place, `layer.head`, with all numbers that findings have of it."""
    path = staging.folder / f"data/{page.name}/things.json"
    known = json.loads(path.read_text("utf-8"))["head"] if path.is_file() else {"columns": []}
    per_layer = page.findings.model.n_head
    heads: dict[str, dict[str, Any]] = {}
    for column in known["columns"]:
        ids = known["id_lists"][column["ids"]] if "ids" in column else range(len(column["values"]))
        for index, value in zip(ids, column["values"], strict=True):
            layer, head = divmod(index, per_layer)
            heads.setdefault(f"{layer}.{head}", {})[column["says"]] = value
    return {"model": page.name, "heads": heads}


def _without(row: Row, names: Sequence[str] | set[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of all files: each column with its meaning, its unit, and what null means."""
    columns = {column.name: _typed(column.kind, column.described()) for column in COLUMNS}
    row = {"type": "object", "properties": columns, "additionalProperties": False}
    claims = {"type": "array", "items": {"$ref": "#/$defs/row"}}
    of: dict[str, dict[str, Any]] = {
        "models": {"model": {}, "claims": claims},
        "claims": {"claim": {}, "models": claims},
        "findings": {"finding": {}, "claims": {}, "models": {"type": "array"}},
        "heads": {"model": {}, "heads": {"type": "object"}},
    }
    files = {}
    for kind, given in of.items():
        properties = {"version": {"const": VERSION}, **given}
        files[kind] = {"type": "object", "required": [*properties], "properties": properties}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"row": row, **files},
        "anyOf": [{"$ref": f"#/$defs/{kind}"} for kind in files],
    }


def _typed(kind: Kind, described: Mapping[str, str | None]) -> dict[str, Any]:
    said = [described["meaning"], f"unit: {described['unit']}" if described["unit"] else None]
    said.append(f"null where {described['null']}" if described["null"] else None)
    types = [JSON_TYPES[kind], *(["null"] if described["null"] else [])]
    return {"type": types, "description": "; ".join(filter(None, said))}
