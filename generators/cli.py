"""The `atlas` command: commands and exit codes. Heavy imports stand where they are used: help comes at once."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generators import options
from generators.base import terminal
from generators.base.errors import AtlasError, InputError
from generators.base.progress import progress
from generators.base.text import number

if TYPE_CHECKING:
    from generators.checkpoint.registry import Model, Registry
    from generators.checkpoint.sources import Places
    from generators.compute.executors import Choice
    from generators.compute.judged import JudgedModel
    from generators.compute.results import Store
    from generators.compute.running import RunSettings
    from generators.compute.summary import Summary
    from generators.findings.contract import Finding

BAD_INPUT = 2
SOME_FAILED = 1

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Compute findings about the embeddings of transformers and publish them as a site.

MODEL is a name in models.yml (`gpt2`), a folder with config.json and model.safetensors (`./my-model`), or a hub id
(`owner/model`). Begin with `atlas models`, then `atlas compute gpt2`, `atlas show gpt2` and `atlas build`.
""",
)


@app.command()
def build(
    models: options.Models = None,
    models_dir: options.ModelsDir = None,
    results: options.Results = options.DEFAULT_RESULTS,
    registry: options.RegistryFile = options.DEFAULT_REGISTRY,
    site_src: options.SiteSource = options.DEFAULT_SOURCE,
    budget: options.Budget = options.DEFAULT_BUDGET,
    device: options.Device = options.DEFAULT_DEVICE,
    skip_runs: options.SkipRuns = False,
    family: options.Family = None,
    offline: options.Offline = False,
    wait: options.Wait = None,
    jobs: options.Jobs = 1,
    scheduler: options.Scheduler = None,
    memory: options.Memory = None,
) -> None:
    """Compute what is not known yet, write the pages, and build the site into `site/`.

    A model that can't be had is listed as not computed yet; that is no error. Exit 1: something failed, and the rest
    was built; exit 2: an input can't be used.
    """
    known, settings = _registry(registry), _settings(budget, device, skip_runs)
    choice, store = _choice(jobs, scheduler, memory), _store(results, wait)
    chosen, places = _chosen(models, known, family), _places(models_dir, offline)
    summary = _compute(chosen, places, store, settings, choice, named=bool(models))
    _exit(_code(summary), _make_site(registry, results, site_src, summary.unavailable))


@app.command()
def compute(
    models: options.Models = None,
    models_dir: options.ModelsDir = None,
    results: options.Results = options.DEFAULT_RESULTS,
    registry: options.RegistryFile = options.DEFAULT_REGISTRY,
    counts: Annotated[
        Path | None,
        typer.Option("--counts", metavar="FILE", help="Token counts, as `atlas count-tokens` writes them."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="FINDING", help="Compute this finding alone; repeatable.")
    ] = None,
    budget: options.Budget = options.DEFAULT_BUDGET,
    device: options.Device = options.DEFAULT_DEVICE,
    skip_runs: options.SkipRuns = False,
    family: options.Family = None,
    offline: options.Offline = False,
    wait: options.Wait = None,
    jobs: options.Jobs = 1,
    scheduler: options.Scheduler = None,
    memory: options.Memory = None,
) -> None:
    """Compute the findings of models and store them; what is stored already is not computed again."""
    known, settings = _registry(registry, named=bool(models)), _settings(budget, device, skip_runs)
    chosen, places = _chosen(models, known, family), _places(models_dir, offline)
    choice = _choice(jobs, scheduler, memory)
    if counts is not None:
        if len(models or []) != 1:
            raise InputError("--counts goes with exactly one MODEL: they are the counts of its tokens.")
        chosen = [chosen[0].model_copy(update={"counts": counts})]
    _exit(_code(_compute(chosen, places, _store(results, wait), settings, choice, named=bool(models), only=only)))


@app.command()
def render(
    results: options.Results = options.DEFAULT_RESULTS,
    registry: options.RegistryFile = options.DEFAULT_REGISTRY,
    site_src: options.SiteSource = options.DEFAULT_SOURCE,
) -> None:
    """Build the site from stored results alone, which needs no weights."""
    _exit(0, _make_site(registry, results, site_src, {}))


