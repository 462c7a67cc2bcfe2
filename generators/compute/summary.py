from collections.abc import Sequence
from dataclasses import dataclass

from generators.base.errors import AtlasError, InputError, WeightsUnavailableError
from generators.base.plain import as_json
from generators.base.progress import Report
from generators.base.sentences import many
from generators.checkpoint.registry import HubSource, Model
from generators.compute.jobs import Failed
from generators.compute.records import StoredFinding
from generators.compute.results import ResultsHeldError, Store

LACKS = "The checkpoint lacks"


@dataclass(frozen=True)
class Outcome:
    """What computing a model came to; `outdated` are those of the stored whose results are of an older version.

    `lacks` says which tensors the checkpoint lacks, if nothing came of it for that.
    """

    name: str
    computed: tuple[str, ...]
    stored: tuple[str, ...]
    failed: dict[str, str]
    outdated: tuple[str, ...] = ()
    lacks: str = ""

    def in_words(self) -> str:
        computed = [f"computed {', '.join(self.computed)}"] * bool(self.computed)
        stored = [f"already stored: {', '.join(self.stored)}"] * bool(self.stored)
        return "; ".join([*computed, *stored]) or "nothing can be computed from these weights"


End = Outcome | AtlasError | Failed  # what became of a model


def outcome_of(name: str, records: Sequence[tuple[StoredFinding, bool]], outdated: tuple[str, ...] = ()) -> Outcome:
    computed = tuple(r.finding for r, is_new in records if is_new and r.status == "computed")
    stored = tuple(r.finding for r, is_new in records if not is_new and r.status == "computed")
    failed = {r.finding: r.reason or "" for r, _ in records if r.status == "failed"}
    lacking = (r.reason for r, _ in records if r.reason and r.reason.startswith(LACKS))
    return Outcome(name, computed, stored, failed, outdated, "" if computed or stored else next(lacking, ""))


class Summary:
    """What computing several models came to, reported model by model.

    `unavailable` says why a model's weights could not be had or used, by name; `bad_input` and `failed` are names,
    `sentences` what to tell the user about them. `skipped` are those of the unavailable where nothing is wrong here:
    weights that can't be downloaded, or that no table reads. `outdated` has the findings whose stored results are of
    an older version and were not computed anew, by model. If the user `named` the models, one whose weights are
    unavailable is a failure.
    """

    def __init__(self, store: Store, report: Report, *, named: bool) -> None:
        self._store, self._report, self._named = store, report, named
        self.unavailable: dict[str, str] = {}
        self.skipped: dict[str, str] = {}
        self.bad_input: list[str] = []
        self.failed: list[str] = []
        self.sentences: list[str] = []
        self.outdated: dict[str, tuple[str, ...]] = {}
        self._models, self._findings, self._computed = 0, 0, 0

    def add(self, model: Model, end: End) -> None:
        """Report what one model came to. Raises AtlasError: it is neither of the model nor of its weights."""
        self._models += 1
        if isinstance(end, Outcome):
            self._report(f"{model.name}: {end.in_words()}")
            if self._named and end.lacks:
                self._fail(model, end.lacks)
            self._computed += len(end.computed) + len(end.failed)
            self._findings += len(end.computed) + len(end.stored)
            if end.outdated:
                self.outdated[model.name] = end.outdated
            for finding, reason in end.failed.items():
                self._fail(model, f"{finding} failed: {reason}")
        elif isinstance(end, Failed):
            self._report(f"{model.name}: {end.sentence}")
            self._fail(model, end.sentence)
        elif isinstance(end, ResultsHeldError):
            self._fail(model, str(end))
        elif isinstance(end, WeightsUnavailableError):
            self._add_unavailable(model, end)
        elif isinstance(end, InputError):
            (self.bad_input if self._named else self.failed).append(model.name)
            self.unavailable[model.name] = str(end)
            from_hub = any(isinstance(source, HubSource) for source in model.sources)
            if from_hub and not self._store.has_model(model.name):
                self.skipped[model.name] = str(end)
            self.sentences.append(f"{model.name}: {end}")
        else:
            raise end

    @property
    def has_news(self) -> bool:
        return self._computed > 0 or bool(self.unavailable or self.failed)

    def in_words(self) -> str:
        failed = {*self.failed, *self.bad_input}
        away = {*self.unavailable} - failed
        parts = [f"{len(failed)} failed"] * bool(failed) + [f"{len(away)} are unavailable now"] * bool(away)
        if not parts:
            return f"{self._findings} findings of {self._models} models are stored"
        return f"{self._findings} findings are stored; of {self._models} models, {' and '.join(parts)}"

    def outdated_in_words(self) -> tuple[str, ...]:
        if not self.outdated:
            return ()
        findings = ", ".join(dict.fromkeys(name for names in self.outdated.values() for name in names))
        return (
            f"Results of {many(len(self.outdated), 'model')} are of an older version of {findings} "
            "and are shown until `atlas compute` renews them.",
        )

    def as_json(self) -> str:
        failed = sorted({*self.failed, *self.bad_input} - {*self.skipped})
        return as_json({"skipped": self.skipped, "failed": failed})

    def _fail(self, model: Model, sentence: str) -> None:
        self.failed.append(model.name)
        self.sentences.append(f"{model.name}: {sentence}")

    def _add_unavailable(self, model: Model, error: WeightsUnavailableError) -> None:
        self.unavailable[model.name] = self.skipped[model.name] = str(error)
        has_results = self._store.has_model(model.name)
        self._report(f"{model.name}: {error} {'Its stored results stay.' if has_results else ''}".rstrip())
        if self._named and not has_results:
            self.failed.append(model.name)
