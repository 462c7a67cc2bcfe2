from pathlib import Path
from typing import Annotated

import typer

Models = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[MODEL]...",
        help="Names (of models or series), folders or hub ids; default: all whose weights are on this machine.",
    ),
]


def _named_folder(text: str) -> Path:
    if not text:
        raise typer.BadParameter("it is empty; name a folder.")
    return Path(text)


Results = Annotated[
    Path | None,
    typer.Option(
        parser=_named_folder,
        metavar="DIR",
        envvar="ATLAS_RESULTS",
        help="Where results are stored. Default: results/local/, which takes precedence over results/.",
    ),
]
RegistryFile = Annotated[Path, typer.Option(metavar="FILE", envvar="ATLAS_REGISTRY", help="The registry of models.")]

Wait = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        min=0,
        help="How long to wait for another process that writes the same model's results. Default: until it ends.",
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        metavar="MINUTES",
        help="How long findings that run the model may take per model; with less time they read fewer windows of "
        "text, and what wouldn't end in it is not measured. Results from a larger budget are kept. Default: text for "
        "10 minutes (atlas report: 1) of a slow machine, however long that takes here.",
    ),
]
Device = Annotated[str, typer.Option(metavar="cpu|cuda|auto", help="Where models run; auto: a GPU if there is one.")]
SkipRuns = Annotated[
    bool, typer.Option("--skip-runs", help="Run no model; keep stored results of findings that would.")
]
OwnSamples = Annotated[
    bool,
    typer.Option(
        "--own-samples",
        help="Also run models on text that they write; a verdict that differs from the usual one is a close call.",
    ),
]

Jobs = Annotated[
    int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Number of processes; results don't depend on it.")
]
ReportJobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", metavar="N", min=1, help="Number of processes; default: 2, or 1 with a GPU."),
]

Counts = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Token counts, as `atlas count-tokens` writes them.")
]
Only = Annotated[list[str] | None, typer.Option(metavar="FINDING", help="Compute only this finding; repeatable.")]
Family = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Read the checkpoint of the one MODEL by this family's table. Refused if the table doesn't fit it.",
    ),
]
Group = Annotated[str | None, typer.Option(metavar="NAME", help="All models of a group of models.yml.")]
All = Annotated[bool, typer.Option("--all", help="All models of models.yml, wherever their weights are.")]
SummaryFile = Annotated[
    Path | None,
    typer.Option(
        "--summary", metavar="FILE", help="Write here, as JSON, which models were skipped, and why, and which failed."
    ),
]
Offline = Annotated[
    bool, typer.Option("--offline", help="Ask the model hub for nothing; what was read from it before is used.")
]

Prune = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Remove tensors that were unused longest, down to a size as `20GB`."),
]

DEFAULT_BUDGET = 10.0  # minutes; equals the runner's (tested), which can't be imported without NumPy
DEFAULT_REPORT_BUDGET = 1.0  # minutes: reports come quickly and say how to read more text
DEFAULT_DEVICE = "cpu"
RESULTS = Path("results")  # tracked by git
LOCAL = RESULTS / "local"  # computed here, ignored by git
DEFAULT_REGISTRY = Path("models.yml")