@app.command()
def report(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A name, a folder or a hub id.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the report is written; replaced if there.")
    ] = Path("report"),
    models_dir: options.ModelsDir = None,
    registry: options.RegistryFile = options.DEFAULT_REGISTRY,
    budget: options.Budget = options.DEFAULT_BUDGET,
    device: options.Device = options.DEFAULT_DEVICE,
    skip_runs: options.SkipRuns = False,
    family: options.Family = None,
    offline: options.Offline = False,
) -> None:
    """Write a site of one model, with the findings' pages and its data, that opens from the disk without a server."""
    from generators.site.report import write_report

    known = _registry(registry, named=True)
    chosen, settings = _chosen([model], known, family)[0], _settings(budget, device, skip_runs)
    with progress() as tell:
        sentences = write_report(chosen, _places(models_dir, offline), output, tell, settings)
    terminal.line(f"The report is in {output}/; open {output / 'index.html'} in a browser.")
    _exit(0, sentences)


@app.command()
def serve(port: Annotated[int, typer.Option(help="Port on this machine.", min=1, max=65535)] = 8000) -> None:
    """Serve the built site on this machine, until interrupted."""
    import functools
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    from generators.site.build_cache import Workshop

    site = Workshop().site
    if not (site / "index.html").is_file():
        raise InputError(f"There is no site in {site}/ yet; make it with: atlas build")
    try:
        server = ThreadingHTTPServer(
            ("127.0.0.1", port), functools.partial(SimpleHTTPRequestHandler, directory=str(site))
        )
    except OSError as error:
        raise InputError(f"Port {port} can't be used: {error}.") from error
    terminal.line(f"http://127.0.0.1:{port}/ (Ctrl-C to stop)")
    with server:
        server.serve_forever()


@app.command("models")
def list_models(
    results: options.Results = options.DEFAULT_RESULTS,
    registry: options.RegistryFile = options.DEFAULT_REGISTRY,
    fields: Annotated[bool, typer.Option("--fields", help="Describe the fields of an entry in models.yml.")] = False,
) -> None:
    """List the models of the atlas, where their weights come from and whether they are computed."""
    if fields:
        from generators.checkpoint.registry import described

        terminal.table(("field", "must it be there", "what it is for"), described())
        return
    store = _store(results)
    rows = [
        (model.name, model.title, " or ".join(source.in_words() for source in model.sources), _done(store, model))
        for model in _registry(registry).models
    ]
    terminal.table(("name", "title", "weights", "results"), rows)


@app.command()
def show(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model with stored results.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print findings.json instead.")] = False,
    results: options.Results = options.DEFAULT_RESULTS,
    registry: options.RegistryFile = options.DEFAULT_REGISTRY,
) -> None:
    """Show what was found in a model: every claim, judged now, with its verdict and numbers."""
    from generators.compute.judged import judged_model

    store = _store(results)
    name = _stored_name(model, store, registry)
    judged = judged_model(store, name)
    if judged is None:
        raise InputError(f"{name} is not computed yet; do it with: atlas compute {name}")
    if as_json:
        typer.echo(judged.published().model_dump_json(indent=1))
    else:
        _show(judged)
    _exit(0, judged.damaged)


@app.command()
def verify(results: options.Results = options.DEFAULT_RESULTS) -> None:
    """Check that every stored result is what was stored. Exit 1: something isn't; says what."""
    from generators.compute.verify import verify as problems

    _exit(0, [sentence for _, sentence in problems(_store(results))])
    terminal.line(f"The results in {results}/ are what was stored.")


@app.command()
def adopt(
    other: Annotated[Path, typer.Argument(metavar="DIR", help="Another folder of results, a cache for example.")],
    results: options.Results = options.DEFAULT_RESULTS,
) -> None:
    """Take over from another folder of results what is better there.

    That is what is missing or damaged here, and what was measured by today's code there and by older code here.
    """
    from generators.compute.verify import adopt as take_over

    taken = take_over(_store(results), _store(other))
    terminal.line(f"Taken over from {other}/: {', '.join(taken) or 'nothing'}")


