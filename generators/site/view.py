"""What pages are made from: a model with its findings, judged and drawn; a model that has none."""

import re
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from generators.base.progress import Report
from generators.checkpoint.registry import ON_OWN_SAMPLES, FolderSource, Model, Registry
from generators.compute.judged import judged_model
from generators.compute.records import ClaimRecord, FindingRecord, ModelFindings
from generators.compute.results import Store
from generators.findings.contract import Finding
from generators.findings.facts import EntityKind
from generators.findings.inputs import RUN
from generators.findings.measured import Measurements
from generators.site.addresses import Notable
from generators.site.pictures import Picture, pictures
from generators.site.questions import questions
from generators.site.staging import Staging
from generators.site.words import in_millions

PROBLEMS = {
    "missing": "Can't be computed from these weights.",
    "not_applicable": "Not applicable.",
    "failed": "The computation failed.",
}
NOT_SHOWN = "Not shown."

SIZE = re.compile(r"\d ?[KMB]\b", re.IGNORECASE)  # in a title
FEWEST_PARAMETERS = 5_000_000  # of models that stand for those that people use


@dataclass(frozen=True)
class Section:
    """One finding on one model's page: what is published of it, and whether anything of it is stored.

    `measured` is what is drawn from, None also where everything was drawn before.
    """

    finding: Finding[Any]
    record: FindingRecord
    claims: list[ClaimRecord]
    pictures: list[Picture]
    stored: bool = True
    measured: Measurements[Any] | None = None

    @property
    def problem(self) -> str | None:
        """Return in a few words what keeps it from being shown, None where it is shown."""
        if self.record.status == "computed":
            return None
        return PROBLEMS[self.record.status] if self.stored else NOT_SHOWN

    @property
    def lacks_weights(self) -> bool:
        """Return whether it can't be shown because the checkpoint is a partial copy."""
        return self.missing and RUN not in self.finding.needs

    @property
    def cannot_run(self) -> bool:
        """Return whether it can't be shown because the model can't be run here."""
        return self.missing and RUN in self.finding.needs

    @property
    def missing(self) -> bool:
        return self.record.status == "missing" and self.stored

    @property
    def signature(self) -> Picture | None:
        return next((picture for picture in self.pictures if picture.name == self.finding.signature), None)


@dataclass(frozen=True)
class ModelPage:
    """All that a model's page is made from; `unavailable` says why its weights could not be had this time."""

    findings: ModelFindings
    title: str
    notes: str | None
    licence: str | None
    sections: list[Section]
    damaged: list[str]
    unavailable: str | None = None
    recipe: str | None = None
    stated_parameters: int | None = None
    series_page: str | None = None  # on which it is, and in no count of models; None with a page of its own
    named: Sequence[Notable] = ()  # by its results

    @property
    def name(self) -> str:
        return self.findings.model.name

    @property
    def address(self) -> str:
        """Return where it is shown, from the site's root."""
        return f"models/{self.name}/" if self.series_page is None else f"{self.series_page}#{self.name}"

    def claim_address(self, claim: str) -> str:
        """Return where one of its claims is, from the site's root."""
        return f"{self.address}#claim-{claim}" if self.series_page is None else f"{self.series_page}#{claim}"

    @property
    def counted_as(self) -> str:
        """Return what the model counts as where models are counted: its recipe, or itself."""
        return self.recipe or self.name

    @property
    def size(self) -> str:
        """Return how many parameters it has, in millions; "" where that isn't stated or its title says it."""
        count = self.stated_parameters
        return "" if count is None or SIZE.search(self.title) else in_millions(count)

    @property
    def is_small(self) -> bool:
        """Return whether it has too few parameters to stand for the models that people use.

        Where the registry doesn't state their number, it follows from the sizes: 12 d_model² for each layer, and the
        embeddings.
        """
        model = self.findings.model
        rows = (model.vocab_size or 0) + (model.n_ctx or 0)
        by_sizes = (12 * model.n_layer * model.d_model + rows) * model.d_model
        return (self.stated_parameters or by_sizes) < FEWEST_PARAMETERS

    @cached_property
    def texts(self) -> list[str]:
        runs = (record.run for record in self.findings.findings.values())
        return list(dict.fromkeys(run["text"] for run in runs if run is not None and "text" in run))

    @cached_property
    def figures(self) -> dict[str, str]:
        """Return the figures of its page, in order: what each is cited as, by name; the n-th bears the number n."""
        return {
            picture.name: f"Figure {number}, {self._cited(picture, section)}"
            for number, (section, picture) in enumerate(self.shown, 1)
        }

    @cached_property
    def shown(self) -> list[tuple[Section, Picture]]:
        """Return the pictures of its page: by question, first that of the claim which answers it."""
        answers = [question.answering(self.claims) for question in questions()]
        drawn = [(one, one.signature) for one in self.sections if one.signature is not None and not one.problem]
        return sorted(
            drawn, key=lambda one: (one[0].finding.question, not any(claim in answers for claim in one[0].claims))
        )

    def cited(self, picture: Picture) -> str:
        """Return what one of its figures is cited as, also where another page alone shows it."""
        section = next(one for one in self.sections if picture in one.pictures)
        return self.figures.get(picture.name) or self._cited(picture, section)

    def _cited(self, picture: Picture, section: Section) -> str:
        on = section.record.computed_on
        return f"“{picture.title}”, {self.title}{f', results of {on}' if on else ''}"

    @cached_property
    def claims(self) -> dict[str, ClaimRecord]:
        return {claim.id: claim for claim in self.findings.claims}

    @cached_property
    def measured(self) -> dict[str, Any]:
        records = {name: record.metrics for name, record in self.findings.findings.items()}
        return {name: metrics for name, metrics in records.items() if metrics is not None}

    def knows(self, kind: EntityKind) -> bool:
        """Return whether a finding that was computed says something of single channels, heads and so on."""
        return any(kind in s.finding.facts.entities for s in self.sections if s.record.status == "computed")

    @property
    def computed_on(self) -> str | None:
        return max(self._dates, default=None)

    @property
    def computed_from(self) -> str | None:
        return min(self._dates, default=None)

    @property
    def _dates(self) -> list[str]:
        return [record.computed_on for record in self.findings.findings.values() if record.computed_on]


