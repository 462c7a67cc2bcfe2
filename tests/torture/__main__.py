"""The commands of this package, as `make` calls them: `python -m tests.torture fuzz --help`."""

import typer

from tests.torture import costs, crash, fuzz, sites

app = typer.Typer(help=__doc__)
for command in (fuzz.fuzz, crash.crash, costs.large, costs.bench, sites.many, sites.reproducible):
    app.command()(command)
app()