@app.command()
def cache(prune: options.Prune = None, hub: options.HubToo = False) -> None:
    """Show where downloaded weights are cached, how big that is, and how to empty it."""
    from generators.checkpoint.sources import caches

    if hub and prune is None:
        raise InputError("--hub goes with --prune SIZE.")
    for line in () if prune is None else caches.prune(caches.parsed_size(prune), hub=hub):
        terminal.line(line)
    terminal.table(caches.COLUMNS, caches.overview())
    for line in caches.advice():
        terminal.line(line)


@app.command("count-tokens")
def count_tokens(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model with a tokenizer.json.")],
    corpus: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Text files (UTF-8; .gz too), or Hugging Face datasets: OWNER/NAME[:CONFIG[:SPLIT]].",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the counts are written.")
    ] = Path("token_counts.npy"),
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Threads; by default, one per core.")
    ] = None,
    models_dir: options.ModelsDir = None,
    registry: options.RegistryFile = options.DEFAULT_REGISTRY,
    offline: options.Offline = False,
) -> None:
    """Count how often each token of a model occurs in a corpus.

    Beside a model's weights, as token_counts.npy, the counts are its frequencies. A run that was interrupted
    continues when it is started again.
    """
    from generators.checkpoint.registry import find_model
    from generators.checkpoint.sources import locate
    from generators.tokens import counting
    from generators.tokens.corpus import TextCorpus, open_sources

    chosen, places = find_model(model, _registry(registry, named=True)), _places(models_dir, offline)
    files = locate(chosen, places.models_dirs, places.hub)
    tokenizer, size = counting.tokenizer_of(files), counting.vocabulary_size(files, chosen.family)
    text = TextCorpus(open_sources(corpus, offline=offline), tokenizer, size)
    with counting.progress(text) as report_counted:
        counts = counting.count_corpus(text, output, jobs or os.cpu_count() or 1, report_counted)
    terminal.line(f"{counts.sum()} tokens, {(counts > 0).sum()} of {size} different ones: {output}")


def main() -> None:
    """Run the command; an error about the user's input is one sentence and exit 2."""
    try:
        app()
    except InputError as error:
        terminal.sentence(error)
        sys.exit(BAD_INPUT)
    except AtlasError as error:
        terminal.sentence(error)
        sys.exit(SOME_FAILED)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(SOME_FAILED)


def _compute(
    models: "Sequence[Model]",
    places: "Places",
    store: "Store",
    settings: "RunSettings",
    choice: "Choice",
    *,
    named: bool,
    only: list[str] | None = None,
) -> "Summary":
    from generators.compute.schedule import compute_models

    summary = compute_models(models, places, store, choice, settings, named=named, findings=_findings(only))
    for sentence in summary.sentences:
        terminal.sentence(sentence)
    return summary


def _choice(jobs: int, scheduler: str | None, memory: float | None) -> "Choice":
    from generators.compute.executors import chosen

    return chosen(jobs, scheduler, memory)


def _settings(budget: float, device: str, skip_runs: bool) -> "RunSettings":
    from generators.compute import running

    return running.chosen(budget, device, skip=skip_runs)


def _findings(only: list[str] | None) -> "Sequence[Finding[Any]] | None":
    """Return the findings that were asked for by name; None: all of them."""
    if only is None:
        return None
    from generators.findings import FINDINGS

    known = {finding.name: finding for finding in FINDINGS}
    for name in only:
        if name not in known:
            raise InputError(f"There is no finding {name!r}; there are {', '.join(known)}.")
    return [finding for name, finding in known.items() if name in only]


def _code(summary: "Summary") -> int:
    """Return the exit code: 2 for input that was named and can't be used, 1 for anything else that failed."""
    return BAD_INPUT if summary.bad_input else SOME_FAILED if summary.failed else 0


