"""The `atlas` command. Heavy imports stand where they are used, so that help comes at once."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generators.base.errors import AtlasError, InputError, WeightsUnavailableError

if TYPE_CHECKING:
    from generators.site.pages import Site
    from generators.compute.pipeline import Places
    from generators.checkpoint.registry import Model, Registry
    from generators.compute.results import ModelFindings, Store

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

Models = Annotated[
    list[str] | None,
    typer.Argument(metavar="[MODEL]...", help="Names, folders or hub ids; none means all of models.yml."),
]
ModelsDir = Annotated[
    list[Path] | None,
    typer.Option(
        "--models-dir",
        metavar="DIR",
        help="A folder searched for a sub-folder of the model's name before anything is downloaded; repeatable. "
        "Default: $ATLAS_MODELS, several separated as in $PATH.",
    ),
]
Results = Annotated[
    Path, typer.Option("--results", metavar="DIR", envvar="ATLAS_RESULTS", help="Where results are stored.")
]
RegistryFile = Annotated[
    Path, typer.Option("--registry", metavar="FILE", envvar="ATLAS_REGISTRY", help="The registry of models.")
]
SiteSource = Annotated[
    Path, typer.Option("--site-src", metavar="DIR", help="The folder that MkDocs reads; pages are written there.")
]

DEFAULT_RESULTS = Path("results")
DEFAULT_REGISTRY = Path("models.yml")
DEFAULT_SOURCE = Path("site_src")
SITE = Path("site")
CACHE = Path(".cache")


@app.command()
def build(
    models: Models = None,
    models_dir: ModelsDir = None,
    results: Results = DEFAULT_RESULTS,
    registry: RegistryFile = DEFAULT_REGISTRY,
    site_src: SiteSource = DEFAULT_SOURCE,
) -> None:
    """Compute what is not known yet, write the pages, and build the site into `site/`.

    A model that can't be had is listed as not computed yet; that is no error. Exit 1: something failed, and the rest
    was built; exit 2: an input can't be used.
    """
    known = _registry(registry)
    store = _store(results)
    outcome = _compute(_chosen(models, known), _places(models_dir), store, named=bool(models))
    damaged = _render(known, store, _site(site_src), outcome.unavailable)
    failed = _notebooks(_site(site_src))
    _mkdocs()
    typer.echo(f"The site is in {SITE}/; look at it with: atlas serve")
    _exit(outcome.code() or failed, damaged)


@app.command()
def compute(
    models: Models = None,
    models_dir: ModelsDir = None,
    results: Results = DEFAULT_RESULTS,
    registry: RegistryFile = DEFAULT_REGISTRY,
    counts: Annotated[
        Path | None,
        typer.Option("--counts", metavar="FILE", help="Token counts, as `atlas count-tokens` writes them."),
    ] = None,
) -> None:
    """Compute the findings of models and store them; what is stored already is not computed again."""
    known = _registry(registry)
    chosen = _chosen(models, known)
    if counts is not None:
        if len(models or []) != 1:
            raise InputError("--counts goes with exactly one MODEL: they are the counts of its tokens.")
        chosen = [chosen[0].model_copy(update={"counts": counts})]
    outcome = _compute(chosen, _places(models_dir), _store(results), named=bool(models))
    _exit(outcome.code())


@app.command()
def render(
    results: Results = DEFAULT_RESULTS,
    registry: RegistryFile = DEFAULT_REGISTRY,
    site_src: SiteSource = DEFAULT_SOURCE,
) -> None:
    """Write figures and Markdown pages from stored results, which needs no weights, and execute notebooks."""
    damaged = _render(_registry(registry), _store(results), _site(site_src), {})
    _exit(_notebooks(_site(site_src)), damaged)


@app.command()
def serve(
    port: Annotated[int, typer.Option(help="Port on this machine.", min=1, max=65535)] = 8000,
) -> None:
    """Serve the built site on this machine, until interrupted."""
    import functools
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    if not (SITE / "index.html").is_file():
        raise InputError(f"There is no site in {SITE}/ yet; make it with: atlas build")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(SITE))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise InputError(f"Port {port} can't be used: {error}.") from error
    typer.echo(f"http://127.0.0.1:{port}/ (Ctrl-C to stop)")
    with server:
        server.serve_forever()


@app.command("models")
def list_models(
    results: Results = DEFAULT_RESULTS,
    registry: RegistryFile = DEFAULT_REGISTRY,
) -> None:
    """List the models of the atlas, where their weights come from and whether they are computed."""
    store = _store(results)
    rows = []
    for model in _registry(registry).models:
        findings = _loaded(store, model.name)
        done = _dates(findings) if isinstance(findings, object) and findings is not None else "not computed yet"
        rows.append((model.name, model.title, " or ".join(map(_source_text, model.sources)), done))
    _table(("name", "title", "weights", "results"), rows)


@app.command()
def show(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model with stored results.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print findings.json instead.")] = False,
    results: Results = DEFAULT_RESULTS,
    registry: RegistryFile = DEFAULT_REGISTRY,
) -> None:
    """Show what was found in a model: every claim with its verdict and numbers."""
    from generators.checkpoint.registry import SLUG, find_model

    store = _store(results)
    name = model if SLUG.fullmatch(model) and model in store.names() else find_model(model, _registry(registry)).name
    findings = store.load(name)
    if findings is None:
        raise InputError(f"{name} is not computed yet; do it with: atlas compute {name}")
    if as_json:
        typer.echo(findings.model_dump_json(indent=1))
        return
    _show(findings)


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
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Processes; by default, all cores.")] = None,
    models_dir: ModelsDir = None,
    registry: RegistryFile = DEFAULT_REGISTRY,
) -> None:
    """Count how often each token of a model occurs in a corpus.

    Beside a model's weights, as token_counts.npy, the counts are its frequencies. A run that was ended goes on when
    it is started again.
    """
    from generators.tokens import counting
    from generators.checkpoint.registry import find_model
    from generators.checkpoint.sources import locate

    chosen, places = find_model(model, _registry(registry)), _places(models_dir)
    files = locate(chosen, places.models_dirs, places.hub)
    tokenizer, size = counting.tokenizer_of(files), counting.vocabulary_size(files, chosen.family)
    text = counting.Corpus(counting.open_sources(corpus), tokenizer, size)
    with counting.progress(text) as report:
        counts = counting.count_corpus(text, output, jobs or os.cpu_count() or 1, report)
    typer.echo(f"{counts.sum()} tokens, {(counts > 0).sum()} of {size} different ones: {output}")


def main() -> None:
    """Run the command; an error about the user's input is one sentence and exit 2."""
    try:
        app()
    except InputError as error:
        _sentence(error)
        sys.exit(BAD_INPUT)
    except AtlasError as error:
        _sentence(error)
        sys.exit(SOME_FAILED)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(SOME_FAILED)


