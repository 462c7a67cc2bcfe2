"""The `atlas` command: commands and exit codes. Heavy imports are where they are used, so that help is fast."""

import errno
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from generators import asked, options
from generators.base import terminal
from generators.base.errors import AtlasError, InputError
from generators.base.progress import progress
from generators.base.sentences import many
from generators.base.text import number

if TYPE_CHECKING:
    from generators.checkpoint.registry import Model, Registry
    from generators.checkpoint.sources import Places
    from generators.compute.judged import JudgedModel
    from generators.compute.results import Store
    from generators.compute.running import RunSettings
    from generators.compute.summary import Summary

BAD_INPUT = 2
SOME_FAILED = 1
FEW_JOBS = min(2, os.cpu_count() or 1)  # enough to compute one model soon: its longest finding alongside all others
EXPECTED = (  # errors of the system that are no bug here
    errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EDQUOT, errno.ENAMETOOLONG, errno.EMFILE, errno.ENFILE, errno.EPIPE
)  # fmt: skip

app = typer.Typer(
    cls=terminal.Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Compute findings about the embeddings of transformers and publish them as a site.

MODEL is a name in models.yml (`gpt2`), a folder with config.json and model.safetensors (`./my-model`), or a hub id
(`owner/model`). Start with `atlas models`, then `atlas compute gpt2`, `atlas show gpt2` and `atlas build`.
""",
)


@app.command()
def build(
    models: options.Models = None,
    results: options.Results = None,
    registry: options.RegistryFile = options.DEFAULT_REGISTRY,
    budget: options.Budget = None,
    device: options.Device = options.DEFAULT_DEVICE,
    skip_runs: options.SkipRuns = False,
    offline: options.Offline = False,
    jobs: options.Jobs = 1,
) -> None:
    """Build the site into `site/`, and compute missing results of models whose weights are on this machine.

    Nothing is downloaded unless a MODEL is named. The site is built from stored results first, and again if anything
    was computed. Results of older versions of a finding are shown; `atlas compute` renews them. Exit 1: something
    failed, and the rest was built; exit 2: an input can't be used.
    """
    known, settings = asked.registry(registry), asked.run_settings(budget, device, skip_runs)
    places, store = asked.places(offline), asked.store(results)
    chosen = asked.named_models(models, known) if models else asked.models_here(known, places)
    sentences = _make_site(registry, store) if not models else []
    settings = replace(settings, keep_outdated=True)
    summary = _compute(chosen, places, store, settings, jobs, named=bool(models))
    if models or summary.has_news:
        sentences = _make_site(registry, store, summary.unavailable)
    for line in (*summary.outdated_in_words(), *_what_is_left(known, store)):
        terminal.line(line)
    _exit(_code(summary), sentences)


@app.command()
def compute(
    models: options.Models = None,
    results: options.Results = None,
    registry: options.RegistryFile = options.DEFAULT_REGISTRY,
    counts: options.Counts = None,
    group: options.Group = None,
    everything: options.All = False,
    only: options.Only = None,
    budget: options.Budget = None,
    device: options.Device = options.DEFAULT_DEVICE,
    skip_runs: options.SkipRuns = False,
    own_samples: options.OwnSamples = False,
    family: options.Family = None,
    offline: options.Offline = False,
    wait: options.Wait = None,
    jobs: options.Jobs = 1,
    summary_file: options.SummaryFile = None,
) -> None:
    """Compute the findings of models and store them; stored results are not computed again.

    Nothing is downloaded unless a MODEL, --group or --all is given; `atlas plan` shows the cost beforehand.
    """
    known, settings = asked.registry(registry, named=bool(models)), asked.run_settings(budget, device, skip_runs)
    places = asked.places(offline)
    chosen = asked.asked_models(models, known, family, group, everything=everything)
    chosen = chosen or asked.models_here(known, places)
    if counts is not None:
        chosen = asked.with_counts(models, chosen, counts)
    if own_samples:
        chosen, only, settings = asked.on_own_samples(chosen, only, settings)
    store = asked.store(results, wait)
    if summary_file is not None and not summary_file.absolute().parent.is_dir():
        raise InputError(f"The summary can't be written to {summary_file}: there is no such folder.")
    summary = _compute(chosen, places, store, settings, jobs, named=bool(models), only=only)
    if summary_file is not None:
        try:
            summary_file.write_text(summary.as_json(), "utf-8")
        except OSError as error:
            raise AtlasError(f"The summary can't be written to {summary_file}: {error.strerror}.") from error
    _exit(_code(summary))


@app.command()
def render(results: options.Results = None, registry: options.RegistryFile = options.DEFAULT_REGISTRY) -> None:
    """Build the site from stored results only; needs no weights."""
    _exit(0, _make_site(registry, asked.store(results)))


@app.command()
def plan(
    models: options.Models = None,
    results: options.Results = None,
    registry: options.RegistryFile = options.DEFAULT_REGISTRY,
    skip_runs: options.SkipRuns = False,
    group: options.Group = None,
    offline: options.Offline = False,
) -> None:
    """Show the cost of computing models: download, memory, time. Reads only configs and headers."""
    from generators import costs

    known, places, store = asked.registry(registry, named=bool(models)), asked.places(offline), asked.store(results)
    settings = asked.run_settings(None, options.DEFAULT_DEVICE, skip_runs)
    chosen = asked.asked_models(models, known, None, group, everything=False) or known.models
    with progress() as tell:
        found = []
        for number, cost in enumerate(costs.costs(chosen, places, settings), 1):
            tell(f"asking the hub: {number} of {len(chosen)} models")
            found.append(cost)
    terminal.table(costs.COLUMNS, [costs.row(cost, asked.state(store, cost.model)) for cost in found])
    terminal.line(f"Total: {costs.in_total(found)}.")


@app.command()
def report(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A name, a folder or a hub id.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="Where to write the report; an existing one is replaced."),
    ] = Path("report"),
    registry: options.RegistryFile = options.DEFAULT_REGISTRY,
    budget: options.Budget = None,
    device: options.Device = options.DEFAULT_DEVICE,
    skip_runs: options.SkipRuns = False,
    family: options.Family = None,
    offline: options.Offline = False,
    jobs: options.ReportJobs = None,
) -> None:
    """Write a site of one model, with its findings and data, that opens without a server.

    Measurements are stored inside the report: after Ctrl-C, or with a larger --budget, the same command continues.
    """
    from generators.site.report import write_report

    known = asked.registry(registry, named=True)
    chosen = asked.named_models([model], known, family)[0]
    settings = asked.run_settings(budget, device, skip_runs, options.DEFAULT_REPORT_BUDGET)
    usual = FEW_JOBS if settings.device == "cpu" else 1  # each process would load the model on the GPU
    sentences = write_report(chosen, asked.places(offline), output, settings, jobs or usual)
    terminal.line(f"The report is in {output}/; open {output / 'index.html'} in a browser.")
    _exit(0, sentences)


@app.command("models")
def list_models(
    results: options.Results = None,
    registry: options.RegistryFile = options.DEFAULT_REGISTRY,
) -> None:
    """List the models, what each adds, where its weights come from and whether it has results."""
    store = asked.store(results)
    rows = [asked.row(store, model) for model in asked.registry(registry).models]
    terminal.table(("name", "title", "weights", "results", "what it adds"), rows)


@app.command()
def show(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model with stored results.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print findings.json instead.")] = False,
    results: options.Results = None,
    registry: options.RegistryFile = options.DEFAULT_REGISTRY,
) -> None:
    """Show every claim about a model, judged now, with its verdict and numbers."""
    from generators.compute.judged import judged_model

    store = asked.store(results)
    name = asked.stored_name(model, store, registry)
    judged = judged_model(store, name)
    if judged is None:
        raise InputError(f"{name} has no results yet; compute them with: atlas compute {name}")
    if as_json:
        typer.echo(judged.published().model_dump_json(indent=1))
    else:
        _show(judged)
    _exit(0, judged.damaged)


@app.command()
def verify(results: options.Results = None) -> None:
    """Check that stored results are intact. Exit 1: some are not; says which."""
    from generators.compute.verify import verify as problems

    store = asked.store(results)
    if results is not None and not results.is_dir():
        raise InputError(f"There is no folder of results {results}.")
    _exit(0, [sentence for _, sentence in problems(store)])
    terminal.line(f"All results in {store.layers[-1].root}/ are intact.")


@app.command()
def adopt(
    other: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="Another folder of results; default: results/local/.")
    ] = None,
    results: options.Results = None,
) -> None:
    """Move results from results/local/ to the results that git tracks, or copy them from another folder.

    From another folder, only better results are copied: those missing or damaged here, and those measured there by
    today's code and here by older code. The other folder stays unchanged.
    """
    from generators.compute.results import Store
    from generators.compute.verify import adopt as take_over
    from generators.compute.verify import move

    if other is not None and not other.is_dir():
        raise InputError(f"There is no folder of results {other}.")
    into = Store(results or options.RESULTS)
    if other is None and into.root.resolve() == options.LOCAL.resolve():
        raise InputError(f"{into.root} can't be moved into itself; name another folder with --results.")
    taken = move(Store(options.LOCAL), into) if other is None else take_over(into, Store(other))
    done = f"Moved from {options.LOCAL}/ to {into.root}/" if other is None else f"Copied from {other}/"
    terminal.line(f"{done}: {', '.join(taken) or 'nothing'}")


@app.command()
def cache(prune: options.Prune = None) -> None:
    """Show where downloaded weights are cached and how large the cache is, or prune it."""
    from generators.checkpoint.sources import caches

    if prune is not None:
        terminal.line(caches.prune(caches.parsed_size(prune)))
    terminal.table(caches.COLUMNS, caches.overview())


@app.command("count-tokens")
def count_tokens(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model with a tokenizer.json.")],
    corpus: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Text files (UTF-8; .gz too).")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the counts.")] = Path(
        "token_counts.npy"
    ),
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Threads; by default, one per core.")
    ] = None,
    registry: options.RegistryFile = options.DEFAULT_REGISTRY,
    offline: options.Offline = False,
) -> None:
    """Count how often each token of a model occurs in a corpus.

    A file token_counts.npy beside a model's weights is used as its frequencies. An interrupted run continues when it
    is started again.
    """
    from generators.checkpoint.sources import locate
    from generators.checkpoint.typed import find_model
    from generators.tokens import counting
    from generators.tokens.corpus import TextCorpus, text_file

    if jobs is not None:
        os.environ["RAYON_NUM_THREADS"] = str(jobs)  # read by the library of tokenizers when it first encodes
    chosen, places = find_model(model, asked.registry(registry, named=True)), asked.places(offline)
    files = locate(chosen, places.models_dirs, places.hub)
    tokenizer = counting.tokenizer_of(files, size := counting.vocabulary_size(files, chosen.family))
    text = TextCorpus([text_file(path) for path in corpus], tokenizer, size)
    with counting.progress(text) as report_counted:
        counts = counting.count_corpus(text, output, report_counted)
    terminal.line(f"{counts.sum():,} tokens, {(counts > 0).sum():,} of {size:,} different ones: {output}")


def main() -> None:
    """Run the command; an error about the user's input is one sentence and exit 2."""
    terminal.make_outputs_take_everything()
    try:
        asked.check_environment()
        app()
    except AtlasError as error:
        terminal.sentence(error)
        sys.exit(BAD_INPUT if isinstance(error, InputError) else SOME_FAILED)
    except KeyboardInterrupt:
        sys.exit(terminal.INTERRUPTED)
    except OSError as error:
        if error.errno not in EXPECTED:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if error.errno != errno.EPIPE:  # nobody reads the output any longer
            at = error.filename2 or error.filename  # what is copied comes first
            terminal.sentence(f"{str(at)[-80:] if at else 'The output'} can't be written or read: {error.strerror}.")
        sys.exit(SOME_FAILED)
    except (MemoryError, ImportError, RuntimeError, SystemError) as error:
        limit = asked.addresses()
        if limit is None and not isinstance(error, MemoryError):
            raise
        allowed = "" if limit is None else f" `ulimit -v` allows {limit >> 20} MiB of addresses; allow 8 GiB."
        terminal.sentence(f"The memory does not suffice.{allowed}")
        sys.exit(SOME_FAILED)


def _compute(
    models: "Sequence[Model]",
    places: "Places",
    store: "Store",
    settings: "RunSettings",
    jobs: int,
    *,
    named: bool,
    only: list[str] | None = None,
) -> "Summary":
    from generators.compute.schedule import compute_models

    summary = compute_models(models, places, store, jobs, settings, named=named, findings=asked.findings(only))
    for sentence in summary.sentences:
        terminal.sentence(sentence)
    return summary


def _code(summary: "Summary") -> int:
    return BAD_INPUT if summary.bad_input else SOME_FAILED if summary.failed else 0


def _make_site(registry: Path, store: "Store", unavailable: dict[str, str] | None = None) -> Sequence[str]:
    from generators.site.make import make_site

    site, sentences = make_site(registry, asked.registry, store, unavailable or {})
    terminal.line(f"The site is in {site}/; view it with: python -m http.server --directory {site}")
    return sentences


def _what_is_left(registry: "Registry", store: "Store") -> Sequence[str]:
    left = [model.name for model in registry.models if not store.has_model(model.name)]
    if not left:
        return ()
    count = f"{many(len(left), 'model')} {'is' if len(left) == 1 else 'are'} not computed"
    return (f"{count}; `atlas plan` says what each takes, and `atlas compute {left[0]}` computes one.",)


def _exit(code: int, sentences: Sequence[str] = ()) -> None:
    for sentence in sentences:
        terminal.sentence(sentence)
    if code or sentences:
        raise typer.Exit(code or SOME_FAILED)


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
        terminal.verdict(claim.verdict, claim.symbol, claim.in_words, claim.statement, claim.answer)


if __name__ == "__main__":
    main()