def _make_site(registry: Path, results: Path, source: Path, unavailable: dict[str, str]) -> Sequence[str]:
    """Make the site, or as much of it as isn't there yet; return what went wrong with results or notebooks."""
    from generators.site import build_cache
    from generators.site.locations import packaged

    workshop, sentences = build_cache.Workshop(source=source), list[str]()
    given = build_cache.inputs(registry, results, workshop, packaged("templates"), unavailable)
    if not build_cache.is_built("inputs", given, workshop):
        from generators.site.build import make_pages, run_mkdocs

        with progress() as tell:
            made = make_pages(_registry(registry), _store(results), workshop, unavailable, tell)
        sentences = list(made.sentences)
        pages = build_cache.pages(workshop)
        if not build_cache.is_built("pages", pages, workshop):
            run_mkdocs(workshop)
        if not sentences:
            build_cache.remember(workshop, inputs=given, pages=pages)
    terminal.line(f"The site is in {workshop.site}/; look at it with: atlas serve")
    return sentences


def _exit(code: int, sentences: Sequence[str] = ()) -> None:
    """Say what went wrong, and end with an exit code if that or anything else did."""
    for sentence in sentences:
        terminal.sentence(sentence)
    if code or sentences:
        raise typer.Exit(code or SOME_FAILED)


def _registry(path: Path, *, named: bool = False) -> "Registry":
    """Return the models of the registry; where a model is `named`, a folder or a hub id will do without one."""
    from generators.checkpoint.registry import Registry, load_registry

    without = named and path == options.DEFAULT_REGISTRY and not path.exists()
    return Registry(models=()) if without else load_registry(path)


def _store(root: Path, wait: float | None = None) -> "Store":
    from generators.compute.results import Store

    return Store(root, wait)


def _chosen(specs: list[str] | None, registry: "Registry", family: str | None = None) -> "Sequence[Model]":
    from generators.checkpoint.registry import find_model, find_models

    if family is None:
        return [model for spec in specs for model in find_models(spec, registry)] if specs else registry.models
    if len(specs or []) != 1:
        raise InputError("--family goes with exactly one MODEL: it is the table that this one is read by.")
    return [find_model(spec, registry).model_copy(update={"family": family}) for spec in specs or ()]


def _places(models_dir: list[Path] | None, offline: bool) -> "Places":
    from generators.checkpoint.sources import Hub, Places

    folders = models_dir or [Path(part) for part in os.environ.get("ATLAS_MODELS", "").split(os.pathsep) if part]
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"The models folder {folder} isn't there.")
    return Places(folders, Hub(offline=offline))


def _stored_name(spec: str, store: "Store", registry: Path) -> str:
    """Return the name of a model in the store: `spec` itself, or what was given to `atlas compute`."""
    from generators.checkpoint.registry import SLUG

    if SLUG.fullmatch(spec) and spec in store.names():
        return spec
    return _chosen([spec], _registry(registry, named=True))[0].name


def _done(store: "Store", model: "Model") -> str:
    try:
        if store.model(model.name) is None:
            return "not computed yet"
        dates = store.dates(model.name)
    except InputError:
        return "damaged"
    return f"computed {max(dates)}" if dates else "nothing could be computed"


def _show(judged: "JudgedModel") -> None:
    m = judged.record
    terminal.line(
        f"{m.title}: {m.family}, {m.n_layer} layers, {m.n_head} heads, d_model {m.d_model}, "
        f"{number(m.n_ctx)} positions, {number(m.vocab_size)} tokens; from the {m.source.kind} {m.source.place}"
    )
    for each in judged.findings:
        if each.record.status != "computed":
            terminal.line(f"{each.finding.name}: {each.record.status}: {each.record.reason}")
        elif each.record.older_code:
            terminal.line(f"{each.finding.name}: measured by an older version of its code")
    for claim in judged.published().claims:
        terminal.verdict(claim.verdict, claim.statement, claim.answer)


if __name__ == "__main__":
    main()