class ComputeOutcome:
    """What computing several models came to."""

    def __init__(self) -> None:
        self.unavailable: dict[str, str] = {}
        self.bad_input: list[str] = []
        self.failed: list[str] = []

    def code(self) -> int:
        """Return the exit code: 2 for input that was named and can't be used, 1 for anything else that failed."""
        return BAD_INPUT if self.bad_input else SOME_FAILED if self.failed else 0


def _compute(models: "Sequence[Model]", places: "Places", store: "Store", *, named: bool) -> ComputeOutcome:
    from generators.compute.pipeline import compute_model

    outcome = ComputeOutcome()
    with _progress(len(models)) as (report, advance):
        for model in models:
            try:
                done = compute_model(model, places, store, report)
                report(f"{model.name}: {_in_words(done.computed, done.stored)}")
                for finding, reason in done.failed.items():
                    outcome.failed.append(model.name)
                    _sentence(f"{model.name}: {finding} failed: {reason}")
            except WeightsUnavailableError as error:
                outcome.unavailable[model.name] = str(error)
                stored = _loaded(store, model.name) is not None
                report(f"{model.name}: {error} {'Its stored results stand.' if stored else ''}".rstrip())
                if named and not stored:
                    outcome.failed.append(model.name)
            except InputError as error:
                (outcome.bad_input if named else outcome.failed).append(model.name)
                outcome.unavailable[model.name] = str(error)
                _sentence(f"{model.name}: {error}")
            advance()
    return outcome


def _in_words(computed: Sequence[str], stored: Sequence[str]) -> str:
    parts = []
    if computed:
        parts.append(f"computed {', '.join(computed)}")
    if stored:
        parts.append(f"already stored: {', '.join(stored)}")
    return "; ".join(parts) or "nothing can be computed from these weights"