def counted(pages: Sequence[ModelPage]) -> list[ModelPage]:
    """Return the models that counts are over: all but small ones, or all where there are only small ones."""
    return [page for page in pages if not page.is_small] or list(pages)


@dataclass(frozen=True)
class Absent:
    model: Model

    @property
    def group(self) -> str:
        return self.model.group or "Other models"


def all_models(registry: Registry, store: Store) -> Iterator[Model]:
    """Yield the models of the registry, then those that have results and no entry there."""
    yield from registry.models
    for name in store.names():
        if registry.find(name) is None and not name.endswith(ON_OWN_SAMPLES):
            yield Model(name=name, title=name, sources=(FolderSource(folder=Path(name)),))


def titled(
    published: ModelFindings,
    model: Model,
    sections: list[Section],
    damaged: list[str],
    unavailable: str | None = None,
    series_page: str | None = None,
) -> ModelPage:
    """Return what a model's page is made from, with what the registry says of the model."""
    title = published.model.title if model.title == model.name else model.title
    stored = published.model.notes or ""  # may say more, of what its file holds
    notes = stored or None if stored.startswith(model.notes or "") else model.notes
    return ModelPage(
        published,
        title,
        notes,
        model.licence,
        sections,
        damaged,
        unavailable,
        recipe=model.recipe,
        stated_parameters=model.parameters,
        series_page=series_page,
    )


def model_page(
    model: Model, store: Store, staging: Staging, report: Report, *, in_series: bool = False
) -> ModelPage | None:
    """Return what a model's page is made from, its figures drawn; None where it has no results.

    Of a model that is shown `in_series`, one figure is drawn: the signature of the first finding that has one.
    Raises InputError: what is stored of the model itself is damaged.
    """
    judged = judged_model(store, model.name)
    if judged is None:
        return None
    report(f"{model.name}: drawing")
    published = judged.published()
    damaged = [*judged.damaged]

    def lost(finding: str, error: Exception) -> None:
        report(f"{model.name}: figures of {finding}\n{''.join(traceback.format_exception(error))}")
        why = f"({type(error).__name__})"
        damaged.append(f"{model.name}: the figures of {finding} can't be drawn from the stored arrays {why}.")

    sections: list[Section] = []
    for each in judged.findings:
        drawn: list[Picture] = []
        if not in_series or not any(section.pictures for section in sections):
            drawn = pictures(each, model.name, staging, lost, signature_only=in_series)
        claims = claims_about(each.finding.name, published)
        sections.append(Section(each.finding, each.record, claims, drawn, each.stored is not None, each.measured))
    return titled(published, model, sections, list(dict.fromkeys(damaged)))


def claims_about(finding: str, published: ModelFindings) -> list[ClaimRecord]:
    return [claim for claim in published.claims if claim.finding == finding]
