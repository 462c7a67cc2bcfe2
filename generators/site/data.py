"""The data files of the site: what pages show, for programs to read."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from generators.base.plain import as_compact_json, as_json
from generators.compute.records import json_schema
from generators.findings import FINDINGS
from generators.site.pictures import Picture
from generators.site.staging import Staging
from generators.site.view import ModelPage

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet runs cells that begin so
DIGITS = 7  # of published numbers: those of float32


def write(pages: Sequence[ModelPage], staging: Staging) -> None:
    """Write the data files of the site; those of each model are written with its figures.

    Members of series are among `pages`, and `models.json` says which they are.
    """
    staging.write("data/findings.schema.json", as_json(json_schema()))
    staging.write("data/claims.json", as_json(claims_of_site()))
    staging.write("data/models.json", as_json([model_entry(page) for page in pages]))


def model_files(page: ModelPage) -> dict[str, str]:
    folder = f"data/{page.name}"
    document = page.findings.model_dump(mode="json")
    document["findings"] = shortened(document["findings"])  # claims keep every digit that they were judged by
    tables = {
        f"{folder}/{section.finding.name}.{name}.csv": as_csv(table.columns, shortened(table.rows))
        for section in page.sections
        for name, table in section.record.tables.items()
    }
    return {f"{folder}/findings.json": as_compact_json(document), **tables}


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as CSV; text that a spreadsheet would run as a formula is quoted with an apostrophe."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if cell is None else _inert(cell) for cell in row])
    return buffer.getvalue()


def _inert(cell: Any) -> Any:
    if isinstance(cell, str) and cell.startswith(FORMULA_STARTS):
        return "'" + cell
    return " ".join(map(str, cell)) if isinstance(cell, list | tuple) else cell


def shortened(value: Any) -> Any:
    """Return plain data with as many digits of every number as weights have themselves."""
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shortened(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def claims_of_site() -> list[dict[str, Any]]:
    return [
        {
            "name": finding.name,
            "title": finding.title,
            "claims": [{"id": rule.id, "statement": rule.statement} for rule in finding.rules],
        }
        for finding in FINDINGS
    ]


def model_entry(page: ModelPage) -> dict[str, Any]:
    """Return what the compare page needs to know of a model beside its findings."""
    shown = [(section.finding.name, section.signature) for section in page.sections]
    pictures = {finding: _picture(picture, page) for finding, picture in shown if picture is not None}
    return {
        "name": page.name,
        "title": page.title,
        "only_in_series": page.series_page is not None,
        "claims": page.claim_address(""),
        "pictures": pictures,
    }


def _picture(picture: Picture, page: ModelPage) -> dict[str, Any]:
    files = {name: getattr(picture, name) for name in ("light", "dark", "width", "height", "data")}
    return {"title": picture.title, "alt": f"{page.title}. {picture.words.alt}", **files}
