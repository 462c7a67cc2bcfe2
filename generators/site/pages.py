"""Results -> figures, data files and Markdown pages in `site_src/`, through `templates/`. Reads no weights."""

import hashlib
import inspect
import json
import os
import re
import shutil
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2

from generators import __version__
from generators.drawing import labels, style
from generators.site import notebooks
from generators.base.errors import AtlasError, InputError
from generators.findings import FINDINGS, Finding
from generators.findings.finding import Figure
from generators.findings.thresholds import RULES, Rule, rule
from generators.base.text import as_csv, formula, in_markdown, number
from generators.compute.pipeline import Report, stored_result
from generators.checkpoint.registry import Model, Registry
from generators.compute.results import ClaimRecord, FindingRecord, ModelFindings, Store, json_schema

GENERATED_FOLDERS = ("models", "findings", "figures", "data")
SYMBOLS = {"holds": "✓", "partly": "◐", "fails": "✗", "untested": "–"}
MOST_ROWS = 100  # of a table on a page; its CSV has all
SIZE = re.compile(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"')


@dataclass(frozen=True)
class Picture:
    """A drawn figure: where its files are (from the site's root) and its size in CSS pixels.

    `data` is what its interactive form is made from, if it has one.
    """

    figure: Figure
    light: str
    dark: str
    width: int
    height: int
    data: str | None = None


@dataclass(frozen=True)
class Section:
    """One finding on one model's page."""

    finding: Finding
    record: FindingRecord
    claims: list[ClaimRecord]
    pictures: list[Picture]

    @property
    def signature(self) -> Picture | None:
        """Return the picture that the finding's own page shows."""
        return next((p for p in self.pictures if p.figure.name == self.finding.signature), None)


@dataclass(frozen=True)
class ModelPage:
    """All that a model's page is made from; `unavailable` says why its weights could not be had this time."""

    findings: ModelFindings
    title: str
    notes: str | None
    licence: str | None
    sections: list[Section]
    unavailable: str | None = None

    @property
    def name(self) -> str:
        """Return the model's name, which is also its page's."""
        return self.findings.model.name

    @cached_property
    def claims(self) -> dict[str, ClaimRecord]:
        """Return the model's claims by id."""
        return {claim.id: claim for claim in self.findings.claims}

    @property
    def computed_on(self) -> str | None:
        """Return the date of the latest finding."""
        return max((r.computed_on for r in self.findings.findings.values() if r.computed_on), default=None)


@dataclass(frozen=True)
class Absent:
    """A model of the registry without a page, and why."""

    model: Model
    reason: str


@dataclass
class Site:
    """What is written where: the folder that MkDocs reads, and a cache of drawn figures."""

    source: Path
    cache: Path
    written: set[Path] = field(default_factory=set)

    def write(self, path: str, content: str | bytes) -> None:
        """Write a file of the site; an unchanged one is left alone, a changed one replaced at once."""
        target = self.source / path
        data = content.encode() if isinstance(content, str) else content
        self.written.add(target)
        try:
            if target.is_file() and target.read_bytes() == data:
                return
            replace_file(target, data)
        except OSError as error:
            raise AtlasError(f"{target} can't be written: {error}.") from error

    def remove_stale(self) -> None:
        """Remove what an earlier rendering wrote and this one didn't."""
        for folder in GENERATED_FOLDERS:
            for path in sorted((self.source / folder).rglob("*"), reverse=True):
                if path.is_file() and path not in self.written:
                    path.unlink()
                elif path.is_dir() and not any(path.iterdir()):
                    path.rmdir()


def render(
    registry: Registry,
    store: Store,
    site: Site,
    unavailable: Mapping[str, str] | None = None,
    report: Report = lambda line: None,
) -> list[str]:
    """Write every page, figure and data file of the site.

    Args:
        registry: the models to list; models with results that it doesn't name get pages too.
        store: their results.
        site: where to write.
        unavailable: why a model's weights could not be had just now, by name.
        report: takes lines on the progress.

    Returns:
        Names of models whose stored results are damaged, which cost them their page.
    """
    why = unavailable or {}
    pages: list[ModelPage] = []
    absent: list[Absent] = []
    damaged: list[str] = []
    environment = _environment()
    for model in _all_models(registry, store):
        try:
            page = _model_page(model, store, site, why.get(model.name), report)
            if page is None:
                absent.append(Absent(model, why.get(model.name, "It has no results yet.")))
                continue
            text = environment.get_template("model.md.j2").render(root="../../", page=page)
            site.write(f"models/{page.name}.md", text)
            pages.append(page)
        except InputError as error:
            report(str(error))
            damaged.append(model.name)
            absent.append(Absent(model, str(error)))
        except AtlasError:
            raise
        except Exception as error:  # results that no page can be made from must not cost the others theirs
            report(f"{model.name}: no page can be made from its results\n{traceback.format_exc()}")
            damaged.append(model.name)
            absent.append(Absent(model, f"No page can be made from its results ({type(error).__name__})."))
    _write_pages(pages, absent, registry, site, environment)
    _write_data(pages, site)
    site.remove_stale()
    return damaged


def _all_models(registry: Registry, store: Store) -> Iterator[Model]:
    yield from registry.models
    for name in store.names():
        if registry.find(name) is None:
            from generators.checkpoint.registry import FolderSource

            yield Model(name=name, title=name, sources=(FolderSource(folder=Path(name)),))


def _model_page(model: Model, store: Store, site: Site, why: str | None, report: Report) -> ModelPage | None:
    findings = store.load(model.name)
    if findings is None:
        return None
    report(f"{model.name}: drawing")
    sections = []
    for finding in FINDINGS:
        record = findings.findings.get(finding.name)
        if record is None or record.version != finding.version:
            reason = "The stored results are of another version of this finding; compute them again."
            record = FindingRecord(status="missing", reason=reason, version=finding.version)
        claims = [claim for claim in findings.claims if claim.finding == finding.name]
        sections.append(Section(finding, record, claims, _pictures(finding, record, model.name, store, site)))
    title = findings.model.title if model.title == model.name else model.title
    return ModelPage(findings, title, model.notes, model.licence, sections, why)


def _pictures(finding: Finding, record: FindingRecord, name: str, store: Store, site: Site) -> list[Picture]:
    if record.status != "computed":
        return []
    result = stored_result(store, name, record)
    pictures = []
    for figure in finding.figures(result):
        light, dark = _drawn(figure, finding, record, site)
        path = f"figures/{name}/{figure.name}"
        site.write(f"{path}.svg", light)
        site.write(f"{path}-dark.svg", dark)
        data = None
        if figure.interactive is not None:
            data = f"data/{name}/{figure.name}.json"
            site.write(data, _compact_json(figure.interactive().as_json()))
        pictures.append(Picture(figure, f"{path}.svg", f"{path}-dark.svg", *_size(light), data))
    return pictures


def _drawn(figure: Figure, finding: Finding, record: FindingRecord, site: Site) -> tuple[bytes, bytes]:
    """Draw a figure, or take it from the cache if the same code has drawn the same result before."""
    key = hashlib.sha256(f"{record.key} {figure.name} {_drawing_code(finding)}".encode()).hexdigest()[:32]
    kept = site.cache / f"{key}.svg", site.cache / f"{key}-dark.svg"
    try:
        return kept[0].read_bytes(), kept[1].read_bytes()
    except OSError:
        pass
    drawn = style.svg_pair(figure.draw())
    try:
        for path, data in zip(kept, drawn, strict=True):
            replace_file(path, data)
    except OSError as error:
        raise AtlasError(f"The figure cache {site.cache} can't be written: {error}.") from error
    return drawn


@cache
def _drawing_code_of(files: tuple[str, ...]) -> str:
    return hashlib.sha256(b"".join(Path(file).read_bytes() for file in files)).hexdigest()


def _drawing_code(finding: Finding) -> str:
    """Return a digest of the code that draws: the house style's and the finding's."""
    return _drawing_code_of((inspect.getfile(style), inspect.getfile(labels), inspect.getfile(finding.figures)))


def _size(svg: bytes) -> tuple[int, int]:
    found = SIZE.search(svg)
    width, height = (float(found[1]), float(found[2])) if found else (640.0, 400.0)
    return round(width * 96 / 72), round(height * 96 / 72)


def _write_pages(
    pages: Sequence[ModelPage],
    absent: Sequence[Absent],
    registry: Registry,
    site: Site,
    environment: jinja2.Environment,
) -> None:
    shared = {
        "pages": pages,
        "absent": absent,
        "registry": registry,
        "rules": [r for r in RULES if r.finding in {finding.name for finding in FINDINGS}],
        "findings": FINDINGS,
        "notebooks": notebooks.listed(site.source),
        "version": __version__,
        "repository": os.environ.get("REPO_URL", "").strip() or None,
    }

    def write(path: str, template: str, **context: Any) -> None:
        depth = path.count("/") + (0 if path.endswith("index.md") else 1)
        root = "../" * depth
        site.write(path, environment.get_template(template).render(root=root, **shared, **context))

    write("index.md", "home.md.j2", hero=_hero(pages))
    write("about.md", "about.md.j2")
    write("models/index.md", "models.md.j2")
    write("compare.md", "compare.md.j2")
    write("findings/index.md", "findings.md.j2")
    for finding in FINDINGS:
        shown = [(page, section) for page in pages for section in page.sections if section.finding is finding]
        write(
            f"findings/{finding.name}.md",
            "finding.md.j2",
            finding=finding,
            finding_rules=[r for r in RULES if r.finding == finding.name],
            shown=shown,
            computed=[(page, section) for page, section in shown if section.record.status == "computed"],
            example=next((section.signature for _, section in shown if section.signature), None),
        )
    write("SUMMARY.md", "summary.md.j2")


def _claims_of_site() -> list[dict[str, Any]]:
    """Return findings and the claims about each, in the order of the site."""
    return [
        {
            "name": finding.name,
            "title": finding.title,
            "claims": [{"id": r.id, "statement": r.statement} for r in RULES if r.finding == finding.name],
        }
        for finding in FINDINGS
    ]


def _hero(pages: Sequence[ModelPage]) -> tuple[ModelPage, Picture] | None:
    """Return the first model whose positions wind, with the picture of it; else the first picture there is."""
    shown = [
        (page, section.signature) for page in pages for section in page.sections if section.finding.name == "helix"
    ]
    drawn = [(page, picture) for page, picture in shown if picture is not None]
    winding = [(p, picture) for p, picture in drawn if "circle" in p.claims and p.claims["circle"].verdict == "holds"]
    return next(iter(winding or drawn), None)


def _write_data(pages: Sequence[ModelPage], site: Site) -> None:
    site.write("assets/plotly.min.js", _plotly().read_bytes())
    site.write("data/findings.schema.json", _json(json_schema()))
    site.write("data/claims.json", _json(_claims_of_site()))
    site.write("data/models.json", _json([_model_entry(page) for page in pages]))
    for page in pages:
        site.write(f"data/{page.name}/findings.json", _json(page.findings.model_dump(mode="json")))
        for section in page.sections:
            for name, table in section.record.tables.items():
                path = f"data/{page.name}/{section.finding.name}.{name}.csv"
                site.write(path, as_csv(table.columns, table.rows))


def _plotly() -> Path:
    """Return the script that the installed package `plotly` carries, so that the site serves its own."""
    return Path(str(resources.files("plotly"))) / "package_data" / "plotly.min.js"


def _model_entry(page: ModelPage) -> dict[str, Any]:
    """Return what the compare page needs to know of a model beside its findings."""
    shown = [(section, section.signature) for section in page.sections]
    return {
        "name": page.name,
        "title": page.title,
        "pictures": {
            section.finding.name: {
                "title": picture.figure.title,
                "alt": f"{page.title}. {picture.figure.alt}",
                "light": picture.light,
                "dark": picture.dark,
                "width": picture.width,
                "height": picture.height,
                "data": picture.data,
            }
            for section, picture in shown
            if picture is not None
        },
    }


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates_folder()),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": number, "md": in_markdown, "tex": formula}
    environment.tests["measured"] = _measured
    environment.globals |= {"symbols": SYMBOLS, "rule": rule, "threshold": _threshold, "most_rows": MOST_ROWS}
    return environment


def _measured(value: object) -> bool:
    """Return whether a cell is a number; yes and no are words."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _threshold(chosen: Rule) -> str:
    """Return in words from where a claim holds."""
    holds = chosen.holds_as if chosen.holds is None else number(chosen.holds)
    partly = "" if chosen.partly is None else f" (partly {number(chosen.partly)})"
    return f"{chosen.sense} {holds}{partly}{', ' + chosen.also if chosen.also else ''}"


def templates_folder() -> Path:
    """Return the folder of Jinja templates, which stands beside the package."""
    return Path(str(resources.files("generators"))).parent / "templates"


def replace_file(target: Path, data: bytes) -> None:
    """Write a file at once: a reader finds the old content or the new."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def swap_folder(new: Path, current: Path) -> None:
    """Put a finished folder in the place of the current one."""
    old = current.with_name(f".{current.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if current.exists():
        current.rename(old)
    new.rename(current)
    shutil.rmtree(old, ignore_errors=True)
