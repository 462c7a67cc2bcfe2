"""What commands of `atlas` may be told, in one place: arguments and options that several of them have."""

from pathlib import Path
from typing import Annotated

import typer

Models = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[MODEL]...",
        help="Names (of models or series), folders or hub ids; none means all whose weights are on this machine.",
    ),
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
    Path | None,
    typer.Option(
        "--results",
        metavar="DIR",
        envvar="ATLAS_RESULTS",
        help="Where results are stored. Default: results/local/, shown in place of what results/ has of a model.",
    ),
]
RegistryFile = Annotated[
    Path, typer.Option("--registry", metavar="FILE", envvar="ATLAS_REGISTRY", help="The registry of models.")
]
SiteSource = Annotated[Path, typer.Option("--site-src", metavar="DIR", help="The folder of hand-written pages.")]

Wait = Annotated[
    float | None,
    typer.Option(
        "--wait",
        metavar="SECONDS",
        min=0,
        help="How long to wait for another run that writes the same model's results. Default: until it ends.",
    ),
]
Budget = Annotated[
    float,
    typer.Option(
        "--budget",
        metavar="MINUTES",
        help="How long findings that run the model may take, for each model; where that is short they read fewer "
        "windows of text. What was measured with more time stands.",
    ),
]
Device = Annotated[
    str,
    typer.Option("--device", metavar="cpu|cuda|auto", help="What models are run on; auto: a GPU where there is one."),
]
SkipRuns = Annotated[
    bool, typer.Option("--skip-runs", help="Run no model: findings that would are left as they are stored.")
]
OwnSamples = Annotated[
    bool,
    typer.Option(
        "--own-samples",
        help="Run models on their own samples and store that beside what is known of them: a verdict that differs "
        "from the one on their text is a close call.",
    ),
]

Jobs = Annotated[
    int, typer.Option("--jobs", "-j", metavar="N", min=1, help="How many processes compute; results are the same.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Have the workers of this Dask cluster compute (`tcp://host:8786`), and keep the results here.",
    ),
]
Memory = Annotated[
    float | None,
    typer.Option(
        "--memory",
        metavar="GB",
        help="How much memory processes may take together; a job that would need more waits. Default: what is free.",
    ),
]

Family = Annotated[
    str | None,
    typer.Option(
        "--family",
        metavar="NAME",
        help="Read the checkpoint of the one MODEL by this family's table. Refused if the table doesn't fit it.",
    ),
]
Group = Annotated[str | None, typer.Option("--group", metavar="NAME", help="All models of a group of models.yml.")]
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
    typer.Option(
        "--prune", metavar="SIZE", help="Remove tensors that were unused longest, down to a size as `20GB`."
    ),
]
HubToo = Annotated[
    bool,
    typer.Option(
        "--hub", help="With --prune: the hub client's cache counts, too; models go from it that others may use."
    ),
]

DEFAULT_BUDGET = 10.0  # minutes, the runner's own (a test sees to it), which can't be imported without NumPy
DEFAULT_REPORT_BUDGET = 1.0  # minutes: a report is soon there, and says how to have more text read
DEFAULT_DEVICE = "cpu"
RESULTS = Path("results")  # as git tracks them
LOCAL = RESULTS / "local"  # what is computed here, ignored by git
DEFAULT_REGISTRY = Path("models.yml")
DEFAULT_SOURCE = Path("site_src")