def _render(registry: "Registry", store: "Store", site: "Site", unavailable: dict[str, str]) -> list[str]:
    from generators.site.pages import render as render_pages

    with _progress(None) as (report, _):
        return render_pages(registry, store, site, unavailable, report)


def _notebooks(site: "Site") -> int:
    """Write the executed notebooks, which read what was rendered; return the exit code."""
    from generators.site.notebooks import write_notebooks

    with _progress(None) as (report, _):
        failures = write_notebooks(site, CACHE / "notebooks", report)
    for sentence in failures:
        _sentence(sentence)
    return SOME_FAILED if failures else 0


def _mkdocs() -> None:
    from generators.site.pages import swap_folder

    new = CACHE / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(new.resolve())]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    if subprocess.run(command, check=False, env=environment).returncode:
        raise AtlasError("MkDocs could not build the site; what it printed says why. The old site stays.")
    swap_folder(new, SITE)


def _registry(path: Path) -> "Registry":
    from generators.checkpoint.registry import load_registry

    return load_registry(path)


def _store(root: Path) -> "Store":
    from generators.compute.results import Store

    return Store(root)


def _site(source: Path) -> "Site":
    from generators.site.pages import Site

    return Site(source, CACHE / "figures")


def _chosen(specs: list[str] | None, registry: "Registry") -> "Sequence[Model]":
    from generators.checkpoint.registry import find_model

    return [find_model(spec, registry) for spec in specs] if specs else registry.models


def _places(models_dir: list[Path] | None) -> "Places":
    from generators.compute.pipeline import Places

    folders = models_dir or [Path(part) for part in os.environ.get("ATLAS_MODELS", "").split(os.pathsep) if part]
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"The models folder {folder} isn't there.")
    return Places(folders)


def _loaded(store: "Store", name: str) -> "ModelFindings | None":
    try:
        return store.load(name)
    except InputError:
        return None


def _dates(findings: "ModelFindings") -> str:
    dates = {record.computed_on for record in findings.findings.values() if record.computed_on}
    return f"computed {max(dates)}" if dates else "nothing could be computed"


def _source_text(source: Any) -> str:
    return " ".join(
        f"{key} {value}" for key, value in source.model_dump().items() if (key, value) != ("revision", "main")
    )


def _show(findings: "ModelFindings") -> None:
    m = findings.model
    typer.echo(
        f"{m.title}: {m.family}, {m.n_layer} layers, {m.n_head} heads, d_model {m.d_model}, {m.n_ctx} positions, "
        f"{m.vocab_size} tokens; from the {m.source.kind} {m.source.place}"
    )
    for name, record in findings.findings.items():
        if record.status != "computed":
            typer.echo(f"{name}: {record.status}: {record.reason}")
    for claim in findings.claims:
        colour = {"holds": "green", "partly": "yellow", "fails": "red"}.get(claim.verdict)
        typer.echo(f"\n{typer.style(f'{claim.verdict:>8}', fg=colour, bold=True)}  {claim.statement}")
        typer.echo(f"          {claim.answer}")


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(*columns)
        for row in rows:
            table.add_row(*map(Text, row))
        Console().print(table)
    else:
        for row in rows:
            typer.echo("\t".join(row))


@contextmanager
def _progress(total: int | None) -> Iterator[tuple[Callable[[str], None], Callable[[], None]]]:
    """Yield how to report a line and how to advance: a progress bar on a terminal, plain lines elsewhere."""
    if not sys.stderr.isatty():
        yield lambda line: typer.echo(line, err=True), lambda: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=Console(stderr=True)
    ) as progress:
        task = progress.add_task("", total=total)

        def report(line: str) -> None:
            first, *rest = line.splitlines() or [""]
            progress.update(task, description=escape(first))
            if rest:
                progress.console.print(escape(line))

        yield report, lambda: progress.advance(task)


def _sentence(error: object) -> None:
    text = "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in str(error))
    typer.echo(typer.style("atlas: ", fg="red") + text, err=True)


def _exit(code: int, damaged: Sequence[str] = ()) -> None:
    if damaged:
        _sentence(f"The stored results of {', '.join(damaged)} are damaged; the rest was written.")
    if code or damaged:
        raise typer.Exit(code or SOME_FAILED)
